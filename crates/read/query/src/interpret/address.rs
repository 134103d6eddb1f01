//! Socket addresses.

use crate::number::decode_whole;
use crate::Dialect;
use abi::names::{find, ADDRESS_FAMILIES, LATER_ADDRESS_FAMILIES};

const LOCAL: u16 = 1;
const INET: u16 = 2;
const AX25: u16 = 3;
const ATMPVC: u16 = 8;
const X25: u16 = 9;
const INET6: u16 = 10;
const NETLINK: u16 = 16;

/// Longest path of a UNIX socket.
const PATH_BYTES_MAX: usize = 108;

/// The address that a `saddr=` has in hex.
pub(super) fn socket_address(value: &[u8], dialect: Dialect) -> Vec<u8> {
    let Some(mut bytes) = decode_whole(value) else {
        return super::unknown("malformed-host", value);
    };
    let length = value.len() / 2;
    bytes.resize(bytes.len().max(length).max(16), 0);
    let family = u16::from_ne_bytes([bytes[0], bytes[1]]);
    let name = find(ADDRESS_FAMILIES, family.into())
        .or_else(|| find(LATER_ADDRESS_FAMILIES, family.into()));
    let Some(name) = name else {
        return format!("unknown-family({family})").into();
    };
    let rest = details(family, &bytes, length);
    let whole = [b"{ saddr_fam=", name.as_bytes(), b" ", &rest, b" }"].concat();
    match dialect {
        Dialect::Own => whole,
        // C's strings end at a zero.
        _ => whole
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default()
            .to_vec(),
    }
}

fn details(family: u16, bytes: &[u8], length: usize) -> Vec<u8> {
    match family {
        LOCAL if length == 2 => b"unnamed socket".to_vec(),
        LOCAL if length < 4 => b"sockaddr len too short".to_vec(),
        LOCAL => {
            let from = if bytes[2] == 0 { 3 } else { 2 };
            [b"path=", text(&bytes[from..], PATH_BYTES_MAX)].concat()
        }
        INET if length < 16 => b"sockaddr len too short".to_vec(),
        INET => numeric(&bytes[..16]),
        INET6 if length < 28 => b"sockaddr6 len too short".to_vec(),
        INET6 => numeric(&bytes[..28]),
        AX25 => [b"call=", &bytes[2..9]].concat(),
        ATMPVC => format!("int={}", i16::from_ne_bytes([bytes[4], bytes[5]])).into(),
        X25 => [b"laddr=", text(&bytes[2..], 15)].concat(),
        NETLINK if length < 12 => b"len too short".to_vec(),
        NETLINK => {
            let pid = u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            format!("nlnk-fam={family} nlnk-pid={pid}").into()
        }
        _ => b"(unsupported)".to_vec(),
    }
}

/// A C string of at most `bytes_max` bytes.
fn text(bytes: &[u8], bytes_max: usize) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(bytes_max)];
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// Address and port in figures, as getnameinfo(3) prints them: with the scope, if there is one.
fn numeric(address: &[u8]) -> Vec<u8> {
    let (mut host, mut port) = ([0_u8; 1025], [0_u8; 32]);
    // SAFETY: address and buffers have the lengths that are given. The address is copied to one that is aligned.
    let status = unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let storage_bytes = std::ptr::addr_of_mut!(storage).cast::<u8>();
        std::ptr::copy_nonoverlapping(address.as_ptr(), storage_bytes, address.len());
        libc::getnameinfo(
            std::ptr::addr_of!(storage).cast(),
            address.len() as libc::socklen_t,
            host.as_mut_ptr().cast(),
            host.len() as libc::socklen_t,
            port.as_mut_ptr().cast(),
            port.len() as libc::socklen_t,
            libc::NI_NUMERICHOST | libc::NI_NUMERICSERV,
        )
    };
    match status {
        0 => {
            let (host, port) = (text(&host, host.len()), text(&port, port.len()));
            [b"laddr=", host, b" lport=", port].concat()
        }
        _ => b"(error resolving addr)".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_by_family() {
        let shown = |value: &str| {
            let text = socket_address(value.as_bytes(), Dialect::Own);
            String::from_utf8(text).expect("text")
        };
        assert_eq!(
            shown("020000357F0000350000000000000000"),
            "{ saddr_fam=inet laddr=127.0.0.53 lport=53 }"
        );
        assert_eq!(
            shown("01002F72756E2F6100"),
            "{ saddr_fam=local path=/run/a }"
        );
        assert_eq!(
            shown("100000000700000000000000"),
            "{ saddr_fam=netlink nlnk-fam=16 nlnk-pid=7 }"
        );
        assert_eq!(shown("0100"), "{ saddr_fam=local unnamed socket }");
        assert_eq!(shown("x"), "malformed-host(x)");
        assert_eq!(shown("FFFF"), "unknown-family(65535)");
    }
}
