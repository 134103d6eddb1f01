//! Names of UNIX sockets: the kernel looks up the path in a socket address like a path argument.
//!
//! Source: unix_bind_bsd() and unix_find_bsd(), net/unix/af_unix.c.

use super::arg::Arg;
use super::calls::{call_name, LookupOutcome};
use super::directories::Directories;
use super::items::Items;
use event::record::NameType;
use event::wire::Event;

const AF_UNIX: u16 = 1;
const ENOENT: i64 = -2;
const EAGAIN: i64 = -11;
const EACCES: i64 = -13;
const ENOTDIR: i64 = -20;
const ENAMETOOLONG: i64 = -36;
const ELOOP: i64 = -40;
const EPROTOTYPE: i64 = -91;
const EADDRINUSE: i64 = -98;
const ECONNREFUSED: i64 = -111;
/// Errors of calls in which the kernel looked up the path.
const LOOKED_UP: [i64; 9] = [
    ENOENT,
    EAGAIN,
    EACCES,
    ENOTDIR,
    ENAMETOOLONG,
    ELOOP,
    EPROTOTYPE,
    EADDRINUSE,
    ECONNREFUSED,
];

/// Adds the items of the path in the call's socket address, if it has one and the kernel looked it up.
pub(super) fn add(items: &mut Items, directories: &Directories, event: &Event<'_>) {
    let succeeded = event.exit().is_some_and(event::record::is_success);
    let looked_up = |exit| LOOKED_UP.contains(&exit);
    if !succeeded && !event.exit().is_some_and(looked_up) {
        return;
    }
    let Some(path) = socket_path(event) else {
        return;
    };
    let arg = Arg::of_kernel(directories, path, !succeeded);
    match call_name(event) {
        Some("bind") => {
            items.parent(&arg);
            if succeeded {
                let inode = items.view.inode(&arg.path, false);
                items.item(&arg, NameType::Create, inode);
            }
        }
        Some("connect" | "sendto" | "sendmsg" | "sendmmsg") => {
            items.looked_up(&arg, true, LookupOutcome::by(event));
        }
        _ => {}
    }
}

/// `sun_path` of the call's address, up to its NUL; `None` for other families, unnamed and abstract addresses.
fn socket_path<'a>(event: &Event<'a>) -> Option<&'a [u8]> {
    let address = event.sockaddr().filter(|part| !part.is_unreadable())?.data;
    let (family, path) = address.split_first_chunk::<2>()?;
    let end = path.iter().position(|&byte| byte == 0);
    let path = &path[..end.unwrap_or(path.len())];
    (u16::from_ne_bytes(*family) == AF_UNIX && !path.is_empty()).then_some(path)
}
