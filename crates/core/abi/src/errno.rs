//! Error numbers.

use crate::generated::errno;
use crate::{by_name, by_number};

/// The name of a positive error number: `ENOENT` for 2. Kernel-internal numbers, from 512, have no
/// name: audit does not know them either, because the kernel reports them as `EINTR`.
pub fn errno_name(number: i32) -> Option<&'static str> {
    by_number(errno::BY_NUMBER, u32::try_from(number).ok()?)
}

/// The number of `name`, aliases such as `EWOULDBLOCK` included. Always positive.
pub fn errno_number(name: &str) -> Option<i32> {
    by_name(errno::BY_NAME, name).and_then(|number| i32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(errno_name(2), Some("ENOENT"));
        assert_eq!(errno_name(11), Some("EAGAIN"));
        assert_eq!(errno_name(133), Some("EHWPOISON"));
        assert_eq!(errno_name(-2), None);
        assert_eq!(errno_name(512), None);
        assert_eq!(errno_number("EWOULDBLOCK"), Some(11));
        assert_eq!(errno_number("EDEADLOCK"), Some(35));
        assert_eq!(errno_number("ENOTHING"), None);
    }
}
