//! Extended regular expressions of the C library, as auparse uses them.

use std::ffi::CString;
use std::mem::MaybeUninit;

/// A compiled expression.
pub(super) struct Regex(Box<libc::regex_t>);

impl Regex {
    /// Compiles `text`.
    ///
    /// # Errors
    /// The C library's message.
    pub(super) fn new(text: &[u8]) -> Result<Regex, String> {
        let text = CString::new(text).map_err(|_| "it has a zero byte".to_owned())?;
        let mut compiled = Box::new(MaybeUninit::<libc::regex_t>::zeroed());
        // SAFETY: the first points to a place for the result, the second is a C string.
        let result = unsafe {
            libc::regcomp(
                compiled.as_mut_ptr(),
                text.as_ptr(),
                libc::REG_EXTENDED | libc::REG_NOSUB,
            )
        };
        if result != 0 {
            return Err(message(result, compiled.as_ptr()));
        }
        // SAFETY: regcomp(3) has filled it in.
        Ok(Regex(unsafe {
            Box::from_raw(Box::into_raw(compiled).cast())
        }))
    }

    /// Whether `text`, up to a zero byte, has a match.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        let end = memchr::memchr(0, text).unwrap_or(text.len());
        let Ok(text) = CString::new(&text[..end]) else {
            return false;
        };
        // SAFETY: a compiled expression and a C string; no places of matches are asked for.
        unsafe { libc::regexec(&*self.0, text.as_ptr(), 0, std::ptr::null_mut(), 0) == 0 }
    }
}

impl Drop for Regex {
    fn drop(&mut self) {
        // SAFETY: regcomp(3) has made it, and nothing uses it after this.
        unsafe { libc::regfree(&mut *self.0) }
    }
}

fn message(code: i32, compiled: *const libc::regex_t) -> String {
    let mut text = [0_u8; 128];
    // SAFETY: the buffer has the length that is given; the expression is the one of the failed call.
    let length = unsafe { libc::regerror(code, compiled, text.as_mut_ptr().cast(), text.len()) };
    let end = length.saturating_sub(1).min(text.len() - 1);
    String::from_utf8_lossy(&text[..end]).into_owned()
}
