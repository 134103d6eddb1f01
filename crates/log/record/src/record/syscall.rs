//! SYSCALL and URINGOP: the first records of events that rules selected.

use super::Body;
use crate::{put, wire, RecordType, Stamp};
use abi::audit_result;

const MAX_ERRNO: i64 = 4095;

/// Whether a call with this result succeeded: is_syscall_success() in include/linux/ptrace.h.
pub fn is_success(exit: i64) -> bool {
    !(-MAX_ERRNO..=-1).contains(&exit)
}

/// SYSCALL (1300): audit_log_exit() and audit_log_task_info().
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syscall<'a> {
    /// AUDIT_ARCH_*
    pub arch: u32,
    /// Number of the call, as user space passed it.
    pub nr: i32,
    /// Written as `per=` unless it is 0 (PER_LINUX).
    pub personality: u32,
    /// The kernel's return value, ERESTART* included; `None` for exit and exit_group, which do not return.
    pub exit: Option<i64>,
    /// First four arguments, as registers.
    pub a: [u64; 4],
    /// Number of names that the call collected.
    pub items: u32,
    /// Whether something of the event did not fit and is missing: `cut=yes`. The kernel's records have no such field.
    pub is_cut: bool,
    /// Thread group id of the real parent.
    pub ppid: u32,
    /// Thread group id.
    pub pid: u32,
    /// Login uid; 4294967295 if unset.
    pub auid: u32,
    /// Ids as the initial user namespace sees them.
    pub uid: u32,
    #[allow(missing_docs)]
    pub gid: u32,
    #[allow(missing_docs)]
    pub euid: u32,
    #[allow(missing_docs)]
    pub suid: u32,
    #[allow(missing_docs)]
    pub fsuid: u32,
    #[allow(missing_docs)]
    pub egid: u32,
    #[allow(missing_docs)]
    pub sgid: u32,
    #[allow(missing_docs)]
    pub fsgid: u32,
    /// Name of the terminal ("pts0"); an empty name is printed as `(none)`.
    pub tty: &'a [u8],
    /// Login session; 4294967295 if unset.
    pub ses: u32,
    /// Name of the thread.
    pub comm: &'a [u8],
    /// Path of the executable; `None` for a task without one.
    pub exe: Option<&'a [u8]>,
    /// Label of the task, if a security module provides one.
    pub subj: Option<&'a [u8]>,
    /// Key of the rule; several are joined by byte 1.
    pub key: Option<&'a [u8]>,
}

impl<'a> Syscall<'a> {
    /// The record of a wire event, with `items`, `exe`, `subj` and `key`, which the event itself does not contain.
    pub fn from_event(
        event: &wire::Event<'a>,
        items: u32,
        exe: Option<&'a [u8]>,
        subj: Option<&'a [u8]>,
        key: Option<&'a [u8]>,
    ) -> Syscall<'a> {
        let header = event.header();
        let [a0, a1, a2, a3, ..] = header.args;
        Syscall {
            arch: header.arch,
            nr: header.nr,
            personality: header.personality,
            exit: event.exit(),
            a: [a0, a1, a2, a3],
            items,
            is_cut: event.has_flag(wire::TARSIER_TRUNCATED),
            ppid: header.ppid,
            pid: header.pid,
            auid: header.auid,
            uid: header.uid,
            gid: header.gid,
            euid: header.euid,
            suid: header.suid,
            fsuid: header.fsuid,
            egid: header.egid,
            sgid: header.sgid,
            fsgid: header.fsgid,
            tty: event.tty(),
            ses: header.ses,
            comm: event.comm(),
            exe,
            subj,
            key,
        }
    }
}

impl Syscall<'_> {
    /// Appends the fields of the call, which come before those of the task.
    pub(crate) fn write_call(&self, out: &mut Vec<u8>) {
        put::text(out, "arch=");
        put::hex(out, self.arch.into(), 0);
        put::text(out, " syscall=");
        put::signed(out, self.nr.into());
        if self.personality != 0 {
            put::text(out, " per=");
            put::hex(out, self.personality.into(), 0);
        }

        if let Some(exit) = self.exit {
            write_result(out, is_success(exit), exit);
        }

        let [a0, a1, a2, a3] = self.a;
        put::text(out, " a0=");
        put::hex(out, a0, 0);
        put::text(out, " a1=");
        put::hex(out, a1, 0);
        put::text(out, " a2=");
        put::hex(out, a2, 0);
        put::text(out, " a3=");
        put::hex(out, a3, 0);
        write_items(out, self.items, self.is_cut);
    }

    /// Appends the fields that depend on the task alone.
    pub(crate) fn write_task(&self, out: &mut Vec<u8>) {
        put::field(out, " ppid=", self.ppid);
        put::field(out, " pid=", self.pid);
        put::field(out, " auid=", self.auid);
        put::field(out, " uid=", self.uid);
        put::field(out, " gid=", self.gid);
        put::field(out, " euid=", self.euid);
        put::field(out, " suid=", self.suid);
        put::field(out, " fsuid=", self.fsuid);
        put::field(out, " egid=", self.egid);
        put::field(out, " sgid=", self.sgid);
        put::field(out, " fsgid=", self.fsgid);
        put::text(out, " tty=");
        out.extend_from_slice(if self.tty.is_empty() {
            b"(none)"
        } else {
            self.tty
        });
        put::field(out, " ses=", self.ses);
        put::text(out, " comm=");
        put::untrusted(out, self.comm);
        put::text(out, " exe=");
        put::untrusted_or_null(out, self.exe);
        put::label(out, " subj=", self.subj);
    }

    /// Appends the key, which comes after the fields of the task.
    pub(crate) fn write_key(&self, out: &mut Vec<u8>) {
        put::text(out, " key=");
        put::untrusted_or_null(out, self.key);
    }
}

impl Body for Syscall<'_> {
    fn kind(&self) -> RecordType {
        RecordType::SYSCALL
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.write_call(out);
        self.write_task(out);
        self.write_key(out);
    }

    /// Calls that have others inside show them by their first argument; a text with a blank may seem to have fields.
    fn decides_alone(&self) -> Option<[u32; 11]> {
        const I386: u32 = 0x4000_0003;
        const SOCKETCALL: i32 = 102;
        const IPC: i32 = 117;
        let has_others = self.arch == I386 && matches!(self.nr, SOCKETCALL | IPC);
        let has_blank = |text: &[u8]| text.contains(&b' ');
        if has_others || has_blank(self.tty) || self.subj.is_some_and(has_blank) {
            return None;
        }

        Some([
            self.arch,
            self.nr as u32,
            self.auid,
            self.uid,
            self.gid,
            self.euid,
            self.suid,
            self.fsuid,
            self.egid,
            self.sgid,
            self.fsgid,
        ])
    }
}

fn write_items(out: &mut Vec<u8>, items: u32, is_cut: bool) {
    put::field(out, " items=", items);
    if is_cut {
        put::text(out, " cut=yes");
    }
}

fn write_result(out: &mut Vec<u8>, success: bool, exit: i64) {
    put::text(
        out,
        if success {
            " success=yes exit="
        } else {
            " success=no exit="
        },
    );
    put::signed(out, audit_result(exit));
}

/// Fields about the task behind an operation that the kernel's own URINGOP lacks. They follow the ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doer<'a> {
    /// Login uid; 4294967295 if unset.
    pub auid: u32,
    /// Login session; 4294967295 if unset.
    pub ses: u32,
    /// Name of the thread that submitted the operation.
    pub comm: &'a [u8],
    /// Path of the executable; `None` for a task without one.
    pub exe: Option<&'a [u8]>,
}

/// URINGOP (1336): audit_log_uring().
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UringOp<'a> {
    /// IORING_OP_*
    pub op: i32,
    /// Whether the operation succeeded, and its result; `None` if it is not known.
    pub result: Option<(bool, i64)>,
    /// Number of names that the operation collected.
    pub items: u32,
    /// Whether something of the event did not fit and is missing: `cut=yes`. The kernel's records have no such field.
    pub is_cut: bool,
    /// Whether the operation goes on, so that an event of its own will have its result: `pending=yes`. The kernel's
    /// records have no such field.
    pub is_pending: bool,
    /// The pending event whose result this one has: `result_of=SEC.MSEC:SERIAL`. The kernel's records have no such
    /// field.
    pub result_of: Option<Stamp>,
    /// Thread group id of the real parent.
    pub ppid: u32,
    /// Thread group id.
    pub pid: u32,
    /// Ids as the initial user namespace sees them.
    pub uid: u32,
    #[allow(missing_docs)]
    pub gid: u32,
    #[allow(missing_docs)]
    pub euid: u32,
    #[allow(missing_docs)]
    pub suid: u32,
    #[allow(missing_docs)]
    pub fsuid: u32,
    #[allow(missing_docs)]
    pub egid: u32,
    #[allow(missing_docs)]
    pub sgid: u32,
    #[allow(missing_docs)]
    pub fsgid: u32,
    /// The task behind the operation; `None` in the kernel's own records.
    pub doer: Option<Doer<'a>>,
    /// Label of the task, if a security module provides one.
    pub subj: Option<&'a [u8]>,
    /// Key of the rule; several are joined by byte 1.
    pub key: Option<&'a [u8]>,
}

impl<'a> UringOp<'a> {
    /// The record of a wire event with the URING flag, with `items`, `exe`, `subj` and `key`, which the event itself
    /// does not contain. The operation succeeded unless its result is an error.
    pub fn from_event(
        event: &wire::Event<'a>,
        items: u32,
        exe: Option<&'a [u8]>,
        subj: Option<&'a [u8]>,
        key: Option<&'a [u8]>,
    ) -> UringOp<'a> {
        let header = event.header();
        UringOp {
            op: abi::uring_opcode(header.nr as u32) as i32,
            result: event.exit().map(|exit| (is_success(exit), exit)),
            items,
            is_cut: event.has_flag(wire::TARSIER_TRUNCATED),
            is_pending: event.has_flag(wire::TARSIER_PENDING),
            result_of: None,
            ppid: header.ppid,
            pid: header.pid,
            uid: header.uid,
            gid: header.gid,
            euid: header.euid,
            suid: header.suid,
            fsuid: header.fsuid,
            egid: header.egid,
            sgid: header.sgid,
            fsgid: header.fsgid,
            doer: Some(Doer {
                auid: header.auid,
                ses: header.ses,
                comm: event.comm(),
                exe,
            }),
            subj,
            key,
        }
    }
}

impl Body for UringOp<'_> {
    fn kind(&self) -> RecordType {
        RecordType::URINGOP
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "uring_op=");
        put::signed(out, self.op.into());
        if let Some((success, exit)) = self.result {
            write_result(out, success, exit);
        }

        write_items(out, self.items, self.is_cut);
        if self.is_pending {
            put::text(out, " pending=yes");
        }

        if let Some(stamp) = self.result_of {
            put::text(out, " result_of=");
            stamp.write_id(out);
        }

        put::field(out, " ppid=", self.ppid);
        put::field(out, " pid=", self.pid);
        put::field(out, " uid=", self.uid);
        put::field(out, " gid=", self.gid);
        put::field(out, " euid=", self.euid);
        put::field(out, " suid=", self.suid);
        put::field(out, " fsuid=", self.fsuid);
        put::field(out, " egid=", self.egid);
        put::field(out, " sgid=", self.sgid);
        put::field(out, " fsgid=", self.fsgid);

        if let Some(doer) = self.doer {
            put::field(out, " auid=", doer.auid);
            put::field(out, " ses=", doer.ses);
            put::text(out, " comm=");
            put::untrusted(out, doer.comm);
            put::text(out, " exe=");
            put::untrusted_or_null(out, doer.exe);
        }

        put::label(out, " subj=", self.subj);
        put::text(out, " key=");
        put::untrusted_or_null(out, self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_codes_show_as_eintr_and_only_errors_fail() {
        for code in [-512, -513, -514, -516] {
            assert_eq!(audit_result(code), -4);
        }
        assert_eq!(
            (audit_result(-515), audit_result(-511), audit_result(-517)),
            (-515, -511, -517)
        );
        assert!(is_success(0) && is_success(i64::MIN) && is_success(-4096));
        assert!(!is_success(-1) && !is_success(-4095) && !is_success(-512));
    }
}
