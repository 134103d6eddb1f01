//! io_uring operations: their names, the system calls that do the same, and which of them the
//! kernel audits.

use crate::by_number;
use crate::calls::{calls, CallRow};
use crate::generated::uring;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::LazyLock;

/// Added to the number of a socket command, so that it is matched as an operation of its own: commands of
/// `IORING_OP_URING_CMD` on sockets do what several system calls do.
const SOCKET_COMMAND: u32 = 128;

/// The opcode of an operation: `IORING_OP_URING_CMD` for a socket command, which is matched under a number of its own.
pub fn uring_opcode(op: u32) -> u32 {
    const URING_CMD: u32 = 46;
    match socket_command(op) {
        Some(_) => URING_CMD,
        None => op,
    }
}

/// The number of a command on a socket, of which some have system calls of their own (`enum io_uring_socket_op` of
/// linux/io_uring.h); `SIOCINQ`, `SIOCOUTQ` and `TX_TIMESTAMP` are like ioctl.
fn socket_command(op: u32) -> Option<u32> {
    let command = op.checked_sub(SOCKET_COMMAND)?;
    (!like_command(command).is_empty()).then_some(command)
}

/// The name of an io_uring operation: `IORING_OP_*` of linux/io_uring.h in lower case, as in
/// audit-userspace (lib/uringop_table.h), which knows fewer of them.
pub fn uring_op_name(op: u32) -> Option<&'static str> {
    by_number(uring::BY_NUMBER, uring_opcode(op))
}

/// The inverse of [`uring_op_name`].
pub fn uring_op_number(name: &str) -> Option<u32> {
    uring::BY_NUMBER
        .iter()
        .find(|row| row.1 == name)
        .map(|row| row.0)
}

/// Every io_uring operation, by ascending number.
pub fn uring_ops() -> impl Iterator<Item = (u32, &'static str)> {
    uring::BY_NUMBER.iter().copied()
}

/// Whether the kernel audits operation `op`. It skips those marked `audit_skip` in
/// io_uring/opdef.c; the marks have not changed from Linux 6.12 to 7.3.
pub fn uring_op_is_audited(op: u32) -> bool {
    uring::AUDITED.binary_search(&op).is_ok()
}

/// Operations that do what no system call does, each with the reason.
#[cfg(test)]
#[rustfmt::skip]
const WITHOUT_CALL: &[(&str, &str)] = &[
    ("nop", "does nothing"),
    ("nop128", "does nothing"),
    ("poll_add", "waits until a file is ready, as io_uring_enter does, and transfers nothing"),
    ("poll_remove", "ends a request of the ring"),
    ("timeout", "waits, as io_uring_enter does"),
    ("timeout_remove", "ends or changes a request of the ring"),
    ("link_timeout", "limits the time of another request"),
    ("async_cancel", "ends a request of the ring"),
    ("provide_buffers", "gives the ring memory of the process"),
    ("remove_buffers", "takes that memory back"),
    ("msg_ring", "posts a completion to another ring of the process, or gives it a registered file"),
    ("fixed_fd_install", "gives a descriptor to a file that the process has opened, and that is recorded"),
];

/// The system calls that do what operation `op` does: those whose rows name it, by place. Empty for operations on the
/// ring itself, timeouts, polling, and unknown operations.
pub fn uring_op_calls(op: u32) -> &'static [&'static str] {
    if let Some(command) = socket_command(op) {
        return like_command(command);
    }
    let twins = uring_op_name(op).and_then(|name| twins().by_operation.get(name));
    twins.map_or(&[], Vec::as_slice)
}

fn like_command(command: u32) -> &'static [&'static str] {
    twins().by_command.get(&command).map_or(&[], Vec::as_slice)
}

/// The calls that are like operations, and like commands on sockets.
struct Twins {
    by_operation: HashMap<&'static str, Vec<&'static str>>,
    by_command: HashMap<u32, Vec<&'static str>>,
}

fn twins() -> &'static Twins {
    static TWINS: LazyLock<Twins> = LazyLock::new(|| Twins {
        by_operation: by_place(
            calls().flat_map(|row| row.twins.iter().map(move |twin| (row, *twin))),
        ),
        by_command: by_place(
            calls().flat_map(|row| row.socket_commands.iter().map(move |twin| (row, *twin))),
        ),
    });
    &TWINS
}

/// The names of the calls that are like each key, in the order of their places.
fn by_place<K: Eq + Hash>(
    twins: impl Iterator<Item = (&'static CallRow, (K, u8))>,
) -> HashMap<K, Vec<&'static str>> {
    let mut placed: Vec<(u8, K, &str)> = twins
        .map(|(row, (key, place))| (place, key, row.name))
        .collect();
    placed.sort_by_key(|twin| twin.0);

    let mut names: HashMap<K, Vec<&str>> = HashMap::new();
    for (_, key, name) in placed {
        names.entry(key).or_default().push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{syscall_number, Arch};

    #[test]
    fn io_uring_operations_have_their_kernel_numbers() {
        assert_eq!(uring_op_number("openat"), Some(18));
        assert_eq!(uring_op_number("read_fixed"), Some(4));
        assert_eq!(uring_op_name(57), Some("listen"));
        assert_eq!(uring_op_name(9999), None);
        assert_eq!(uring_op_name(64), Some("uring_cmd128"));
        assert!(uring_op_is_audited(18) && !uring_op_is_audited(22));
        // Since 6.16, and since 6.19.
        let late: Vec<u32> = (58..70).filter(|&op| uring_op_is_audited(op)).collect();
        assert_eq!(late, [62, 64]);
    }

    #[test]
    fn each_operation_has_a_call_that_does_the_same_or_a_reason_why_not() {
        for (op, name) in uring_ops() {
            let reason = WITHOUT_CALL.iter().find(|row| row.0 == name);
            assert_ne!(uring_op_calls(op).is_empty(), reason.is_none(), "{name}");
        }
        for (name, _) in WITHOUT_CALL {
            assert!(uring_op_number(name).is_some(), "{name}");
        }
    }

    #[test]
    fn commands_on_sockets_are_operations_like_calls_of_their_own() {
        assert_eq!(uring_op_calls(128 + 3)[0], "setsockopt");
        assert_eq!((uring_opcode(128 + 3), uring_opcode(18)), (46, 18));
        assert_eq!(uring_op_name(128 + 2), Some("uring_cmd"));
        for command in [2, 3, 5] {
            assert!(uring_op_number("uring_cmd") == Some(uring_opcode(128 + command)));
            for call in uring_op_calls(128 + command) {
                assert!(syscall_number(Arch::X86_64, call).is_some(), "{call}");
            }
        }
        // Others are ioctl, or not known.
        assert_eq!(uring_opcode(128), 128);
    }

    #[test]
    fn operations_and_their_calls_are_known_by_these_names() {
        for row in calls() {
            for (op, _) in row.twins {
                let (op, call) = (uring_op_number(op), row.name);
                assert!(op.is_some() && syscall_number(Arch::X86_64, call).is_some());
            }
        }
        assert_eq!(uring_op_calls(18), ["openat"]);
        assert!(uring_op_calls(0).is_empty() && uring_op_calls(9999).is_empty());
    }
}
