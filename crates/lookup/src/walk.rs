//! Opens an object for its identity only, and announces before each step that may take long what it
//! will wait for.
//!
//! O_PATH opens no device, no FIFO and no file's contents, and triggers no automount at the end of a path.

use crate::devices::Devices;
use crate::message::is_path;
use crate::object::{changed, is_directory, is_link, is_sticky_for_all, stat, Fault, FileTime};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{fstatfs, openat, openat2, readlinkat, Mode, OFlags, ResolveFlags, Statx, CWD};
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

/// Decides whether file systems may be waited for.
pub(crate) trait Gate {
    /// Whether a step that may have to wait for the file system with device number `dev` may be taken.
    fn may_wait(&mut self, dev: u32) -> bool;
}

/// Access to objects for one question.
pub(crate) struct Access<'a> {
    gate: &'a mut dyn Gate,
    devices: &'a mut Devices,
    /// The process at whose root directory or other links the path begins.
    process: Option<u32>,
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
        Access {
            gate,
            devices,
            process: process_of(path),
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
        self.devices.of(object, stat, self.process)
    }

    /// Whether a step that may have to wait for the object's file system may be taken.
    pub(crate) fn may_wait(&mut self, object: &OwnedFd, stat: &Statx) -> bool {
        let dev = self.device(object, stat);
        self.gate.may_wait(dev)
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
    let walk = |dir, follows_own| Walk {
        obeys_protection,
        ..Walk::new(dir, follows_own)
    };
    if !is_path(path) {
        return Err(Fault::Missing);
    }
    // The kernel follows this link without asking a file system; the rest of the path is looked up
    // like any other.
    if let Some((root, rest)) = root_of_process(path) {
        let dir = openat(CWD, root, through(), Mode::empty())?;
        if rest.is_empty() {
            return Ok(dir);
        }
        if access.trail.is_none() {
            if let Some(found) = in_memory(&dir, rest, follow) {
                return found;
            }
        }
        return walk(dir, true).open(rest, follow, access);
    }
    if !is_of_own_process(path) && access.trail.is_none() {
        if let Some(found) = in_memory(CWD, path, follow) {
            return found;
        }
    }
    let dir = openat(CWD, "/", through(), Mode::empty())?;
    walk(dir, access.process.is_some()).open(path, follow, access)
}

fn through() -> OFlags {
    OFlags::PATH | OFlags::CLOEXEC
}

/// Splits `/proc/PID/root/…` after `root`; the last part is relative.
fn root_of_process(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = path.strip_prefix(b"/proc/")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let root = b"/root/";
    let is_root = digits > 0 && rest[digits..].starts_with(root);
    let end = b"/proc/".len() + digits + root.len() - 1;
    let slashes = path.get(end..)?.iter().take_while(|&&byte| byte == b'/');
    let rest = end + slashes.count();
    is_root.then(|| (&path[..end], &path[rest..]))
}

/// The process that a path names by its number, so that links to its files refer to that process
/// and not to this one.
fn process_of(path: &[u8]) -> Option<u32> {
    let rest = path.strip_prefix(b"/proc/")?;
    let name = rest.split(|&byte| byte == b'/').next()?;
    let is_number = name.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(name).ok().filter(|_| is_number)?;
    number.parse().ok()
}

/// Whether a path names the process that looks it up, which is never what the event's process
/// meant.
fn is_of_own_process(path: &[u8]) -> bool {
    let mut names = path.split(|&byte| byte == b'/');
    let mut next = || names.find(|name| !matches!(*name, b"" | b"."));
    next() == Some(b"proc") && matches!(next(), Some(b"self" | b"thread-self"))
}

/// The object at `path`, or that there is none, if the kernel knows from its cache of names
/// (`RESOLVE_CACHED`, openat2(2)), which asks no file system; else `None`.
fn in_memory(dir: impl AsFd, path: &[u8], follow: bool) -> Option<Result<OwnedFd, Fault>> {
    if path.len() >= PATH_MAX {
        return None;
    }
    let flags = match follow {
        true => through(),
        false => through() | OFlags::NOFOLLOW,
    };
    match openat2(dir, path, flags, Mode::empty(), ResolveFlags::CACHED) {
        Ok(fd) => Some(Ok(fd)),
        // Not in the cache; a kernel before 5.12; a filter of system calls.
        Err(Errno::AGAIN | Errno::INVAL | Errno::NOSYS | Errno::PERM) => None,
        Err(errno) => match Fault::from(errno) {
            Fault::Missing => Some(Err(Fault::Missing)),
            Fault::NotNow => None,
        },
    }
}

/// The sysctl `fs.protected_symlinks` (proc_sys_fs(5)).
fn protects_links() -> bool {
    let value = std::fs::read("/proc/sys/fs/protected_symlinks");
    value.is_ok_and(|value| value.first() != Some(&b'0'))
}

/// A look-up one name at a time, so that it is known which file system each step asks.
struct Walk {
    dir: OwnedFd,
    links: u32,
    /// Whether links of proc(5) to this process are followed, too.
    follows_magic: bool,
    /// Whether links are not followed that the kernel would not follow for root.
    obeys_protection: bool,
}

impl Walk {
    fn new(dir: OwnedFd, follows_magic: bool) -> Walk {
        Walk {
            dir,
            links: 0,
            follows_magic,
            obeys_protection: true,
        }
    }

    fn open(
        mut self,
        path: &[u8],
        follow: bool,
        access: &mut Access<'_>,
    ) -> Result<OwnedFd, Fault> {
        // The path that is left, and whether what is found has to be a directory.
        let mut rest = path.to_vec();
        for _ in 0..STEPS_MAX {
            let name_at = rest.iter().position(|&byte| byte != b'/');
            let Some(name_at) = name_at else {
                // Behind a link of proc(5) is not always a directory.
                if !rest.is_empty() && !is_directory(&stat(&self.dir)?) {
                    return Err(Fault::Missing);
                }
                return Ok(self.dir);
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
                let after = rest.split_off(name_end);
                let name = rest.split_off(name_at);
                rest = self.link(&name, &found, &stat, access)?;
                rest.extend_from_slice(&after);
                // Behind a link of proc(5) the cache may know the whole rest.
                if rest.len() == after.len() && !is_last {
                    let slashes = rest.iter().take_while(|&&byte| byte == b'/').count();
                    if let Some(found) = in_memory(&self.dir, &rest[slashes..], follow) {
                        return found;
                    }
                }
                continue;
            }
            if needs_directory && !is_directory(&stat) {
                return Err(Fault::Missing);
            }
            self.dir = found;
            rest.drain(..name_end);
        }
        Err(Fault::Missing)
    }

    /// The entry `name` of the current directory, without following it.
    fn step(&self, name: &[u8], access: &mut Access<'_>) -> Result<OwnedFd, Fault> {
        if let Some(found) = in_memory(&self.dir, name, false) {
            return found;
        }
        if !access.may_wait(&self.dir, &stat(&self.dir)?) {
            return Err(Fault::NotNow);
        }
        let flags = through() | OFlags::NOFOLLOW;
        Ok(openat(&self.dir, name, flags, Mode::empty())?)
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
        if fstatfs(link)?.f_type as i64 == PROC_SUPER_MAGIC {
            if !self.follows_magic && stat(&self.dir)?.stx_ino == PROC_ROOT_INO {
                return Err(Fault::NotNow);
            }
            self.dir = openat(&self.dir, name, through(), Mode::empty())?;
            return Ok(Vec::new());
        }
        let text = readlinkat(link, "", Vec::new())?.into_bytes();
        if text.first() == Some(&b'/') {
            self.dir = openat(CWD, "/", through(), Mode::empty())?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    /// Allows every step, and counts them.
    #[derive(Default)]
    struct Open(u32);

    impl Gate for Open {
        fn may_wait(&mut self, _: u32) -> bool {
            self.0 += 1;
            true
        }
    }

    /// Allows no waits.
    struct Closed;

    impl Gate for Closed {
        fn may_wait(&mut self, _: u32) -> bool {
            false
        }
    }

    fn ino(object: &OwnedFd) -> u64 {
        rustix::fs::fstat(object).expect("fstat").st_ino
    }

    fn opened(path: &[u8], gate: &mut dyn Gate) -> Result<OwnedFd, Fault> {
        let mut devices = Devices::default();
        open(path, true, &mut Access::to(path, gate, &mut devices))
    }

    /// The inode number that a walk by names finds at `path`, and the kernel's.
    fn both(path: &Path, follow: bool) -> (Option<u64>, Option<u64>) {
        let root = openat(CWD, "/", through(), Mode::empty()).expect("the root directory");
        let bytes = path.as_os_str().as_bytes();
        let (mut gate, mut devices) = (Open::default(), Devices::default());
        let mut access = Access::to(bytes, &mut gate, &mut devices);
        let walked = Walk::new(root, true).open(bytes, follow, &mut access);
        let flags = if follow {
            through()
        } else {
            through() | OFlags::NOFOLLOW
        };
        let kernel = openat(CWD, path, flags, Mode::empty());
        (walked.ok().as_ref().map(ino), kernel.ok().as_ref().map(ino))
    }

    #[test]
    fn a_walk_by_names_ends_where_the_kernel_ends() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path();
        std::fs::create_dir_all(top.join("real/sub")).expect("mkdir");
        std::fs::write(top.join("real/file"), "x").expect("a file");
        for (text, name) in [
            ("real", "link"),
            ("link/sub", "chain"),
            ("../real/file", "real/up"),
            ("/proc/self/../mounts", "absolute"),
            ("nowhere", "dangling"),
            ("loop", "loop"),
        ] {
            std::os::unix::fs::symlink(text, top.join(name)).expect("symlink");
        }
        for path in [
            "",
            "real",
            "real/",
            "real//sub/.",
            "real/sub/..",
            "real/file",
            "real/file/",
            "link",
            "link/",
            "link/sub",
            "chain",
            "chain/../file",
            "real/up",
            "real/up/",
            "absolute",
            "dangling",
            "dangling/",
            "loop",
            "loop/x",
            "real/nothing",
            "nothing/x",
            "real/file/x",
        ] {
            for follow in [false, true] {
                let (walked, kernel) = both(&top.join(path), follow);
                assert_eq!(walked, kernel, "{path} {follow}");
            }
        }
        assert_eq!(both(Path::new("/"), true).0, both(Path::new("/.."), true).1);
        let own = format!("/proc/{}/cwd", std::process::id());
        for path in [&own[..], &format!("{own}/.."), &format!("{own}/src")] {
            let (walked, kernel) = both(Path::new(path), true);
            assert!(walked.is_some() && walked == kernel, "{path}");
        }
    }

    #[test]
    fn what_was_just_used_is_found_without_waiting() {
        let top = tempfile::tempdir().expect("a directory");
        let file = top.path().join("file");
        std::fs::write(&file, "x").expect("a file");
        let file = file.as_os_str().as_bytes();
        assert!(opened(file, &mut Closed).is_ok());
        let missing = [file, b"not"].concat();
        let _ = std::fs::metadata(std::ffi::OsStr::from_bytes(&missing));
        assert_eq!(opened(&missing, &mut Closed).err(), Some(Fault::Missing));
        let process = format!("/proc/{}/root", std::process::id());
        let seen = [process.as_bytes(), file].concat();
        assert!(opened(&seen, &mut Closed).is_ok());
    }

    #[test]
    fn descriptors_of_this_process_are_not_taken_for_those_of_another() {
        for path in [
            &b"/dev/fd/0"[..],
            b"/proc/self/fd/0",
            b"/proc/thread-self/cwd",
        ] {
            let found = opened(path, &mut Open::default());
            assert_eq!(found.err(), Some(Fault::NotNow), "{path:?}");
        }
    }

    #[test]
    fn roots_of_processes_are_split_off() {
        let split = |path: &'static str| root_of_process(path.as_bytes());
        let found = split("/proc/7/root/etc/passwd").expect("a root");
        assert_eq!(found, (&b"/proc/7/root"[..], &b"etc/passwd"[..]));
        let found = split("/proc/7/root//etc").expect("a root");
        assert_eq!(found, (&b"/proc/7/root"[..], &b"etc"[..]));
        let found = split("/proc/7/root/").expect("a root");
        assert_eq!(found, (&b"/proc/7/root"[..], &b""[..]));
        for path in [
            "/proc/7/root",
            "/proc/x/root/a",
            "/proc//root/a",
            "/proc/7/rooted/a",
        ] {
            assert_eq!(split(path), None, "{path}");
        }
    }
}
