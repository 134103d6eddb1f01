//! Extended regular expressions of the C library, as auparse uses them.

use std::ffi::CString;
use std::mem::MaybeUninit;

/// A compiled expression.
pub(super) struct Regex(Box<libc::regex_t>);

// SAFETY: what regcomp(3) makes is memory of its own, which belongs to no thread.
unsafe impl Send for Regex {}

impl Regex {
    /// Compiles `text`.
    ///
    /// # Errors
    /// The C library's message.
    pub(super) fn new(text: &[u8]) -> Result<Regex, String> {
        if nodes(text) > NODES_MAX {
            return Err("it repeats what repeats too often".to_owned());
        }

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

/// Most nodes of the tree that regcomp(3) makes of an expression. Nested repetitions double it each time, and it has no
/// limit of its own.
const NODES_MAX: u64 = 1 << 17;

/// About the number of nodes of the tree that regcomp(3) makes.
fn nodes(text: &[u8]) -> u64 {
    // Nodes of each open group, and of the last part in it, which an operator repeats.
    let mut groups = vec![(0_u64, 0_u64)];
    let mut at = 0;
    while at < text.len() {
        let (mut whole, mut last) = groups.pop().unwrap_or_default();
        let byte = text[at];
        at += 1;
        match byte {
            b'(' => {
                groups.push((whole.saturating_add(last), 0));
                (whole, last) = (0, 0);
            }
            b')' if !groups.is_empty() => {
                let inner = whole.saturating_add(last).saturating_add(1);
                (whole, _) = groups.pop().unwrap_or_default();
                last = inner;
            }
            b'+' => last = last.saturating_mul(2),
            b'{' if interval(&text[at..]).is_some() => {
                let (bytes, times) = interval(&text[at..]).unwrap_or_default();
                at += bytes;
                last = last.saturating_mul(times.saturating_add(1));
            }
            b'*' | b'?' => {}
            _ => {
                whole = whole.saturating_add(last);
                last = 1;
                at += match byte {
                    b'\\' => 1,
                    b'[' => set_bytes(&text[at..]),
                    _ => 0,
                };
            }
        }
        groups.push((whole, last));
    }

    let all = groups
        .iter()
        .map(|(whole, last)| whole.saturating_add(*last));
    all.fold(0, u64::saturating_add)
}

/// Bytes of an interval behind its brace, and its greater number.
fn interval(text: &[u8]) -> Option<(usize, u64)> {
    let end = memchr::memchr(b'}', text)?;
    let number = |text: &[u8]| match text {
        b"" => Some(0),
        _ => std::str::from_utf8(text).ok()?.parse().ok(),
    };
    let numbers: Option<Vec<u64>> = text[..end]
        .split(|byte| *byte == b',')
        .map(number)
        .collect();
    Some((end + 1, numbers?.into_iter().max()?))
}

/// Bytes of a set of characters behind its bracket.
fn set_bytes(text: &[u8]) -> usize {
    let first = usize::from(text.first() == Some(&b'^'));
    let first = first + usize::from(text.get(first) == Some(&b']'));
    let end = memchr::memchr(b']', text.get(first..).unwrap_or_default());
    end.map_or(text.len(), |end| first + end + 1)
}

fn message(code: i32, compiled: *const libc::regex_t) -> String {
    let mut text = [0_u8; 128];
    // SAFETY: the buffer has the length that is given; the expression is the one of the failed call.
    let length = unsafe { libc::regerror(code, compiled, text.as_mut_ptr().cast(), text.len()) };
    let end = length.saturating_sub(1).min(text.len() - 1);
    String::from_utf8_lossy(&text[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_would_fill_the_memory_is_refused() {
        let nested = format!("{}x{}", "(".repeat(40), "+)".repeat(40));
        for text in [
            "x".to_owned() + &"+".repeat(40),
            nested,
            "x{255}{255}{255}".to_owned(),
        ] {
            assert!(Regex::new(text.as_bytes()).is_err(), "{text}");
        }
        let long = "[a-z]+=(x|y)+/".repeat(500);
        for text in [
            "a++",
            "(a+b+)+c",
            "x{2,5}",
            "\\(+",
            "[+]+",
            "[]+++++++++++++++++++++++++]x",
            long.as_str(),
        ] {
            assert!(Regex::new(text.as_bytes()).is_ok(), "{text}");
        }
        assert!(Regex::new(b"(").is_err() && Regex::new(b"a{").is_err());
    }
}
