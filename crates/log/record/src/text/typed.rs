//! Parses bodies into the structs of [`crate::record`].

use super::cursor::{Cursor, Scratch};
use super::{stamp_id, Record, TextError};
use crate::record::*;
use crate::RecordType;

type Result<T> = core::result::Result<T, TextError>;

/// A record of one of the types that Tarsier writes itself. EXECVE is not here: see [`super::ArgvBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the struct of the same name
pub enum Typed<'a> {
    Syscall(Syscall<'a>),
    UringOp(UringOp<'a>),
    Cwd(Cwd<'a>),
    PathItem(PathItem<'a>),
    Proctitle(Proctitle<'a>),
    Sockaddr(Sockaddr<'a>),
    Socketcall(Socketcall),
    FdPair(FdPair),
    ObjPid(ObjPid<'a>),
    Mmap(Mmap),
    BprmFcaps(BprmFcaps),
    Capset(Capset),
    KernModule(KernModule<'a>),
    Openat2(Openat2),
    Ipc(Ipc<'a>),
    IpcSetPerm(IpcSetPerm),
    DaemonStart(DaemonStart<'a>),
    DaemonAction(DaemonAction<'a>),
}

impl<'a> Typed<'a> {
    /// Parses the body of `record`; `None` if its type has no struct. The fields must be those of the struct, in its
    /// order. DAEMON_ records must have no extra fields.
    pub fn decode(record: &Record<'a>, scratch: &mut Scratch<'a>) -> Result<Option<Typed<'a>>> {
        let Some(kind) = record.kind else {
            return Ok(None);
        };

        let mut cursor = Cursor::new(record.body, record.body_at);
        let c = &mut cursor;
        let typed = match kind {
            RecordType::SYSCALL => Typed::Syscall(syscall(c, scratch)?),
            RecordType::URINGOP => Typed::UringOp(uring_op(c, scratch)?),
            RecordType::CWD => Typed::Cwd(Cwd {
                cwd: named(c, "cwd=", scratch)?,
            }),
            RecordType::PATH => Typed::PathItem(path_item(c, scratch)?),
            RecordType::PROCTITLE => Typed::Proctitle(proctitle(c, scratch)?),
            RecordType::SOCKADDR => {
                c.literal("saddr=")?;
                Typed::Sockaddr(Sockaddr {
                    saddr: c.bytes(scratch)?,
                })
            }
            RecordType::SOCKETCALL => Typed::Socketcall(socketcall(c)?),
            RecordType::FD_PAIR => Typed::FdPair(FdPair {
                fd0: signed(c, "fd0=")?,
                fd1: signed(c, " fd1=")?,
            }),
            RecordType::OBJ_PID => Typed::ObjPid(obj_pid(c, scratch)?),
            RecordType::MMAP => Typed::Mmap(Mmap {
                fd: signed(c, "fd=")?,
                flags: hex(c, " flags=0x")?,
            }),
            RecordType::BPRM_FCAPS => Typed::BprmFcaps(bprm_fcaps(c)?),
            RecordType::CAPSET => Typed::Capset(capset(c)?),
            RecordType::KERN_MODULE => {
                c.literal("name=")?;
                Typed::KernModule(KernModule {
                    name: c.untrusted_or_null(scratch)?,
                })
            }
            RecordType::OPENAT2 => Typed::Openat2(Openat2 {
                flags: octal(c, "oflag=0")?,
                mode: octal(c, " mode=0")?,
                resolve: hex(c, " resolve=0x")?,
                used: if c.skip(" used_oflag=0") {
                    Some(c.number(8, "an octal number")?)
                } else {
                    None
                },
            }),
            RecordType::IPC => {
                let (ouid, ogid) = (decimal(c, "ouid=")?, decimal(c, " ogid=")?);
                Typed::Ipc(Ipc {
                    ouid,
                    ogid,
                    mode: octal(c, " mode=")?,
                    obj: label(c, " obj=")?,
                })
            }
            RecordType::IPC_SET_PERM => Typed::IpcSetPerm(IpcSetPerm {
                qbytes: hex(c, "qbytes=")?,
                ouid: decimal(c, " ouid=")?,
                ogid: decimal(c, " ogid=")?,
                mode: octal(c, " mode=")?,
            }),
            RecordType::DAEMON_START => Typed::DaemonStart(daemon_start(c)?),
            kind if is_of_daemon(kind) => Typed::DaemonAction(daemon_action(c, kind)?),
            _ => return Ok(None),
        };

        cursor.end()?;
        Ok(Some(typed))
    }
}

impl Body for Typed<'_> {
    fn kind(&self) -> RecordType {
        self.body().kind()
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.body().write(out);
    }
}

impl Typed<'_> {
    fn body(&self) -> &dyn Body {
        match self {
            Typed::Syscall(record) => record,
            Typed::UringOp(record) => record,
            Typed::Cwd(record) => record,
            Typed::PathItem(record) => record,
            Typed::Proctitle(record) => record,
            Typed::Sockaddr(record) => record,
            Typed::Socketcall(record) => record,
            Typed::FdPair(record) => record,
            Typed::ObjPid(record) => record,
            Typed::Mmap(record) => record,
            Typed::BprmFcaps(record) => record,
            Typed::Capset(record) => record,
            Typed::KernModule(record) => record,
            Typed::Openat2(record) => record,
            Typed::Ipc(record) => record,
            Typed::IpcSetPerm(record) => record,
            Typed::DaemonStart(record) => record,
            Typed::DaemonAction(record) => record,
        }
    }
}

fn decimal<T: TryFrom<u64>>(c: &mut Cursor<'_>, name: &'static str) -> Result<T> {
    c.literal(name)?;
    c.number(10, "a decimal number")
}

fn hex<T: TryFrom<u64>>(c: &mut Cursor<'_>, name: &'static str) -> Result<T> {
    c.literal(name)?;
    c.number(16, "a hexadecimal number")
}

fn octal<T: TryFrom<u64>>(c: &mut Cursor<'_>, name: &'static str) -> Result<T> {
    c.literal(name)?;
    c.number(8, "an octal number")
}

fn signed<T: TryFrom<i64>>(c: &mut Cursor<'_>, name: &'static str) -> Result<T> {
    c.literal(name)?;
    c.signed("a decimal number, perhaps negative")
}

fn named<'a>(
    c: &mut Cursor<'a>,
    name: &'static str,
    scratch: &mut Scratch<'a>,
) -> Result<&'a [u8]> {
    c.literal(name)?;
    c.untrusted(scratch)
}

fn label<'a>(c: &mut Cursor<'a>, name: &'static str) -> Result<Option<&'a [u8]>> {
    if c.skip(name) {
        c.token("a security label").map(Some)
    } else {
        Ok(None)
    }
}

fn result(c: &mut Cursor<'_>) -> Result<Option<(bool, i64)>> {
    if !c.skip(" success=") {
        return Ok(None);
    }
    let success = match c.token("yes or no")? {
        b"yes" => true,
        b"no" => false,
        _ => return Err(c.error("success=yes or success=no")),
    };
    Ok(Some((success, signed(c, " exit=")?)))
}

fn syscall<'a>(c: &mut Cursor<'a>, scratch: &mut Scratch<'a>) -> Result<Syscall<'a>> {
    let (arch, nr) = (hex(c, "arch=")?, signed(c, " syscall=")?);
    let personality = if c.skip(" per=") {
        c.number(16, "a hexadecimal number")?
    } else {
        0
    };

    let exit = match result(c)? {
        Some((success, exit)) if is_success(exit) != success => {
            return Err(c.error("success= that agrees with exit="));
        }
        result => result.map(|(_, exit)| exit),
    };

    let a = [
        hex(c, " a0=")?,
        hex(c, " a1=")?,
        hex(c, " a2=")?,
        hex(c, " a3=")?,
    ];

    Ok(Syscall {
        arch,
        nr,
        personality,
        exit,
        a,
        items: decimal(c, " items=")?,
        is_cut: c.skip(" cut=yes"),
        ppid: decimal(c, " ppid=")?,
        pid: decimal(c, " pid=")?,
        auid: decimal(c, " auid=")?,
        uid: decimal(c, " uid=")?,
        gid: decimal(c, " gid=")?,
        euid: decimal(c, " euid=")?,
        suid: decimal(c, " suid=")?,
        fsuid: decimal(c, " fsuid=")?,
        egid: decimal(c, " egid=")?,
        sgid: decimal(c, " sgid=")?,
        fsgid: decimal(c, " fsgid=")?,
        tty: tty(c)?,
        ses: decimal(c, " ses=")?,
        comm: named(c, " comm=", scratch)?,
        exe: nullable(c, " exe=", scratch)?,
        subj: label(c, " subj=")?,
        key: nullable(c, " key=", scratch)?,
    })
}

fn tty<'a>(c: &mut Cursor<'a>) -> Result<&'a [u8]> {
    c.literal(" tty=")?;
    Ok(match c.token("the name of a terminal")? {
        b"(none)" => b"",
        tty => tty,
    })
}

fn nullable<'a>(
    c: &mut Cursor<'a>,
    name: &'static str,
    scratch: &mut Scratch<'a>,
) -> Result<Option<&'a [u8]>> {
    c.literal(name)?;
    c.untrusted_or_null(scratch)
}

fn uring_op<'a>(c: &mut Cursor<'a>, scratch: &mut Scratch<'a>) -> Result<UringOp<'a>> {
    Ok(UringOp {
        op: signed(c, "uring_op=")?,
        result: result(c)?,
        items: decimal(c, " items=")?,
        is_cut: c.skip(" cut=yes"),
        is_pending: c.skip(" pending=yes"),
        result_of: if c.skip(" result_of=") {
            Some(stamp_id(c)?)
        } else {
            None
        },
        ppid: decimal(c, " ppid=")?,
        pid: decimal(c, " pid=")?,
        uid: decimal(c, " uid=")?,
        gid: decimal(c, " gid=")?,
        euid: decimal(c, " euid=")?,
        suid: decimal(c, " suid=")?,
        fsuid: decimal(c, " fsuid=")?,
        egid: decimal(c, " egid=")?,
        sgid: decimal(c, " sgid=")?,
        fsgid: decimal(c, " fsgid=")?,
        doer: doer(c, scratch)?,
        subj: label(c, " subj=")?,
        key: nullable(c, " key=", scratch)?,
    })
}

fn doer<'a>(c: &mut Cursor<'a>, scratch: &mut Scratch<'a>) -> Result<Option<Doer<'a>>> {
    if !c.skip(" auid=") {
        return Ok(None);
    }
    Ok(Some(Doer {
        auid: c.number(10, "a login uid")?,
        ses: decimal(c, " ses=")?,
        comm: named(c, " comm=", scratch)?,
        exe: nullable(c, " exe=", scratch)?,
    }))
}

fn device(c: &mut Cursor<'_>, name: &'static str) -> Result<u32> {
    let (major, minor): (u32, u32) = (hex(c, name)?, hex(c, ":")?);
    if major >= 1 << 12 || minor >= 1 << 20 {
        return Err(c.error("a device number major:minor of 12 and 20 bits"));
    }
    Ok(major << 20 | minor)
}

fn path_item<'a>(c: &mut Cursor<'a>, scratch: &mut Scratch<'a>) -> Result<PathItem<'a>> {
    let item = decimal(c, "item=")?;
    let name = nullable(c, " name=", scratch)?;
    let inode = if c.skip(" inode=") {
        Some(Inode {
            ino: c.number(10, "the number of an inode")?,
            dev: device(c, " dev=")?,
            mode: octal(c, " mode=")?,
            ouid: decimal(c, " ouid=")?,
            ogid: decimal(c, " ogid=")?,
            rdev: device(c, " rdev=")?,
            label: 0,
        })
    } else {
        None
    };

    let obj = label(c, " obj=")?;
    c.literal(" nametype=")?;
    let expected = "NORMAL, PARENT, DELETE, CREATE or UNKNOWN";
    let error = c.error(expected);
    let word = c.token(expected)?;
    let known = NameType::ALL
        .iter()
        .find(|(_, name)| name.as_bytes() == word);
    let nametype = known.map(|(nametype, _)| *nametype).ok_or(error)?;
    let caps = if c.skip(" cap_fe=? cap_fver=? cap_fp=? cap_fi=?") {
        FileCaps::Unknown
    } else {
        FileCaps::Known {
            permitted: hex(c, " cap_fp=")?,
            inheritable: hex(c, " cap_fi=")?,
            effective: signed(c, " cap_fe=")?,
            version: hex(c, " cap_fver=")?,
            rootid: signed(c, " cap_frootid=")?,
        }
    };

    Ok(PathItem {
        item,
        name,
        inode,
        obj,
        nametype,
        caps,
    })
}

fn proctitle<'a>(c: &mut Cursor<'a>, scratch: &mut Scratch<'a>) -> Result<Proctitle<'a>> {
    let title = named(c, "proctitle=", scratch)?;
    Ok(Proctitle {
        title: (title != b"(null)").then_some(title),
    })
}

fn socketcall(c: &mut Cursor<'_>) -> Result<Socketcall> {
    const NAMES: [&str; 6] = [" a0=", " a1=", " a2=", " a3=", " a4=", " a5="];
    let nargs: u32 = decimal(c, "nargs=")?;
    let mut args = [0; 6];
    if nargs > 6 {
        return Err(c.error("at most 6 arguments"));
    }
    for (arg, name) in args.iter_mut().zip(NAMES).take(nargs as usize) {
        *arg = hex(c, name)?;
    }
    Ok(Socketcall { nargs, args })
}

fn obj_pid<'a>(c: &mut Cursor<'a>, scratch: &mut Scratch<'a>) -> Result<ObjPid<'a>> {
    let mut id = |name| signed::<i32>(c, name).map(|id| id as u32);
    let (opid, oauid, ouid, oses) = (id("opid=")?, id(" oauid=")?, id(" ouid=")?, id(" oses=")?);
    Ok(ObjPid {
        opid,
        oauid,
        ouid,
        oses,
        obj: label(c, " obj=")?,
        ocomm: named(c, " ocomm=", scratch)?,
    })
}

fn bprm_fcaps(c: &mut Cursor<'_>) -> Result<BprmFcaps> {
    Ok(BprmFcaps {
        fver: hex(c, "fver=")?,
        fp: hex(c, " fp=")?,
        fi: hex(c, " fi=")?,
        fe: signed(c, " fe=")?,
        old: capabilities(c, [" old_pp=", " old_pi=", " old_pe=", " old_pa="])?,
        new: capabilities(c, [" pp=", " pi=", " pe=", " pa="])?,
        frootid: signed(c, " frootid=")?,
    })
}

fn capabilities(c: &mut Cursor<'_>, names: [&'static str; 4]) -> Result<Capabilities> {
    let [permitted, inheritable, effective, ambient] = names;
    Ok(Capabilities {
        permitted: hex(c, permitted)?,
        inheritable: hex(c, inheritable)?,
        effective: hex(c, effective)?,
        ambient: hex(c, ambient)?,
    })
}

fn capset(c: &mut Cursor<'_>) -> Result<Capset> {
    let pid = decimal(c, "pid=")?;
    let (inheritable, permitted) = (hex(c, " cap_pi=")?, hex(c, " cap_pp=")?);
    let (effective, ambient) = (hex(c, " cap_pe=")?, hex(c, " cap_pa=")?);
    Ok(Capset {
        pid,
        caps: Capabilities {
            permitted,
            inheritable,
            effective,
            ambient,
        },
    })
}

fn word<'a>(c: &mut Cursor<'a>, name: &'static str) -> Result<&'a str> {
    c.literal(name)?;
    c.word("a word")
}

fn daemon_label<'a>(c: &mut Cursor<'a>) -> Result<Option<&'a [u8]>> {
    if c.skip(" subj=") {
        c.until_last(" res=").map(Some)
    } else {
        Ok(None)
    }
}

fn daemon_start<'a>(c: &mut Cursor<'a>) -> Result<DaemonStart<'a>> {
    Ok(DaemonStart {
        ver: word(c, "op=start ver=")?,
        format: word(c, " format=")?,
        kernel: word(c, " kernel=")?,
        auid: decimal(c, " auid=")?,
        pid: decimal(c, " pid=")?,
        uid: decimal(c, " uid=")?,
        ses: decimal(c, " ses=")?,
        subj: daemon_label(c)?,
        extra: &[],
        res: word(c, " res=")?,
    })
}

/// Whether a daemon's record of this type says what it did, and for whom.
fn is_of_daemon(kind: RecordType) -> bool {
    kind.is_in(RecordType::DAEMON_END, RecordType::DAEMON_RESUME) || kind == RecordType::DAEMON_ERR
}

fn daemon_action<'a>(c: &mut Cursor<'a>, kind: RecordType) -> Result<DaemonAction<'a>> {
    let op = word(c, "op=")?;
    let state = if c.skip(" state=") {
        Some(c.word("a word")?)
    } else {
        None
    };

    let auid = decimal(c, " auid=")?;
    let uid = if c.skip(" uid=") {
        Some(c.number(10, "a user id")?)
    } else {
        None
    };
    let ses = if c.skip(" ses=") {
        Some(c.number(10, "a session id")?)
    } else {
        None
    };

    let pid = decimal(c, " pid=")?;
    let subj = daemon_label(c)?;
    Ok(DaemonAction {
        kind,
        op,
        state,
        auid,
        uid,
        ses,
        pid,
        subj,
        extra: &[],
        res: word(c, " res=")?,
    })
}
