//! The group of the log files, by number or by name.

use std::ffi::{CStr, CString};
use std::io;

/// A group as `log_group` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Number of the group.
    pub gid: u32,
    /// Name or number of the group, as written in the file.
    pub name: String,
}

impl Group {
    /// The default: group 0, with which only root can read the log.
    pub fn root() -> Self {
        Group {
            gid: 0,
            name: "root".into(),
        }
    }

    /// Whether the group gets read permission on the log.
    pub fn may_read(&self) -> bool {
        self.gid != 0
    }
}

/// Size limit of a group entry, in bytes.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// The number of the group `name` in the system's group database, NSS sources included
/// (getgrnam_r(3)). `Ok(None)` if there is no such group.
pub(super) fn lookup(name: &str) -> io::Result<Option<u32>> {
    let Ok(name) = CString::new(name) else {
        return Ok(None);
    };

    let mut buffer = vec![0u8; 4096];
    loop {
        match lookup_with(&name, &mut buffer) {
            Err(error)
                if error.raw_os_error() == Some(libc::ERANGE) && buffer.len() < ENTRY_BYTES_MAX =>
            {
                buffer.resize(buffer.len() * 4, 0);
            }
            other => return other,
        }
    }
}

fn lookup_with(name: &CStr, buffer: &mut [u8]) -> io::Result<Option<u32>> {
    let mut group = std::mem::MaybeUninit::<libc::group>::uninit();
    let mut found: *mut libc::group = std::ptr::null_mut();
    // SAFETY: `name` is NUL-terminated; `group`, `buffer` and `found` outlive the call, and the length
    // passed is that of `buffer`. getgrnam_r writes nothing else.
    let rc = unsafe {
        libc::getgrnam_r(
            name.as_ptr(),
            group.as_mut_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &mut found,
        )
    };

    match rc {
        0 if found.is_null() => Ok(None),
        // SAFETY: rc 0 and a non-null `found` mean that it points at `group`, now initialised.
        0 => Ok(Some(unsafe { (*found).gr_gid })),
        // Some databases report "not found" by an errno; getgrnam_r(3) lists these.
        libc::ENOENT | libc::ESRCH | libc::EPERM | libc::EBADF => Ok(None),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_finds_root_and_nothing_for_unknown_names() {
        assert_eq!(lookup("root").unwrap(), Some(0));
        assert_eq!(lookup("no-such-group-here").unwrap(), None);
        assert_eq!(lookup("a\0b").unwrap(), None);
    }
}
