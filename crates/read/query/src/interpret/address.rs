//! Socket addresses.

use super::MachineNames;
use crate::number::decode_whole;
use crate::Dialect;
use abi::names::{find, ADDRESS_FAMILIES, LATER_ADDRESS_FAMILIES};
use record::SockaddrView;
use std::net::Ipv6Addr;

/// Families whose addresses auparse takes only if they are long enough.
const CHECKED: [i32; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];
/// Bytes that auparse reads of an address, whether the record has them or not.
const READ_BYTES: usize = 16;

/// The address in the bytes of `saddr=`, of which `length` were whole: a last digit without a second one, and what stands
/// behind, count for names and for families whose length nobody checks. `None` if there is no family.
pub(crate) fn decoded(bytes: &[u8], length: usize) -> Option<SockaddrView<'_>> {
    let whole = SockaddrView::parse(&bytes[..length.min(bytes.len())])?;
    match whole {
        SockaddrView::Unix(_) => SockaddrView::parse(bytes),
        SockaddrView::Short(family) if !CHECKED.contains(&family.into()) => {
            SockaddrView::parse(bytes)
        }
        _ => Some(whole),
    }
}

/// The address that a `saddr=` has in hex.
pub(super) fn socket_address(value: &[u8], dialect: Dialect, machine: &MachineNames) -> Vec<u8> {
    let Some(mut bytes) = decode_whole(value) else {
        return super::unknown("malformed-host", value);
    };
    let length = value.len() / 2;
    let least = if dialect.is_compat() { READ_BYTES } else { 2 };
    bytes.resize(bytes.len().max(length).max(least), 0);

    let address = decoded(&bytes, length.max(2));
    let family = address.map_or(0, |address| address.family());
    let name = find(ADDRESS_FAMILIES, family.into())
        .or_else(|| find(LATER_ADDRESS_FAMILIES, family.into()));
    let (Some(name), Some(address)) = (name, address) else {
        return format!("unknown-family({family})").into();
    };

    let mut whole = [b"{ saddr_fam=", name.as_bytes(), b" "].concat();
    details(address, length, dialect, machine, &mut whole);
    whole.extend_from_slice(b" }");
    if dialect.is_compat() {
        // C's strings end at a zero.
        whole.truncate(memchr::memchr(0, &whole).unwrap_or(whole.len()));
    }
    whole
}

/// Appends the parts of an address of `length` bytes, as auparse shows them.
fn details(
    address: SockaddrView<'_>,
    length: usize,
    dialect: Dialect,
    machine: &MachineNames,
    out: &mut Vec<u8>,
) {
    let mut text = |text: &[u8]| out.extend_from_slice(text);
    match address {
        SockaddrView::Unnamed if length == 2 => text(b"unnamed socket"),
        SockaddrView::Unix(path) => {
            text(b"path=");
            text(path.strip_prefix(b"\0").unwrap_or(path));
        }
        SockaddrView::Inet(_, port) | SockaddrView::Inet6(_, port, _) => {
            text(b"laddr=");
            address.write_host(out);
            if let SockaddrView::Inet6(host, _, scope @ 1..) = address {
                out.push(b'%');
                out.extend(scope_name(host, scope, dialect, machine));
            }
            out.extend_from_slice(format!(" lport={port}").as_bytes());
        }
        SockaddrView::Netlink(pid) => {
            let family = address.family();
            text(format!("nlnk-fam={family} nlnk-pid={pid}").as_bytes());
        }
        SockaddrView::Ax25(call) => {
            text(b"call=");
            text(call);
        }
        SockaddrView::Atmpvc(interface) => text(format!("int={interface}").as_bytes()),
        SockaddrView::X25(address) => {
            text(b"laddr=");
            text(address);
        }
        SockaddrView::Other(_) => text(b"(unsupported)"),
        SockaddrView::Short(_) | SockaddrView::Unnamed => text(too_short(address.family())),
    }
}

/// The interface of an address: its number, since the log is of another time or host. ausearch asks this machine for its
/// name.
fn scope_name(host: Ipv6Addr, scope: u32, dialect: Dialect, machine: &MachineNames) -> Vec<u8> {
    // As getnameinfo(3): of those that are sent on one link only.
    let is_of_link = host.is_unicast_link_local() || host.segments()[0] & 0xff0f == 0xff02;
    let asks = dialect.is_compat() && is_of_link;
    let name = asks.then(|| (machine.interface)(scope));
    name.flatten().unwrap_or_else(|| scope.to_string().into())
}

fn too_short(family: u16) -> &'static [u8] {
    match i32::from(family) {
        libc::AF_INET6 => b"sockaddr6 len too short",
        libc::AF_NETLINK => b"len too short",
        _ => b"sockaddr len too short",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_by_family() {
        let shown = |value: &str| {
            let text = socket_address(value.as_bytes(), Dialect::Own, &MachineNames::none());
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
        let link_local =
            "0A000035000000 00FE800000000000000000000000000001 02000000".replace(' ', "");
        assert_eq!(
            shown(&link_local),
            "{ saddr_fam=inet6 laddr=fe80::1%2 lport=53 }"
        );
        assert_eq!(
            shown("0A0000350000000000000000000000000000000000000001"),
            "{ saddr_fam=inet6 sockaddr6 len too short }"
        );
        assert_eq!(shown("0200"), "{ saddr_fam=inet sockaddr len too short }");
    }

    #[test]
    fn the_interface_of_this_machine_is_only_asked_for_by_the_imitation() {
        let machine = MachineNames {
            interface: |number| (number == 2).then(|| b"eth0".to_vec()),
            ..MachineNames::none()
        };
        let value = b"0A00003500000000FE80000000000000000000000000000102000000";
        for (dialect, wanted) in [(Dialect::Compat, "eth0"), (Dialect::Own, "2")] {
            let text = socket_address(value, dialect, &machine);
            let wanted = format!("{{ saddr_fam=inet6 laddr=fe80::1%{wanted} lport=53 }}");
            assert_eq!(String::from_utf8_lossy(&text), wanted);
        }
    }
}
