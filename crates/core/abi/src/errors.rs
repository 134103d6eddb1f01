//! Error numbers.

use crate::generated::errno;
use crate::{by_name, by_number};

macro_rules! errors {
    ($($name:ident)*) => {
        /// Error numbers, positive as in errno.h.
        pub mod numbers {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub const $name: i32 = super::number_of(stringify!($name));
            )*
        }

        /// What a system call returns for an error: the negative number.
        pub mod exit {
            $(
                #[doc = concat!("`-", stringify!($name), "`.")]
                pub const $name: i64 = -(super::number_of(stringify!($name)) as i64);
            )*
        }
    };
}

#[rustfmt::skip]
errors! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY
    ELOOP ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR
    EXFULL ENOANO EBADRQC EBADSLT EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK
    EADV ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC
    ELIBBAD ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK EDESTADDRREQ
    EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT
    EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET
    ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH
    EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM
    EMEDIUMTYPE ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE
    ERFKILL EHWPOISON EFTYPE
    ERESTARTSYS ERESTARTNOINTR ERESTARTNOHAND ENOIOCTLCMD ERESTART_RESTARTBLOCK
}

/// Numbers that only the kernel uses (include/linux/errno.h).
static KERNEL: &[(u32, &str)] = &[
    (512, "ERESTARTSYS"),
    (513, "ERESTARTNOINTR"),
    (514, "ERESTARTNOHAND"),
    (515, "ENOIOCTLCMD"),
    (516, "ERESTART_RESTARTBLOCK"),
];

/// The result of a call as audit prints and compares it: restart codes, which user space never sees, become `-EINTR`
/// (audit_return_fixup(), kernel/auditsc.c).
pub fn audit_result(ret: i64) -> i64 {
    let restarts = exit::ERESTART_RESTARTBLOCK..=exit::ERESTARTSYS;
    if restarts.contains(&ret) && ret != exit::ENOIOCTLCMD {
        exit::EINTR
    } else {
        ret
    }
}

/// A number from the tables, so that it is written nowhere else.
const fn number_of(name: &str) -> i32 {
    crate::number_in(&[errno::BY_NUMBER, KERNEL], name)
}

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
