//! Records that only certain calls have: their arguments, or the objects that they acted on.

use super::Body;
use crate::{put, wire, RecordType};

macro_rules! kind {
    ($kind:ident) => {
        fn kind(&self) -> RecordType {
            RecordType::$kind
        }
    };
}

/// PROCTITLE (1327): audit_log_proctitle().
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proctitle<'a> {
    /// Start of the command line, arguments separated by NUL, at most 128 bytes; see [`Proctitle::trimmed`]. `None`
    /// prints `"(null)"`, with the quotes, as the kernel does.
    pub title: Option<&'a [u8]>,
}

impl<'a> Proctitle<'a> {
    /// The command line without the bytes at its end that are not printable, as audit_proctitle_rtrim() removes them.
    /// The title is `None` if nothing remains.
    pub fn trimmed(title: &'a [u8]) -> Proctitle<'a> {
        let title = &title[..title.len().min(wire::TARSIER_PROCTITLE_MAX as usize)];
        let end = title
            .iter()
            .rposition(|&byte| is_print(byte))
            .map(|last| last + 1);
        Proctitle {
            title: end.map(|end| &title[..end]),
        }
    }
}

/// The kernel's isprint(), whose ctype table is Latin-1.
fn is_print(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | 0xa0..=0xff)
}

impl Body for Proctitle<'_> {
    kind!(PROCTITLE);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "proctitle=");
        put::untrusted(out, self.title.unwrap_or(b"(null)"));
    }
}

/// SOCKADDR (1306).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockaddr<'a> {
    /// `struct sockaddr`, of the length that user space passed.
    pub saddr: &'a [u8],
}

impl Body for Sockaddr<'_> {
    kind!(SOCKADDR);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "saddr=");
        put::hex_bytes(out, self.saddr);
    }
}

/// SOCKETCALL (1304): for socketcall(2), which only 32-bit programs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socketcall {
    /// The number of arguments that the call has, at most 6.
    pub nargs: u32,
    /// The arguments.
    pub args: [u64; 6],
}

impl Body for Socketcall {
    kind!(SOCKETCALL);

    fn write(&self, out: &mut Vec<u8>) {
        put::field(out, "nargs=", self.nargs);
        for (number, &value) in self.args.iter().take(self.nargs as usize).enumerate() {
            put::text(out, " a");
            put::decimal(out, number as u64);
            out.push(b'=');
            put::hex(out, value, 0);
        }
    }
}

/// FD_PAIR (1317): the descriptors that pipe or socketpair created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FdPair {
    pub fd0: i32,
    pub fd1: i32,
}

impl Body for FdPair {
    kind!(FD_PAIR);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "fd0=");
        put::signed(out, self.fd0.into());
        put::text(out, " fd1=");
        put::signed(out, self.fd1.into());
    }
}

/// OBJ_PID (1318): audit_log_pid_context(). Ids are printed with `%d`, so that an unset one is -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ObjPid<'a> {
    pub opid: u32,
    pub oauid: u32,
    pub ouid: u32,
    pub oses: u32,
    /// Label of the process, if a security module provides one.
    pub obj: Option<&'a [u8]>,
    pub ocomm: &'a [u8],
}

impl<'a> ObjPid<'a> {
    /// The records of a wire event, one for each process that the call acted on.
    pub fn from_event(event: &wire::Event<'a>) -> impl Iterator<Item = ObjPid<'a>> {
        let parts = event
            .parts()
            .filter(|part| part.tag == wire::TARSIER_PART_OBJ_PID);
        parts.filter_map(|part| {
            let fixed: wire::tarsier_obj_pid = part.read()?;
            let comm = part
                .data
                .get(core::mem::offset_of!(wire::tarsier_obj_pid, comm)..)?;
            let ocomm = wire::until_nul(comm);
            Some(ObjPid {
                opid: fixed.pid,
                oauid: fixed.auid,
                ouid: fixed.uid,
                oses: fixed.ses,
                obj: None,
                ocomm,
            })
        })
    }
}

impl Body for ObjPid<'_> {
    kind!(OBJ_PID);

    fn write(&self, out: &mut Vec<u8>) {
        for (name, value) in [
            ("opid=", self.opid),
            (" oauid=", self.oauid),
            (" ouid=", self.ouid),
            (" oses=", self.oses),
        ] {
            put::text(out, name);
            put::signed(out, (value as i32).into());
        }

        put::label(out, " obj=", self.obj);
        put::text(out, " ocomm=");
        put::untrusted(out, self.ocomm);
    }
}

/// MMAP (1323).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Mmap {
    pub fd: i32,
    pub flags: u32,
}

impl Body for Mmap {
    kind!(MMAP);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "fd=");
        put::signed(out, self.fd.into());
        put::text(out, " flags=0x");
        put::hex(out, self.flags.into(), 0);
    }
}

/// The four capability sets of a task that audit prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Capabilities {
    pub permitted: u64,
    pub inheritable: u64,
    pub effective: u64,
    pub ambient: u64,
}

impl From<&wire::tarsier_caps> for Capabilities {
    fn from(caps: &wire::tarsier_caps) -> Self {
        Capabilities {
            permitted: caps.permitted,
            inheritable: caps.inheritable,
            effective: caps.effective,
            ambient: caps.ambient,
        }
    }
}

/// BPRM_FCAPS (1321): an execve that gained privileges from the capabilities of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BprmFcaps {
    /// Version of the file's capabilities.
    pub fver: u32,
    /// Permitted set of the file.
    pub fp: u64,
    /// Inheritable set of the file.
    pub fi: u64,
    /// Effective bit of the file.
    pub fe: i32,
    /// The sets of the task before the execve.
    pub old: Capabilities,
    /// The sets of the task after the execve.
    pub new: Capabilities,
    /// User id of the root user of the namespace for which the file has its capabilities.
    pub frootid: i32,
}

impl From<&wire::tarsier_fcaps> for BprmFcaps {
    fn from(fcaps: &wire::tarsier_fcaps) -> Self {
        BprmFcaps {
            fver: fcaps.file_version,
            fp: fcaps.file_permitted,
            fi: fcaps.file_inheritable,
            fe: fcaps.file_effective as i32,
            old: (&fcaps.old).into(),
            new: (&fcaps.new).into(),
            frootid: fcaps.file_rootid as i32,
        }
    }
}

impl Body for BprmFcaps {
    kind!(BPRM_FCAPS);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "fver=");
        put::hex(out, self.fver.into(), 0);
        put::capabilities(out, " fp=", self.fp);
        put::capabilities(out, " fi=", self.fi);
        put::text(out, " fe=");
        put::signed(out, self.fe.into());
        put::capabilities(out, " old_pp=", self.old.permitted);
        put::capabilities(out, " old_pi=", self.old.inheritable);
        put::capabilities(out, " old_pe=", self.old.effective);
        put::capabilities(out, " old_pa=", self.old.ambient);
        put::capabilities(out, " pp=", self.new.permitted);
        put::capabilities(out, " pi=", self.new.inheritable);
        put::capabilities(out, " pe=", self.new.effective);
        put::capabilities(out, " pa=", self.new.ambient);
        put::text(out, " frootid=");
        put::signed(out, self.frootid.into());
    }
}

/// CAPSET (1322): the sets after a successful capset(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Capset {
    pub pid: u32,
    pub caps: Capabilities,
}

impl From<&wire::tarsier_caps> for Capset {
    fn from(caps: &wire::tarsier_caps) -> Self {
        Capset {
            pid: caps.pid,
            caps: caps.into(),
        }
    }
}

impl Body for Capset {
    kind!(CAPSET);

    fn write(&self, out: &mut Vec<u8>) {
        put::field(out, "pid=", self.pid);
        put::capabilities(out, " cap_pi=", self.caps.inheritable);
        put::capabilities(out, " cap_pp=", self.caps.permitted);
        put::capabilities(out, " cap_pe=", self.caps.effective);
        put::capabilities(out, " cap_pa=", self.caps.ambient);
    }
}

/// KERN_MODULE (1330).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernModule<'a> {
    /// Name of the module; `None` prints `(null)`.
    pub name: Option<&'a [u8]>,
}

impl Body for KernModule<'_> {
    kind!(KERN_MODULE);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "name=");
        put::untrusted_or_null(out, self.name);
    }
}

/// BPF (1334) of a program that was loaded: bpf_audit_prog(), kernel/bpf/syscall.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfLoad {
    /// Id of the program.
    pub prog_id: u32,
}

impl Body for BpfLoad {
    kind!(BPF);

    fn write(&self, out: &mut Vec<u8>) {
        put::field(out, "prog-id=", self.prog_id);
        put::text(out, " op=LOAD");
    }
}

/// OPENAT2 (1337): `struct open_how`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Openat2 {
    pub flags: u64,
    pub mode: u64,
    pub resolve: u64,
    /// The flags that the kernel used, as far as they are known, if `flags` contradict them: the caller changed the
    /// structure during the call. Written as `used_oflag=`, which the kernel's record does not have.
    pub used: Option<u32>,
}

impl Body for Openat2 {
    kind!(OPENAT2);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "oflag=0");
        put::octal(out, self.flags, false);
        put::text(out, " mode=0");
        put::octal(out, self.mode, false);
        put::text(out, " resolve=0x");
        put::hex(out, self.resolve, 0);
        if let Some(used) = self.used {
            put::text(out, " used_oflag=0");
            put::octal(out, used.into(), false);
        }
    }
}

/// IPC (1303): the System V object that a call acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ipc<'a> {
    pub ouid: u32,
    pub ogid: u32,
    pub mode: u16,
    /// Label of the object, if a security module provides one.
    pub obj: Option<&'a [u8]>,
}

impl Body for Ipc<'_> {
    kind!(IPC);

    fn write(&self, out: &mut Vec<u8>) {
        put::field(out, "ouid=", self.ouid);
        put::field(out, " ogid=", self.ogid);
        put::text(out, " mode=");
        put::octal(out, self.mode.into(), true);
        put::label(out, " obj=", self.obj);
    }
}

/// IPC_SET_PERM (1311): the permissions that IPC_SET requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct IpcSetPerm {
    pub qbytes: u64,
    pub ouid: u32,
    pub ogid: u32,
    pub mode: u16,
}

impl Body for IpcSetPerm {
    kind!(IPC_SET_PERM);

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "qbytes=");
        put::hex(out, self.qbytes, 0);
        put::field(out, " ouid=", self.ouid);
        put::field(out, " ogid=", self.ogid);
        put::text(out, " mode=");
        put::octal(out, self.mode.into(), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proctitle_loses_what_is_not_printable_at_its_end() {
        assert_eq!(
            Proctitle::trimmed(b"cat\0x\0\0\n").title,
            Some(&b"cat\0x"[..])
        );
        assert_eq!(Proctitle::trimmed(b"\0").title, None);
        assert_eq!(Proctitle::trimmed(b"").title, None);
        assert_eq!(
            Proctitle::trimmed(&[b'a'; 300]).title.map(<[u8]>::len),
            Some(128)
        );
        let mut out = Vec::new();
        Proctitle { title: None }.write(&mut out);
        assert_eq!(out, b"proctitle=\"(null)\"");
    }
}
