//! A process that a signal or ptrace was for, from /proc: where the programs could not describe
//! it themselves.

use event::record::ObjPid;

/// What OBJ_PID says.
pub(super) struct Target {
    pid: u32,
    auid: u32,
    uid: u32,
    ses: u32,
    comm: Vec<u8>,
}

/// Process `pid`, if it is one process and is still there.
pub(super) fn describe(pid: i32) -> Option<Target> {
    let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).ok();
    let number =
        |name: &str| -> Option<u32> { String::from_utf8(read(name)?).ok()?.trim().parse().ok() };
    let status = String::from_utf8_lossy(&read("status")?).into_owned();
    let field = |name: &str| -> Option<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let mut comm = read("comm")?;
    comm.pop();
    Some(Target {
        pid: field("Tgid:")?,
        auid: number("loginuid").unwrap_or(u32::MAX),
        uid: field("Uid:")?,
        ses: number("sessionid").unwrap_or(u32::MAX),
        comm,
    })
}

impl Target {
    /// The record.
    pub(super) fn record(&self) -> ObjPid<'_> {
        ObjPid {
            opid: self.pid,
            oauid: self.auid,
            ouid: self.uid,
            oses: self.ses,
            obj: None,
            ocomm: &self.comm,
        }
    }
}
