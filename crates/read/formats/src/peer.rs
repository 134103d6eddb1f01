//! Addresses of an event: of a call's socket, and those that records name as source and destination.

use super::parsed::{kind_of, text_of, Object, Parsed};
use super::value::Value;
use std::net::IpAddr;

/// The addresses.
pub(crate) struct Peer {
    /// Address of the call: `ip`, `port`, `path`, `type`, `version`, `family`.
    pub(crate) socket: Option<Object>,
    /// Where it comes from: `ip`, `port`, `address`.
    pub(crate) from: Object,
    /// Where it goes to.
    pub(crate) to: Object,
}

/// Names of an address and of its port: of IKE daemons and sshd, packets, SELinux, IPsec and audit itself.
type Ends = &'static [(&'static str, &'static [&'static str])];

const FROM: Ends = &[
    ("raddr", &["rport"]),
    ("saddr", &["src", "sport"]),
    ("src", &[]),
    ("faddr", &["fport"]),
    ("addr", &["rport", "port"]),
];
const TO: Ends = &[
    ("laddr", &["lport"]),
    ("daddr", &["dest", "dport"]),
    ("dst", &[]),
];

/// Addresses of an event.
///
/// `host`: this host's name, which programs write where no other host is concerned.
pub(crate) fn of(parsed: &Parsed, host: &str) -> Peer {
    let mut peer = Peer {
        socket: socket(parsed),
        from: named(parsed, FROM),
        to: named(parsed, TO),
    };
    if let Some(name) = remote_name(parsed, host, peer.from.contains_key("ip")) {
        // Some write the address twice, some only as a name.
        if name.parse::<IpAddr>().is_err() {
            peer.from.insert("hostname".into(), name.into());
        } else if !peer.from.contains_key("ip") {
            peer.from.insert("ip".into(), name.as_str().into());
            peer.from.insert("address".into(), name.into());
        }
    }

    // IKE daemons name the other end by the same field, whoever has begun.
    let has_begun = |record: &Object| {
        let direction = record
            .get("msg_fields")
            .and_then(|inner| inner.get("direction"));
        direction.is_some_and(|direction| direction == "initiator")
    };
    if parsed.records.iter().any(has_begun) {
        std::mem::swap(&mut peer.from, &mut peer.to);
    }

    peer
}

/// The first address that a record or the text of a program names so. `UNKNOWN` and `?` are no addresses.
fn named(parsed: &Parsed, names: Ends) -> Object {
    let is_call = |record: &&Object| matches!(kind_of(record), "SOCKADDR" | "SYSCALL" | "PATH");
    for record in parsed.records.iter().filter(|record| !is_call(record)) {
        let inner = record.get("msg_fields").and_then(Value::as_object);
        for fields in [Some(record), inner].into_iter().flatten() {
            for (address, ports) in names {
                let Some(end) = end(fields, address, ports) else {
                    continue;
                };
                return end;
            }
        }
    }

    Object::new()
}

/// The name of the host that an account comes from. Programs without one write that of this host, `host`, and unless an
/// address stands beside it (`has_address`), nothing else tells them apart: then it has to be another than a known one.
fn remote_name(parsed: &Parsed, host: &str, has_address: bool) -> Option<String> {
    let inner = |record: &Object| record.get("msg_fields")?.get("hostname").map(text_of);
    let name = parsed.records.iter().find_map(inner)?;
    let label = |name: &str| {
        name.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };

    let is_other = !host.is_empty() && label(host) != label(&name);
    let is_remote = has_address || is_other || name.parse::<IpAddr>().is_ok();
    let is_known = !name.is_empty() && name != "?" && name != "UNKNOWN";
    (is_known && is_remote).then_some(name)
}

fn end(fields: &Object, address: &str, ports: &[&str]) -> Option<Object> {
    let text = text_of(fields.get(address)?);
    let ip: IpAddr = text.split('%').next()?.parse().ok()?;
    let mut end = Object::new();
    end.insert("ip".into(), ip.to_string().into());
    end.insert("address".into(), text.into());
    if let Some(port) = ports.iter().find_map(|name| fields.get(name)) {
        end.insert("port".into(), port.clone());
    }
    Some(end)
}

/// The address of SOCKADDR, if it is one of a network or of a UNIX socket.
fn socket(parsed: &Parsed) -> Option<Object> {
    let record = parsed.record("SOCKADDR")?;
    let family = text_of(record.get("saddr_fam")?);
    let mut socket = Object::new();
    match family.as_str() {
        "inet" | "inet6" => {
            let address = text_of(record.get("laddr")?);
            let ip = address.split('%').next().unwrap_or_default();
            socket.insert("ip".into(), ip.into());
            socket.insert("port".into(), record.get("lport")?.clone());
            let version = if family == "inet" { 4 } else { 6 };
            socket.insert("version".into(), version.into());
            socket.insert("type".into(), format!("ipv{version}").into());
        }
        "local" => {
            let path = text_of(record.get("path")?).replacen('\0', "@", 1);
            socket.insert("path".into(), path.into());
            socket.insert("type".into(), "unix".into());
        }
        _ => return None,
    }

    Some(socket)
}
