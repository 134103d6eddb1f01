//! The records that Tarsier writes itself. They borrow their texts from the caller.
//!
//! Field order, spelling and number bases are those of Linux 6.1 and 6.18, kernel/auditsc.c (each type names the
//! function). A field that the kernel leaves out if no security module provides a label is an `Option`.

mod daemon;
mod execve;
mod object;
mod path;
mod queue;
mod syscall;

pub use daemon::{DaemonAction, DaemonStart};
pub use execve::{Execve, EXECVE_RECORD_MAX};
pub use object::{
    BpfLoad, BprmFcaps, Capabilities, Capset, FdPair, Ipc, IpcSetPerm, KernModule, Mmap, ObjPid,
    Openat2, Proctitle, Sockaddr, Socketcall,
};
pub use path::{Cwd, FileCaps, Inode, NameType, PathItem};
pub use queue::{MqAttr, MqGetsetattr, MqNotify, MqOpen, MqSendrecv, TimeAdjntpval, TimeInjoffset};
pub use syscall::{is_success, Doer, Syscall, UringOp};

use crate::RecordType;

/// A record of one line: its type and the text after `msg=audit(…): `.
pub trait Body {
    /// The type of the record.
    fn kind(&self) -> RecordType;

    /// Appends the body, without the newline.
    fn write(&self, out: &mut Vec<u8>);

    /// The numbers that alone decide what ENRICHED adds to the record; `None` if its other text may have a part in it.
    fn decides_alone(&self) -> Option<[u32; 11]> {
        None
    }
}

/// A record whose body has already been written, by [`Body::write`] of a record of the same type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a> {
    /// The type of the record.
    pub kind: RecordType,
    /// The body.
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
