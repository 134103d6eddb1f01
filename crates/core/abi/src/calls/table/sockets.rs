//! Calls on sockets and on what waits for them: net/socket.c, fs/eventpoll.c.

use super::row;
use crate::calls::row::CallRow;
use crate::calls::SyscallClass::Write;
use crate::calls::{Argument, Meant, ObjectClass::Address, ShapeKind, Verb};

/// The functions that copy an address from user memory, and to it.
const IN: &str = "move_addr_to_kernel";
const OUT: &str = "move_addr_to_user";

const fn addresses(name: &'static str) -> CallRow {
    row(name).hooks(Address, &[IN])
}

const fn learns_address(name: &'static str) -> CallRow {
    row(name).hooks(Address, &[OUT])
}

/// What socketcall(2), the call of 32-bit programs for all of sockets, does with this first argument (`SYS_*` of
/// linux/net.h).
const fn by(verb: Verb, value: u32) -> (Verb, Meant, Option<Argument>) {
    let argument = Argument {
        index: 0,
        is_mask: false,
        value,
    };
    (verb, Meant::ByArgument, Some(argument))
}

pub(super) const ROWS: &[CallRow] = &[
    row("socket").uring(&[("socket", 0)]).verb(Verb::MakeSocket),
    row("socketpair").fd_pair(3),
    addresses("bind")
        .address(1, 2)
        .address_function("security_socket_bind")
        .class(Write)
        .uring(&[("bind", 0)])
        .verb(Verb::Bind),
    addresses("connect")
        .address(1, 2)
        .address_function("security_socket_connect")
        .uring(&[("connect", 0)])
        .verb(Verb::Connect),
    row("listen").uring(&[("listen", 0)]).verb(Verb::Listen),
    learns_address("accept")
        .address_out(1, 2)
        .uring(&[("accept", 1)])
        .verb(Verb::Accept),
    learns_address("accept4")
        .address_out(1, 2)
        .uring(&[("accept", 0)])
        .verb(Verb::Accept),
    learns_address("getsockname")
        .address_out(1, 2)
        .socket_commands(&[(5, 0)]),
    learns_address("getpeername")
        .address_out(1, 2)
        .socket_commands(&[(5, 1)]),
    row("send").verb(Verb::Send).wordless(),
    addresses("sendto")
        .address(4, 5)
        .uring(&[("send", 0), ("send_zc", 0)])
        .verb(Verb::Send),
    addresses("sendmsg")
        .message(1, false)
        .uring(&[("sendmsg", 0), ("sendmsg_zc", 0)])
        .verb(Verb::Send),
    addresses("sendmmsg")
        .kind(ShapeKind::Messages)
        .message(1, false)
        .verb(Verb::Send)
        .wordless(),
    row("recv").verb(Verb::Receive).wordless(),
    learns_address("recvfrom")
        .address_out(4, 5)
        .uring(&[("recv", 0), ("recv_zc", 0)])
        .verb(Verb::Receive),
    learns_address("recvmsg")
        .message(1, true)
        .uring(&[("recvmsg", 0)])
        .verb(Verb::Receive),
    row("recvmmsg").verb(Verb::Receive).wordless(),
    row("recvmmsg_time64").verb(Verb::Receive).wordless(),
    row("shutdown").uring(&[("shutdown", 0)]),
    row("getsockopt").socket_commands(&[(2, 0)]),
    row("setsockopt").socket_commands(&[(3, 0)]),
    row("ioctl")
        .uring(&[("uring_cmd", 0), ("uring_cmd128", 0)])
        .socket_commands(&[(2, 1), (3, 1), (5, 2)]),
    row("socketcall")
        .kind(ShapeKind::Socketcall)
        .hooks(Address, &[IN, OUT])
        .others(&[
            by(Verb::MakeSocket, 1),
            by(Verb::Bind, 2),
            by(Verb::Connect, 3),
            by(Verb::Listen, 4),
            by(Verb::Accept, 5),
            by(Verb::Accept, 18),
            by(Verb::Send, 9),
            by(Verb::Send, 11),
            by(Verb::Send, 16),
            by(Verb::Send, 20),
            by(Verb::Receive, 10),
            by(Verb::Receive, 12),
            by(Verb::Receive, 17),
            by(Verb::Receive, 19),
        ]),
    row("epoll_ctl").uring(&[("epoll_ctl", 0)]),
    row("epoll_wait").uring(&[("epoll_wait", 0)]),
    row("epoll_pwait").uring(&[("epoll_wait", 1)]),
    row("epoll_pwait2").uring(&[("epoll_wait", 2)]),
    row("io_uring_register").uring(&[("files_update", 0)]),
];
