//! Labels under which an event is counted, each appended to a text.

use super::UNSET;
use crate::facts::{Facts, NO_LOGIN};
use crate::row::Row;
use std::io::Write;

/// The login user: the name if the log has it, else the id.
pub(super) fn user(row: &Row<'_>, out: &mut Vec<u8>) {
    match (row.facts.ids.auid, &row.auid_name) {
        (NO_LOGIN | UNSET, _) => out.extend_from_slice(b"no login"),
        (_, Some(name)) => out.extend_from_slice(name),
        (auid, None) => append(out, format_args!("auid {auid}")),
    }
}

/// The login session.
pub(super) fn session(facts: &Facts<'_>, out: &mut Vec<u8>) {
    match facts.ids.session {
        NO_LOGIN | UNSET => out.extend_from_slice(b"no session"),
        session => append(out, format_args!("session {session}")),
    }
}

/// The program, or else the name of the task, and the process id.
pub(super) fn process(facts: &Facts<'_>, out: &mut Vec<u8>) {
    let program = facts.exe.as_deref().or(facts.comm.as_deref());
    out.extend_from_slice(program.unwrap_or(b"(no program)"));
    if facts.ids.pid >= 0 {
        append(out, format_args!(" [{}]", facts.ids.pid));
    }
}

/// The error and the call, of an event whose first record is of type `kind`.
pub(super) fn error(exit: Option<i64>, call: Option<&str>, kind: i32, out: &mut Vec<u8>) {
    let errno = exit.and_then(i64::checked_neg);
    let errno = errno.and_then(|errno| i32::try_from(errno).ok());
    match errno.filter(|errno| *errno > 0) {
        Some(errno) => match abi::errno_name(errno) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => append(out, format_args!("errno {errno}")),
        },
        None => {
            let name = abi::record_type_name(u32::try_from(kind).unwrap_or(0));
            out.extend_from_slice(name.unwrap_or("no result").as_bytes());
        }
    }

    if let Some(call) = call {
        out.extend_from_slice(b" of ");
        out.extend_from_slice(call.as_bytes());
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // A vector takes everything.
    let _ = out.write_fmt(text);
}
