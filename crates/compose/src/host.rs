//! The running system, as composing reads it.

use crate::system::{kernel_dev, Sign, System};
use event::record::Inode;
use nix::unistd::{Gid, Group, Uid, User};
use rustix::fs::{
    lstat, openat, openat2, stat, statat, AtFlags, Mode, OFlags, ResolveFlags, Stat, CWD,
};
use rustix::time::{clock_gettime, ClockId};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Largest path that the kernel takes in one look-up, in bytes with the NUL: PATH_MAX of linux/limits.h.
const PATH_MAX: usize = 4096;
/// `XATTR_CAPS_SZ` of linux/capability.h.
const CAPABILITIES_BYTES: usize = 24;

/// The running system.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    kernel_has: fn(Sign<'_>) -> bool,
}

impl Host {
    /// The system of this process. `kernel_has` answers [`System::kernel_has`].
    pub const fn new(kernel_has: fn(Sign<'_>) -> bool) -> Host {
        Host { kernel_has }
    }
}

impl System for Host {
    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode> {
        let found = match (path.to_bytes().len() < PATH_MAX, follow) {
            (true, true) => stat(path),
            (true, false) => lstat(path),
            (false, _) => stat_long(path.to_bytes(), follow),
        };
        found.ok().map(|stat| inode_of(&stat))
    }

    fn real_path(&self, path: &CStr) -> Option<Vec<u8>> {
        if is_canonical(path) {
            return Some(path.to_bytes().to_vec());
        }
        let real = std::fs::canonicalize(OsStr::from_bytes(path.to_bytes())).ok()?;
        Some(real.into_os_string().into_vec())
    }

    fn file_capabilities(&self, path: &CStr) -> Option<Vec<u8>> {
        let mut value = [0u8; CAPABILITIES_BYTES];
        let len = rustix::fs::getxattr(path, "security.capability", &mut value).ok()?;
        Some(value[..len.min(value.len())].to_vec())
    }

    fn read(&self, path: &CStr, bytes_max: u64) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(openat(CWD, path, flags, Mode::empty()).ok()?);
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn file_system(&self, path: &CStr) -> Option<u32> {
        rustix::fs::statfs(path)
            .ok()
            .map(|found| found.f_type as u32)
    }

    fn user(&self, uid: u32) -> Option<String> {
        User::from_uid(Uid::from_raw(uid))
            .ok()
            .flatten()
            .map(|user| user.name)
    }

    fn group(&self, gid: u32) -> Option<String> {
        Group::from_gid(Gid::from_raw(gid))
            .ok()
            .flatten()
            .map(|group| group.name)
    }

    fn monotonic_ns(&self) -> u64 {
        nanoseconds(ClockId::Monotonic)
    }

    fn realtime_ns(&self) -> u64 {
        nanoseconds(ClockId::Realtime)
    }

    fn release(&self) -> (u32, u32) {
        let uname = rustix::system::uname();
        let mut numbers = uname
            .release()
            .to_str()
            .unwrap_or_default()
            .split(|c: char| !c.is_ascii_digit())
            .map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    fn kernel_has(&self, sign: Sign<'_>) -> bool {
        (self.kernel_has)(sign)
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether an absolute path exists, crosses no symbolic link and is already written as realpath(3) would write it. This
/// takes one look-up; realpath(3) takes one for each directory of the path. `false` also if it cannot be determined.
fn is_canonical(path: &CStr) -> bool {
    let Some(names) = path.to_bytes().strip_prefix(b"/") else {
        return false;
    };
    let mut names = names.split(|&byte| byte == b'/');
    names.all(|name| !matches!(name, b"" | b"." | b".."))
        && openat2(
            CWD,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        )
        .is_ok()
}

/// stat(2), or lstat(2) without `follow`, of an absolute path of PATH_MAX bytes or more, in several look-ups.
fn stat_long(path: &[u8], follow: bool) -> rustix::io::Result<Stat> {
    let slash = |rest: &[u8]| rest[..PATH_MAX - 1].iter().rposition(|&byte| byte == b'/');
    let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = openat(CWD, "/", through, Mode::empty())?;
    let mut rest = path.strip_prefix(b"/").unwrap_or(path);
    while rest.len() >= PATH_MAX {
        let end = slash(rest).ok_or(rustix::io::Errno::NAMETOOLONG)?;
        dir = openat(&dir, &rest[..end], through, Mode::empty())?;
        rest = &rest[end + 1..];
    }
    let flags = match follow {
        true => AtFlags::empty(),
        false => AtFlags::SYMLINK_NOFOLLOW,
    };
    statat(&dir, rest, flags)
}

fn inode_of(stat: &Stat) -> Inode {
    Inode {
        ino: stat.st_ino,
        dev: kernel_dev(stat.st_dev),
        mode: stat.st_mode as u16,
        ouid: stat.st_uid,
        ogid: stat.st_gid,
        rdev: kernel_dev(stat.st_rdev),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    fn no_types(_: Sign<'_>) -> bool {
        false
    }

    const HOST: Host = Host::new(no_types);

    fn c_string(path: &[u8]) -> CString {
        CString::new(path).expect("no NUL")
    }

    #[test]
    fn a_directory_is_canonical_as_realpath_has_it() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path().canonicalize().expect("its path");
        std::fs::create_dir(top.join("real")).expect("mkdir");
        std::fs::create_dir(top.join("real/sub")).expect("mkdir");
        std::os::unix::fs::symlink("real", top.join("link")).expect("symlink");
        let canonical = |dir: &str| {
            let path = top.join(dir);
            HOST.real_path(&c_string(path.as_os_str().as_encoded_bytes()))
        };
        let real = top.join("real/sub").into_os_string().into_encoded_bytes();
        for dir in [
            "real/sub",
            "link/sub",
            "real//sub",
            "real/./sub",
            "link/../real/sub",
            "real/sub/",
        ] {
            assert_eq!(canonical(dir), Some(real.clone()), "{dir}");
        }
        assert_eq!(canonical("nowhere"), None);
        assert_eq!(HOST.real_path(c"/"), Some(b"/".to_vec()));
    }

    #[test]
    fn a_path_longer_than_one_look_up_takes_leads_to_its_object() {
        use rustix::fs::mkdirat;
        let top = tempfile::tempdir().expect("a directory");
        let name = "n".repeat(200);
        let mut path = top.path().as_os_str().as_encoded_bytes().to_vec();
        let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut dir = openat(CWD, top.path(), open, Mode::empty()).expect("open");
        for _ in 0..50 {
            mkdirat(&dir, &name, Mode::RWXU).expect("mkdir");
            dir = openat(&dir, &name, open, Mode::empty()).expect("open");
            path.push(b'/');
            path.extend_from_slice(name.as_bytes());
        }
        let deepest = statat(&dir, "", AtFlags::EMPTY_PATH).expect("stat");
        let found = HOST.inode(&c_string(&path), true);
        assert_eq!(found, Some(inode_of(&deepest)));
        path.truncate(path.len() - 1);
        assert_eq!(HOST.inode(&c_string(&path), true), None);
    }
}
