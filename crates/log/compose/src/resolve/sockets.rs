//! Names of UNIX sockets: the kernel looks up the path in a socket address like a path argument.
//!
//! Source: unix_bind_bsd() and unix_find_bsd(), net/unix/af_unix.c.

use super::arg::Arg;
use super::calls::{call, LookupOutcome};
use super::directories::Directories;
use super::found;
use super::items::Items;
use abi::exit::{
    EAFNOSUPPORT, EBADF, EDESTADDRREQ, EFAULT, EINVAL, EMSGSIZE, ENOBUFS, ENOMEM, ENOTSOCK,
    EOPNOTSUPP,
};
use abi::{Argument, Verb};
use plan::{NameUse, Shape, ShapeKind};
use record::record::NameType;
use record::wire::{Event, Part};

const AF_UNIX: u16 = 1;
/// Errors of calls that end before the kernel looks up the path. With any other error it may have done so.
const NOT_LOOKED_UP: [i64; 9] = [
    EBADF,
    ENOMEM,
    EFAULT,
    ENOTSOCK,
    EDESTADDRREQ,
    EMSGSIZE,
    EOPNOTSUPP,
    EAFNOSUPPORT,
    ENOBUFS,
];
/// Numbers of socketcall(2): linux/net.h.
const SYS_SENDMMSG: u64 = 20;

/// What a call does with the path in its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressUse {
    Bound,
    Connected,
    SentTo,
}

impl AddressUse {
    fn of(event: &Event<'_>) -> Option<AddressUse> {
        let row = call(event);
        let does = |argument: Argument| event.header().args[0] == u64::from(argument.value);
        // socketcall(2) does what its first argument says.
        let by_argument = || {
            let mut others = row.others.iter();
            others
                .find(|other| other.2.is_some_and(does))
                .map(|other| other.0)
        };
        let verb = match row.shape.kind {
            ShapeKind::Socketcall => by_argument(),
            _ => row.verb,
        };

        match verb? {
            Verb::Bind => Some(AddressUse::Bound),
            Verb::Connect => Some(AddressUse::Connected),
            Verb::Send => Some(AddressUse::SentTo),
            _ => None,
        }
    }

    /// Whether the kernel may have looked up a valid path, by the result of the call. unix_bind_bsd() makes the entry
    /// before it sees that the socket has a name, unix_stream_connect() finds the other end before it looks at the state
    /// of the socket; both then fail with EINVAL.
    fn may_look_up(self, exit: Option<i64>) -> bool {
        match exit {
            Some(EINVAL) => self != AddressUse::SentTo,
            Some(exit) => !NOT_LOOKED_UP.contains(&exit),
            None => true,
        }
    }
}

/// Adds the items of the paths in the call's socket addresses that the kernel may have looked up.
pub(super) fn add(items: &mut Items, directories: &Directories, event: &Event<'_>) {
    let Some(use_) = AddressUse::of(event).filter(|use_| use_.may_look_up(event.exit())) else {
        return;
    };

    let mut paths: Vec<&[u8]> = event.message_addresses().filter_map(path_of).collect();
    if paths.is_empty() {
        paths.extend(event.sockaddr().and_then(path_of));
    }

    let is_single = paths.len() == 1;
    let mut added: Vec<&[u8]> = Vec::new();
    for path in paths {
        // The kernel has one name for the same path to the same object.
        if added.contains(&path) {
            continue;
        }
        added.push(path);
        add_one(items, directories, event, use_, (path, is_single));
    }
}

fn add_one(
    items: &mut Items,
    directories: &Directories,
    event: &Event<'_>,
    use_: AddressUse,
    (path, is_single): (&[u8], bool),
) {
    let succeeded = event.exit().is_some_and(record::record::is_success);
    let mut arg = Arg::of_kernel(directories, path, !succeeded);
    if use_ == AddressUse::Bound {
        arg.use_ = NameUse::Create;
    }

    if is_single {
        found::tell_inner(&mut items.view, event, &arg);
    }

    match use_ {
        AddressUse::Bound => {
            items.parent(&arg);
            if succeeded {
                let inode = items.view.made(&arg.path);
                items.item(&arg, NameType::Create, inode);
            }
        }
        // Of several messages, the result tells only that the first ones were sent.
        AddressUse::SentTo if !is_single => items.looked_up(&arg, true, LookupOutcome::Nothing),
        _ => items.looked_up(&arg, true, LookupOutcome::by(event)),
    }
}

/// Whether the call may have looked up a path that is not among the items.
pub(super) fn has_unknown(event: &Event<'_>, shape: &Shape) -> bool {
    if !shape.may_name_socket() {
        return false;
    }
    if !AddressUse::of(event).is_some_and(|use_| use_.may_look_up(event.exit())) {
        return false;
    }

    let is_lost = |part: Part<'_>| part.is_unreadable() || part.is_cut();
    if event.message_addresses().any(is_lost) {
        return true;
    }

    // What is in memory now is not what the kernel used, if that is not the address of a UNIX socket. Of the messages of
    // a socketcall(2), one is known.
    let has_several =
        call(event).shape.kind == ShapeKind::Socketcall && event.header().args[0] == SYS_SENDMMSG;
    let is_other =
        |part: Part<'_>| part.is_other_used() && (has_several || family_of(&part) != Some(AF_UNIX));
    event.sockaddr().is_some_and(is_other)
}

fn family_of(part: &Part<'_>) -> Option<u16> {
    let family = part.data.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*family))
}

/// `sun_path` of an address, up to its NUL; `None` for other families, unnamed and abstract addresses.
fn path_of<'a>(part: Part<'a>) -> Option<&'a [u8]> {
    let is_unix = !part.is_unreadable() && family_of(&part) == Some(AF_UNIX);
    if !is_unix {
        return None;
    }
    let path = part.data.get(2..)?;
    let end = path.iter().position(|&byte| byte == 0);
    let path = &path[..end.unwrap_or(path.len())];
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use crate::resolve::{Item, Resolver};
    use crate::static_system::StaticSystem;
    use crate::test_frame::TestFrame;
    use abi::exit::EISCONN;
    use record::record::NameType;
    use record::wire::{self, Event};
    use std::sync::Arc;

    /// Text and type of the items of a call in `/`, and whether it may have had another name.
    fn items(frame: TestFrame, call: &str) -> (Vec<(String, NameType)>, bool) {
        let bytes = frame.part(wire::TARSIER_PART_CWD, 0, b"").bytes();
        let event = Event::parse(&bytes).expect("a frame");
        let system: Arc<dyn crate::System> = Arc::new(StaticSystem::default());
        let mut resolver = Resolver::new(&system);
        let shape = abi::call(call).shape;
        resolver.resolve(&event, &shape);
        let of = |item: &Item| {
            let name = item.name.clone().unwrap_or_default();
            (String::from_utf8_lossy(&name).into_owned(), item.nametype)
        };
        let items = resolver.items().iter().map(of).collect();
        let names = resolver.names(&event, &shape);
        (items, names.iter().any(|name| name.is_unknown))
    }

    fn call(name: &str, exit: i64) -> TestFrame {
        let mut frame = TestFrame::of_named_call(name);
        frame.header.exit = exit;
        frame
    }

    const ADDRESS: u32 = wire::TARSIER_PART_SOCKADDR;
    const PATH: &[u8] = b"\x01\0/run/a";

    #[test]
    fn a_path_that_the_kernel_looked_up_is_an_item_although_the_call_failed() {
        let connect = call("connect", EISCONN).part(ADDRESS, 0, PATH);
        let item = ("/run/a".to_owned(), NameType::Unknown);
        assert_eq!(items(connect, "connect").0, [item]);
        let refused = call("sendto", super::ENOTSOCK).part(ADDRESS, 0, PATH);
        assert_eq!(items(refused, "sendto").0, []);
        let refused = call("sendto", super::EINVAL).part(ADDRESS, 0, PATH);
        assert_eq!(items(refused, "sendto").0, []);
    }

    #[test]
    fn each_message_may_have_a_path_and_one_that_does_not_fit_is_unknown() {
        let messages = call("sendmmsg", 2)
            .part(ADDRESS, 1, PATH)
            .part(ADDRESS, 1, b"\x01\0/run/b")
            .part(ADDRESS, 1, PATH);
        let (found, is_unknown) = items(messages, "sendmmsg");
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, is_unknown), (vec!["/run/a", "/run/b"], false));
        let more = call("sendmmsg", 20).part(ADDRESS, 1, PATH).flagged(
            ADDRESS,
            (1, wire::TARSIER_PART_CUT),
            b"",
        );
        assert!(items(more, "sendmmsg").1);
    }

    #[test]
    fn an_address_that_is_not_the_one_used_has_an_unknown_name() {
        let flags = (0, wire::TARSIER_PART_OTHER_USED);
        let swapped = call("connect", 0).flagged(ADDRESS, flags, b"\x02\0\0\x01");
        assert_eq!(items(swapped, "connect"), (vec![], true));
        let lost = wire::TARSIER_PART_OTHER_USED | wire::TARSIER_PART_UNREADABLE;
        let lost = call("connect", 0).flagged(ADDRESS, (0, lost), b"");
        assert!(items(lost, "connect").1);
        // An abstract address, and one of another family on a socket of that family.
        for address in [&b"\x01\0\0abstract"[..], b"\x02\0\0\x01"] {
            let plain = call("connect", 0).part(ADDRESS, 0, address);
            assert_eq!(items(plain, "connect"), (vec![], false));
        }
    }
}
