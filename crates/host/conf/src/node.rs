//! Names of this host for `name_format`.

use std::ffi::{CStr, CString};
use std::io;
use std::net::ToSocketAddrs;

/// The host's name, as from gethostname(2).
pub(super) fn hostname() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// The first address that the host's name resolves to.
pub(super) fn address(host: &str) -> io::Result<String> {
    let mut addresses = (host, 0u16).to_socket_addrs()?;
    let first = addresses.next().ok_or(io::ErrorKind::NotFound)?;
    Ok(first.ip().to_string())
}

/// The canonical name of `host` (getaddrinfo(3) with AI_CANONNAME, as in auditd).
pub(super) fn canonical(host: &str) -> io::Result<String> {
    let host = CString::new(host)?;
    // SAFETY: all-zero bytes are a valid addrinfo: numbers and null pointers.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_flags = libc::AI_CANONNAME;
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut found: *mut libc::addrinfo = std::ptr::null_mut();

    // SAFETY: `host` is NUL-terminated; `hints` and `found` outlive the call.
    let rc = unsafe { libc::getaddrinfo(host.as_ptr(), std::ptr::null(), &hints, &mut found) };
    if rc != 0 {
        // SAFETY: gai_strerror gives a static, NUL-terminated text for any number.
        let text = unsafe { CStr::from_ptr(libc::gai_strerror(rc)) };
        return Err(io::Error::other(text.to_string_lossy().into_owned()));
    }

    // SAFETY: rc 0 means that `found` is a list made by getaddrinfo, which freeaddrinfo frees. The
    // ai_canonname of its first entry is null or NUL-terminated, and is copied before the list is freed.
    let name = unsafe {
        let name = (*found).ai_canonname;
        let name = (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned());
        libc::freeaddrinfo(found);
        name
    };

    name.ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_has_an_address_and_a_name_and_nonsense_has_none() {
        let address = address("localhost").unwrap();
        assert!(
            ["127.0.0.1", "::1"].contains(&address.as_str()),
            "{address}"
        );
        assert!(canonical("localhost").unwrap().contains("localhost"));
        assert!(canonical("no such host").is_err());
        assert!(canonical("a\0b").is_err());
    }
}
