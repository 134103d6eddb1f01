//! Decodes the bytes of socket addresses.

use crate::controls::without_controls;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::put;

/// A socket address, read from the bytes of `saddr=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockaddr<'a> {
    /// AF_UNIX: the path without its final NUL; an abstract name keeps its leading NUL.
    Unix(&'a [u8]),
    /// AF_UNIX without a name.
    Unnamed,
    /// AF_INET
    Inet(Ipv4Addr, u16),
    /// AF_INET6: address, port, scope id
    Inet6(Ipv6Addr, u16, u32),
    /// AF_NETLINK: port id
    Netlink(u32),
    /// AF_AX25: the call sign.
    Ax25(&'a [u8]),
    /// AF_ATMPVC: the interface.
    Atmpvc(i16),
    /// AF_X25: the address.
    X25(&'a [u8]),
    /// Any other family, by number.
    Other(u16),
    /// Too short for its family.
    Short(u16),
}

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_AX25: u16 = 3;
const AF_ATMPVC: u16 = 8;
const AF_X25: u16 = 9;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;

/// Longest address of X.25.
const X25_BYTES_MAX: usize = 15;

impl<'a> Sockaddr<'a> {
    /// Decodes an address; `None` if it is too short for a family.
    pub fn parse(bytes: &'a [u8]) -> Option<Sockaddr<'a>> {
        let (family, rest) = bytes.split_first_chunk()?;
        let family = u16::from_ne_bytes(*family);
        let parsed = match family {
            AF_UNIX if rest.is_empty() => Some(Sockaddr::Unnamed),
            AF_UNIX => unix(rest),
            AF_INET => inet(rest),
            AF_INET6 => inet6(rest),
            AF_NETLINK => netlink(rest),
            AF_AX25 => rest.get(..7).map(Sockaddr::Ax25),
            AF_ATMPVC => rest
                .get(2..4)
                .map(|number| Sockaddr::Atmpvc(i16::from_ne_bytes([number[0], number[1]]))),
            AF_X25 => {
                let address = &rest[..rest.len().min(X25_BYTES_MAX)];
                Some(Sockaddr::X25(crate::wire::until_nul(address)))
            }
            _ => return Some(Sockaddr::Other(family)),
        };
        Some(parsed.unwrap_or(Sockaddr::Short(family)))
    }

    /// AF_* of the address.
    pub fn family(&self) -> u16 {
        match *self {
            Sockaddr::Unix(_) | Sockaddr::Unnamed => AF_UNIX,
            Sockaddr::Inet(..) => AF_INET,
            Sockaddr::Inet6(..) => AF_INET6,
            Sockaddr::Netlink(_) => AF_NETLINK,
            Sockaddr::Ax25(_) => AF_AX25,
            Sockaddr::Atmpvc(_) => AF_ATMPVC,
            Sockaddr::X25(_) => AF_X25,
            Sockaddr::Other(family) | Sockaddr::Short(family) => family,
        }
    }

    /// Appends an address of the internet in figures, as the C library shows it, without its scope. False for others.
    pub fn write_host(&self, out: &mut Vec<u8>) -> bool {
        match *self {
            Sockaddr::Inet(address, _) => ipv4(out, address),
            Sockaddr::Inet6(address, ..) => ipv6(out, address, 0),
            _ => return false,
        }
        true
    }
}

fn unix(rest: &[u8]) -> Option<Sockaddr<'_>> {
    let rest = &rest[..rest.len().min(108)];
    let (first, tail) = rest.split_first()?;
    rest.get(1)?; // auditd requires at least four bytes
    Some(match first {
        0 => Sockaddr::Unix(&rest[..1 + crate::wire::until_nul(tail).len()]),
        _ => Sockaddr::Unix(crate::wire::until_nul(rest)),
    })
}

fn inet(rest: &[u8]) -> Option<Sockaddr<'_>> {
    let (port, rest) = rest.split_first_chunk()?;
    let (address, _padding) = rest.split_first_chunk::<4>()?;
    (rest.len() >= 12).then(|| Sockaddr::Inet((*address).into(), u16::from_be_bytes(*port)))
}

fn inet6(rest: &[u8]) -> Option<Sockaddr<'_>> {
    let (port, rest) = rest.split_first_chunk()?;
    let (_flow, rest) = rest.split_first_chunk::<4>()?;
    let (address, rest) = rest.split_first_chunk::<16>()?;
    let (scope, _) = rest.split_first_chunk()?;
    Some(Sockaddr::Inet6(
        (*address).into(),
        u16::from_be_bytes(*port),
        u32::from_ne_bytes(*scope),
    ))
}

fn netlink(rest: &[u8]) -> Option<Sockaddr<'_>> {
    let (_padding, rest) = rest.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk()?;
    (rest.len() >= 4).then(|| Sockaddr::Netlink(u32::from_ne_bytes(*port)))
}

/// Name of an address family as auparse 3.0.9 prints it (auparse/famtab.h).
pub(crate) fn family_name(family: u16) -> Option<&'static str> {
    const NAMES: [&str; 45] = [
        "",
        "local",
        "inet",
        "ax25",
        "ipx",
        "appletalk",
        "netrom",
        "bridge",
        "atmpvc",
        "x25",
        "inet6",
        "rose",
        "decnet",
        "netbeui",
        "security",
        "key",
        "netlink",
        "packet",
        "ash",
        "econet",
        "atmsvc",
        "rds",
        "sna",
        "irda",
        "pppox",
        "wanpipe",
        "llc",
        "",
        "",
        "can",
        "tipc",
        "bluetooth",
        "iucv",
        "rxrpc",
        "isdn",
        "phonet",
        "ieee802154",
        "caif",
        "alg",
        "nfc",
        "vsock",
        "kcm",
        "qipcrtr",
        "smc",
        "xdp",
    ];

    NAMES
        .get(usize::from(family))
        .copied()
        .filter(|name| !name.is_empty())
}

/// Appends what auparse 3.0.9 prints for the address (print_sockaddr() of auparse/interpret.c).
///
/// Control characters of a UNIX path are written as `\ooo`; auditd writes them as they are, even line breaks.
pub(crate) fn interpret(out: &mut Vec<u8>, bytes: &[u8]) {
    let Some(address) = Sockaddr::parse(bytes) else {
        return put::text(out, "unknown-family(0)");
    };

    let family = address.family();
    let Some(name) = family_name(family) else {
        put::text(out, "unknown-family(");
        put::decimal(out, family.into());
        return out.push(b')');
    };

    put::text(out, "{ saddr_fam=");
    put::text(out, name);
    match address {
        Sockaddr::Unix(path) => {
            put::text(out, " path=");
            escape_controls(out, path.strip_prefix(b"\0").unwrap_or(path));
        }
        Sockaddr::Inet(address, port) => {
            put::text(out, " laddr=");
            ipv4(out, address);
            put::field(out, " lport=", port.into());
        }
        Sockaddr::Inet6(address, port, scope) => {
            put::text(out, " laddr=");
            ipv6(out, address, scope);
            put::field(out, " lport=", port.into());
        }
        Sockaddr::Netlink(port) => {
            put::field(out, " nlnk-fam=", AF_NETLINK.into());
            put::field(out, " nlnk-pid=", port);
        }
        Sockaddr::Short(AF_NETLINK) => put::text(out, " len too short"),
        Sockaddr::Short(AF_INET6) => put::text(out, " sockaddr6 len too short"),
        Sockaddr::Short(AF_AX25 | AF_ATMPVC | AF_X25) => put::text(out, " (unsupported)"),
        Sockaddr::Short(_) | Sockaddr::Unnamed => put::text(out, " sockaddr len too short"),
        Sockaddr::Other(_) | Sockaddr::Ax25(_) | Sockaddr::Atmpvc(_) | Sockaddr::X25(_) => {
            put::text(out, " (unsupported)")
        }
    }

    put::text(out, " }");
}

/// Appends bytes with control characters as `\ooo`, TAB included.
fn escape_controls(out: &mut Vec<u8>, bytes: &[u8]) {
    for (place, part) in bytes.split(|&byte| byte == b'\t').enumerate() {
        if place > 0 {
            put::text(out, "\\011");
        }
        without_controls(out, part, b"");
    }
}

pub(crate) fn ipv4(out: &mut Vec<u8>, address: Ipv4Addr) {
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            out.push(b'.');
        }
        put::decimal(out, octet.into());
    }
}

/// Appends the address as glibc's inet_ntop and getnameinfo print it: IPv4-compatible addresses with dots, a link-local
/// scope as `%N`.
pub(crate) fn ipv6(out: &mut Vec<u8>, address: Ipv6Addr, scope: u32) {
    let words = address.segments();
    let compatible = words[..6] == [0; 6] && words[6] != 0;
    let mapped = words[..6] == [0, 0, 0, 0, 0, 0xffff];
    if compatible || mapped {
        put::text(out, if mapped { "::ffff:" } else { "::" });
        let [.., a, b, c, d] = address.octets();
        ipv4(out, Ipv4Addr::new(a, b, c, d));
    } else {
        write_words(out, &words);
    }

    if scope != 0 && (address.is_unicast_link_local() || address.is_multicast()) {
        out.push(b'%');
        put::decimal(out, scope.into());
    }
}

/// Appends the words in hexadecimal. The longest run of two or more zeros, or the first of several such runs, becomes
/// `::`.
fn write_words(out: &mut Vec<u8>, words: &[u16; 8]) {
    let (mut gap_at, mut gap_len, mut run) = (8, 1, 0);
    for (at, &word) in words.iter().enumerate() {
        run = if word == 0 { run + 1 } else { 0 };
        if run > gap_len {
            (gap_at, gap_len) = (at + 1 - run, run);
        }
    }

    for (at, &word) in words.iter().enumerate() {
        if at == gap_at {
            put::text(out, "::");
        } else if at < gap_at || at >= gap_at + gap_len {
            if at > 0 && at != gap_at.saturating_add(gap_len) {
                out.push(b':');
            }
            put::hex(out, word.into(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        interpret(&mut out, bytes);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn ipv6_prints_as_the_standard_library_does_but_for_compatible_addresses() {
        for text in [
            "::",
            "::1",
            "1::",
            "1:0:0:2::",
            "1:0:2:3:4:5:6:7",
            "::ffff:1.2.3.4",
            "0:1:2:3:4:5:6:7",
            "a::b:0:0:c",
        ] {
            let address: Ipv6Addr = text.parse().expect("address");
            let mut out = Vec::new();
            ipv6(&mut out, address, 0);
            assert_eq!(String::from_utf8(out), Ok(address.to_string()));
        }
        let mut out = Vec::new();
        ipv6(&mut out, "::102:304".parse().expect("address"), 0);
        assert_eq!(out, b"::1.2.3.4");
    }

    #[test]
    fn addresses_read_as_auparse_prints_them() {
        assert_eq!(
            shown(b"\x01\0/run/x\0junk"),
            "{ saddr_fam=local path=/run/x }"
        );
        assert_eq!(shown(b"\x01\0\0abc\0junk"), "{ saddr_fam=local path=abc }");
        assert_eq!(shown(b"\x01\0a\nb"), "{ saddr_fam=local path=a\\012b }");
        let c1 = shown("\u{1}\0a\u{9b}31m\tö".as_bytes());
        assert_eq!(c1, "{ saddr_fam=local path=a\\302\\23331m\\011ö }");
        assert_eq!(
            shown(b"\x01\0a"),
            "{ saddr_fam=local sockaddr len too short }"
        );
        assert_eq!(
            shown(b"\x02\0\0\x50"),
            "{ saddr_fam=inet sockaddr len too short }"
        );
        assert_eq!(shown(b"\x11\0"), "{ saddr_fam=packet (unsupported) }");
        assert_eq!(shown(b"\xff\xff"), "unknown-family(65535)");
        assert_eq!(shown(b""), "unknown-family(0)");
    }
}
