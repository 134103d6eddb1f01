//! Opens an object for its identity only, and announces before each step that may take long what it
//! will wait for.
//!
//! O_PATH opens no device, no FIFO and no file's contents, and triggers no automount at the end of a path.

use crate::lookup::devices::Devices;
use crate::lookup::message::{is_path, Asker};
use crate::lookup::object::{
    changed, dev_of, is_directory, is_link, is_sticky_for_all, stat, Fault, FileTime,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    fstatfs, openat, openat2, readlinkat, Mode, OFlags, ResolveFlags, Statx, StatxFlags, CWD,
};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Largest path that the kernel takes in one look-up, in bytes with the NUL: PATH_MAX of linux/limits.h.
const PATH_MAX: usize = 4096;
/// Symbolic links in a path: MAXSYMLINKS of linux/namei.h.
const LINKS_MAX: u32 = 40;
/// Limit of the steps of a walk, so that links to long paths do not take unbounded time.
const STEPS_MAX: u32 = 100_000;
const PROC_SUPER_MAGIC: i64 = 0x9fa0;
/// Inode number of the top directory of proc(5), whose links mean the process that follows them: linux/proc_ns.h.
const PROC_ROOT_INO: u64 = 1;

/// Decides whether file systems may be waited for, and how long.
pub(crate) trait Gate {
    /// Whether a step that may have to wait for the file system with device number `dev` may be taken.
    fn may_wait(&mut self, dev: u32) -> bool;

    /// Whether the time for the question is over.
    fn is_over(&self) -> bool {
        false
    }
}

/// Access to objects for one question.
pub(crate) struct Access<'a> {
    gate: &'a mut dyn Gate,
    devices: &'a mut Devices,
    /// The process that saw the path, or at whose root directory or other links it begins.
    process: Option<u32>,
    /// Bytes of the path that lead to the root directory of the process.
    prefix: usize,
    /// The mount of the last object whose device was wanted, as it is now, and the device.
    last: Option<(u64, u32)>,
    /// Receiver of the path's directories and links, if they are to be noted.
    trail: Option<&'a mut Trail>,
}

/// Record of the directories and links that a walk has passed.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// The latest change of a directory or link; `None` before the first.
    pub(crate) changed: Option<FileTime>,
    /// The file systems of the directories and links: `f_type` of statfs(2).
    pub(crate) kinds: BTreeSet<i64>,
}

impl Trail {
    fn note(&mut self, stat: &Statx, kind: i64) {
        self.changed = self.changed.max(Some(changed(stat)));
        self.kinds.insert(kind);
    }
}

impl<'a> Access<'a> {
    /// Access to the objects at `path`.
    pub(crate) fn to(path: &[u8], gate: &'a mut dyn Gate, devices: &'a mut Devices) -> Access<'a> {
        Access::of(path, Asker::default(), gate, devices)
    }

    /// Access to the objects at the path of a question of `asker`.
    pub(crate) fn of(
        path: &[u8],
        asker: Asker,
        gate: &'a mut dyn Gate,
        devices: &'a mut Devices,
    ) -> Access<'a> {
        let prefix = match asker.prefix {
            0 if asker.pid == 0 => {
                // The link itself is not below it.
                let root = root_of_process(path).filter(|&len| len < path.len());
                root.unwrap_or(0)
            }
            prefix => prefix as usize,
        };

        Access {
            gate,
            devices,
            process: Some(asker.pid).filter(|&pid| pid != 0).or(process_of(path)),
            prefix: prefix.min(path.len()),
            last: None,
            trail: None,
        }
    }

    /// The same, but every directory and link of the path is looked at, and noted in `trail`.
    pub(crate) fn noting(self, trail: &'a mut Trail) -> Access<'a> {
        Access {
            trail: Some(trail),
            ..self
        }
    }

    /// Bytes of the path that lead to the root directory of the process.
    pub(crate) fn prefix(&self) -> usize {
        self.prefix
    }

    fn note(&mut self, object: &OwnedFd) -> Result<(), Fault> {
        if self.trail.is_none() {
            return Ok(());
        }

        let stat = stat(object)?;
        if !self.may_wait(object, &stat) {
            return Err(Fault::NotNow);
        }

        let kind = fstatfs(object)?.f_type as i64;
        if let Some(trail) = &mut self.trail {
            trail.note(&stat, kind);
        }
        Ok(())
    }

    /// The device of the object's file system, as the kernel has it.
    pub(crate) fn device(&mut self, object: &OwnedFd, stat: &Statx) -> u32 {
        if let (Some((mount, dev)), true) = (self.last, has_mount(stat)) {
            if mount == stat.stx_mnt_id {
                return dev;
            }
        }
        let dev = self.devices.of(object, stat, self.process);
        // All objects of a mount are of one file system. It stays while the question is answered: each
        // object is open until the next one is.
        self.last = has_mount(stat).then_some((stat.stx_mnt_id, dev));
        dev
    }

    /// Whether a step that may have to wait for the object's file system may be taken.
    pub(crate) fn may_wait(&mut self, object: &OwnedFd, stat: &Statx) -> bool {
        let dev = self.device(object, stat);
        self.gate.may_wait(dev)
    }

    /// Whether the time for the question is over.
    pub(crate) fn is_over(&self) -> bool {
        self.gate.is_over()
    }
}

/// Opens the object at the absolute `path` with O_PATH; without `follow`, a symbolic link at its
/// end is opened itself.
pub(crate) fn open(path: &[u8], follow: bool, access: &mut Access<'_>) -> Result<OwnedFd, Fault> {
    open_through(path, follow, true, access)
}

/// Opens the object that `path` leads to, like realpath(3), which reads links that the kernel does not let it follow.
pub(crate) fn open_every_link(path: &[u8], access: &mut Access<'_>) -> Result<OwnedFd, Fault> {
    open_through(path, true, false, access)
}

fn open_through(
    path: &[u8],
    follow: bool,
    obeys_protection: bool,
    access: &mut Access<'_>,
) -> Result<OwnedFd, Fault> {
    if !is_path(path) {
        return Err(Fault::Missing);
    }

    let root = Root::of(path, access)?;
    let rest = &path[access.prefix..];
    if access.trail.is_none() {
        if let Some(found) = root.in_memory(rest, follow) {
            return found;
        }
    }

    let mut walk = Walk::new(root, obeys_protection)?;
    walk.go(rest, follow, access)?;
    walk.end()
}

/// Opens the directory `path`, or the deepest one on the way there that exists.
pub(crate) fn open_deepest(path: &[u8], access: &mut Access<'_>) -> Result<OwnedFd, Fault> {
    let root = Root::of(path, access)?;
    // It has to be a directory.
    let rest = [&path[access.prefix..], b"/"].concat();
    if let Some(Ok(found)) = root.in_memory(&rest, true) {
        return Ok(found);
    }
    let mut walk = Walk::new(root, true)?;
    match walk.go(&rest, true, access) {
        Ok(()) | Err(Fault::Missing) => walk.end(),
        Err(fault) => Err(fault),
    }
}

/// The directory above `dir`; `None` above the root directory that the first bytes of the question's path lead to, and
/// above one that has none above it.
pub(crate) fn parent(
    dir: &OwnedFd,
    root: &Root,
    access: &mut Access<'_>,
) -> Result<Option<OwnedFd>, Fault> {
    let own = stat(dir)?;
    if same(&own, &root.stat) {
        return Ok(None);
    }
    let found = step(dir, b"..", access)?;
    let is_top = same(&stat(&found)?, &own);
    Ok((!is_top).then_some(found))
}

fn through() -> OFlags {
    OFlags::PATH | OFlags::CLOEXEC
}

/// Whether these are the same object at the same mount, both of them open.
fn same(one: &Statx, other: &Statx) -> bool {
    let place = |stat: &Statx| (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino);
    let mount = |stat: &Statx| has_mount(stat).then_some(stat.stx_mnt_id);
    place(one) == place(other) && mount(one) == mount(other)
}

fn has_mount(stat: &Statx) -> bool {
    stat.stx_mask & StatxFlags::MNT_ID.bits() != 0
}

/// The root directory that a question's path is below.
pub(crate) struct Root {
    dir: OwnedFd,
    stat: Statx,
    /// Whether it is that of the helper.
    is_own: bool,
}

impl Root {
    /// The root directory of a question's path.
    pub(crate) fn of(path: &[u8], access: &mut Access<'_>) -> Result<Root, Fault> {
        let prefix = &path[..access.prefix];
        let dir = match prefix.is_empty() {
            true => openat(CWD, "/", through(), Mode::empty())?,
            // The kernel follows this link without asking a file system. If it is not there, the process has ended.
            false if root_of_process(prefix) == Some(prefix.len()) => {
                let found = openat(CWD, prefix, through(), Mode::empty());
                found.map_err(|_| Fault::NotNow)?
            }
            false => {
                let prefix_len = std::mem::take(&mut access.prefix);
                let found = open(prefix, true, access);
                access.prefix = prefix_len;
                found?
            }
        };

        Ok(Root {
            stat: stat(&dir)?,
            dir,
            is_own: prefix.is_empty(),
        })
    }

    /// The object at `path` below this root, or that there is none, if the kernel knows from its cache of names; else
    /// `None`. What is in proc(5) is left to a walk: the kernel takes its links for those of this process.
    fn in_memory(&self, path: &[u8], follow: bool) -> Option<Result<OwnedFd, Fault>> {
        let path = relative(path);
        let resolve = if self.is_own {
            ResolveFlags::empty()
        } else {
            ResolveFlags::IN_ROOT
        };
        let found = if path.is_empty() {
            self.dir.try_clone().map_err(|_| Fault::NotNow)
        } else {
            in_memory(&self.dir, path, follow, resolve)?
        };

        match &found {
            Ok(object) if is_in_proc(object) != Ok(false) => None,
            _ => Some(found),
        }
    }
}

/// A path without the slashes at its begin.
fn relative(path: &[u8]) -> &[u8] {
    let slashes = path.iter().take_while(|&&byte| byte == b'/');
    &path[slashes.count()..]
}

fn is_in_proc(object: &OwnedFd) -> Result<bool, Fault> {
    Ok(fstatfs(object)?.f_type as i64 == PROC_SUPER_MAGIC)
}

/// Length of `/proc/PID/root`, if `path` is that or below it.
fn root_of_process(path: &[u8]) -> Option<usize> {
    let rest = path.strip_prefix(b"/proc/")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = rest[digits..].strip_prefix(b"/root")?;
    let is_root = digits > 0 && matches!(after.first(), None | Some(b'/'));
    is_root.then_some(path.len() - after.len())
}

/// The process that a path names by its number, so that links to its files refer to that process
/// and not to this one.
fn process_of(path: &[u8]) -> Option<u32> {
    let rest = path.strip_prefix(b"/proc/")?;
    let name = rest.split(|&byte| byte == b'/').next()?;
    if !name.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(name).ok()?.parse().ok()
}

/// The object at `path`, or that there is none, if the kernel knows from its cache of names
/// (`RESOLVE_CACHED`, openat2(2)), which asks no file system; else `None`.
fn in_memory(
    dir: impl AsFd,
    path: &[u8],
    follow: bool,
    resolve: ResolveFlags,
) -> Option<Result<OwnedFd, Fault>> {
    if path.len() >= PATH_MAX {
        return None;
    }

    let flags = if follow {
        through()
    } else {
        through() | OFlags::NOFOLLOW
    };
    let resolve = resolve | ResolveFlags::CACHED;

    match openat2(dir, path, flags, Mode::empty(), resolve) {
        Ok(fd) => Some(Ok(fd)),
        // Not in the cache; a kernel before 5.12; a filter of system calls.
        Err(Errno::AGAIN | Errno::INVAL | Errno::NOSYS | Errno::PERM) => None,
        Err(errno) => match Fault::from(errno) {
            fault @ (Fault::Missing | Fault::Denied) => Some(Err(fault)),
            Fault::NotNow => None,
        },
    }
}

/// The entry `name` of a directory, without following it.
fn step(dir: &OwnedFd, name: &[u8], access: &mut Access<'_>) -> Result<OwnedFd, Fault> {
    if let Some(found) = in_memory(dir, name, false, ResolveFlags::empty()) {
        return found;
    }
    if !access.may_wait(dir, &stat(dir)?) {
        return Err(Fault::NotNow);
    }
    let flags = through() | OFlags::NOFOLLOW;
    Ok(openat(dir, name, flags, Mode::empty())?)
}

/// The sysctl `fs.protected_symlinks` (proc_sys_fs(5)).
fn protects_links() -> bool {
    let value = std::fs::read("/proc/sys/fs/protected_symlinks");
    value.is_ok_and(|value| value.first() != Some(&b'0'))
}

/// A look-up one name at a time, so that it is known which file system each step asks.
struct Walk {
    root: Root,
    dir: OwnedFd,
    links: u32,
    /// Whether links are not followed that the kernel would not follow for root.
    obeys_protection: bool,
    /// Whether a link led to the files of the asking process in another proc(5) than the one of the path.
    is_in_other_proc: bool,
}

impl Walk {
    /// A walk from `root`.
    fn new(root: Root, obeys_protection: bool) -> Result<Walk, Fault> {
        Ok(Walk {
            dir: root.dir.try_clone().map_err(|_| Fault::NotNow)?,
            root,
            links: 0,
            obeys_protection,
            is_in_other_proc: false,
        })
    }

    /// Goes along `path`. If something does not exist, the walk is then at the last directory.
    fn go(&mut self, path: &[u8], follow: bool, access: &mut Access<'_>) -> Result<(), Fault> {
        // The path that is left begins at `at`.
        let (mut rest, mut at) = (path.to_vec(), 0);
        for _ in 0..STEPS_MAX {
            if access.is_over() {
                return Err(Fault::NotNow);
            }
            let name_at = rest[at..].iter().position(|&byte| byte != b'/');
            let Some(name_at) = name_at.map(|slashes| at + slashes) else {
                // Behind a link of proc(5) is not always a directory.
                if at < rest.len() && !is_directory(&stat(&self.dir)?) {
                    return Err(Fault::Missing);
                }
                return Ok(());
            };
            let name_len = rest[name_at..].iter().position(|&byte| byte == b'/');
            let name_end = name_len.map_or(rest.len(), |len| name_at + len);
            let is_last = rest[name_end..].iter().all(|&byte| byte == b'/');
            let name = &rest[name_at..name_end];
            let found = self.step(name, access)?;
            // Afterwards: a change of the entry shows in the directory before it shows in a step.
            access.note(&self.dir)?;
            let stat = stat(&found)?;
            let needs_directory = name_end < rest.len();
            if is_link(&stat) && (follow || !is_last || needs_directory) {
                access.note(&found)?;
                self.links += 1;
                if self.links > LINKS_MAX || !self.may_follow(&stat)? {
                    return Err(Fault::Missing);
                }
                let mut text = self.link(name, &found, &stat, access)?;
                text.extend_from_slice(&rest[name_end..]);
                (rest, at) = (text, 0);
                continue;
            }
            if needs_directory && !is_directory(&stat) {
                return Err(Fault::Missing);
            }
            self.dir = found;
            at = name_end;
        }

        Err(Fault::NotNow)
    }

    /// The object that the walk has reached.
    fn end(self) -> Result<OwnedFd, Fault> {
        if self.is_in_other_proc && is_in_proc(&self.dir)? {
            Err(Fault::NotNow)
        } else {
            Ok(self.dir)
        }
    }

    /// The entry `name` of the current directory, without following it.
    fn step(&self, name: &[u8], access: &mut Access<'_>) -> Result<OwnedFd, Fault> {
        let is_up = name == b"..";
        if is_up && !self.root.is_own && same(&stat(&self.dir)?, &self.root.stat) {
            return self.dir.try_clone().map_err(|_| Fault::NotNow);
        }
        step(&self.dir, name, access)
    }

    /// Whether the kernel would let root follow the symbolic link in the current directory:
    /// may_follow_link(), fs/namei.c. A link that the kernel would not follow for root is not
    /// followed here.
    fn may_follow(&self, link: &Statx) -> Result<bool, Fault> {
        const ROOT: u32 = 0;
        if !self.obeys_protection || link.stx_uid == ROOT {
            return Ok(true);
        }
        let dir = stat(&self.dir)?;
        Ok(!is_sticky_for_all(&dir) || dir.stx_uid == link.stx_uid || !protects_links())
    }

    /// Follows the symbolic link `name`, which is open as `link`: goes to where its text begins and returns the text;
    /// nothing for a link of proc(5), whose target the kernel knows without a text.
    fn link(
        &mut self,
        name: &[u8],
        link: &OwnedFd,
        found: &Statx,
        access: &mut Access<'_>,
    ) -> Result<Vec<u8>, Fault> {
        if !access.may_wait(link, found) {
            return Err(Fault::NotNow);
        }

        let is_magic = is_in_proc(link)?;
        if is_magic && stat(&self.dir)?.stx_ino == PROC_ROOT_INO {
            match name {
                b"self" => return self.own_files(access),
                // Which of its threads is not known.
                b"thread-self" => return Err(Fault::NotNow),
                // Such as `mounts`, whose text begins with `self`.
                _ => {}
            }
        } else if is_magic {
            self.dir = openat(&self.dir, name, through(), Mode::empty())?;
            return Ok(Vec::new());
        }

        let text = readlinkat(link, "", Vec::new())?.into_bytes();
        if text.first() == Some(&b'/') {
            self.dir = self.root.dir.try_clone().map_err(|_| Fault::NotNow)?;
        }
        Ok(text)
    }

    /// Goes to the directory of the asking process in proc(5), which its `/proc/self` is.
    fn own_files(&mut self, access: &Access<'_>) -> Result<Vec<u8>, Fault> {
        let process = access.process.ok_or(Fault::NotNow)?;
        let found = openat(CWD, format!("/proc/{process}"), through(), Mode::empty());
        // It may have ended.
        let found = found.map_err(|_| Fault::NotNow)?;
        self.is_in_other_proc |= dev_of(&stat(&found)?) != dev_of(&stat(&self.dir)?);
        self.dir = found;
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
