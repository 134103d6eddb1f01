//! The records that Tarsier writes itself, borrowed from whoever knows the facts.
//!
//! Field order, spelling and number bases are those of Linux 6.1 and 6.18, kernel/auditsc.c (the function is named at
//! each type). A field that the kernel leaves out when a security module gives no label is an `Option`.

mod daemon;
mod execve;
mod object;
mod path;
mod queue;
mod syscall;

pub use daemon::{DaemonAction, DaemonStart};
pub use execve::{Execve, EXECVE_RECORD_MAX};
pub use object::{
    BprmFcaps, Capabilities, Capset, FdPair, Ipc, IpcSetPerm, KernModule, Mmap, ObjPid, Openat2,
    Proctitle, Sockaddr, Socketcall,
};
pub use path::{Cwd, FileCaps, Inode, NameType, PathItem};
pub use queue::{MqAttr, MqGetsetattr, MqNotify, MqOpen, MqSendrecv, TimeAdjntpval, TimeInjoffset};
pub use syscall::{fixed_exit, is_success, Doer, Syscall, UringOp};

use crate::RecordType;

/// A record of one line: its type and the text after `msg=audit(…): `.
pub trait Body {
    /// Its type.
    fn kind(&self) -> RecordType;

    /// Appends the body, without the newline.
    fn write(&self, out: &mut Vec<u8>);
}

/// A record whose body was written before, by [`Body::write`] of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a> {
    /// Its type.
    pub kind: RecordType,
    /// Its body.
    pub text: &'a [u8],
}

impl Body for Written<'_> {
    fn kind(&self) -> RecordType {
        self.kind
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text);
    }
}
