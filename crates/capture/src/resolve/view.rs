//! Looking up, from the daemon, what a process saw under a path.

use event::record::{FileCaps, Inode};
use rustix::fs::{lstat, major, minor, stat, Stat};
use std::ffi::CStr;

/// What one look-up takes, with the NUL: PATH_MAX of linux/limits.h.
const PATH_MAX: usize = 4096;

/// Where a process's root directory is to be found from here; `None` when it cannot be.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    prefix: Option<Vec<u8>>,
    path: Vec<u8>,
    pid: u32,
}

impl View {
    /// Sets the view to that of process `pid` in mount namespace `mnt_ns`, whose root directory
    /// is `root` within it (empty: the namespace's own).
    pub(super) fn set(&mut self, own_mnt_ns: u64, mnt_ns: u32, pid: u32, root: &[u8]) {
        self.pid = pid;
        let prefix = self.prefix.get_or_insert_with(Vec::new);
        prefix.clear();
        if u64::from(mnt_ns) == own_mnt_ns {
            prefix.extend_from_slice(root);
        } else if namespace_of(&format!("/proc/{pid}/ns/mnt")) == Some(mnt_ns.into()) {
            prefix.extend_from_slice(format!("/proc/{pid}/root").as_bytes());
        } else {
            self.prefix = None;
        }
    }

    /// `path` as another process has to put it: `/proc/self` is a directory of each.
    pub(super) fn for_others<'p>(&self, path: &'p [u8]) -> std::borrow::Cow<'p, [u8]> {
        match path.strip_prefix(b"/proc/self/") {
            Some(rest) => [format!("/proc/{}/", self.pid).as_bytes(), rest]
                .concat()
                .into(),
            None => path.into(),
        }
    }

    /// The object at absolute path `path`, as it is now.
    pub(super) fn inode(&mut self, path: &[u8], follow: bool) -> Option<Inode> {
        let path = self.locate(path)?;
        let found = match (path.to_bytes().len() < PATH_MAX, follow) {
            (true, true) => stat(path),
            (true, false) => lstat(path),
            (false, _) => stat_long(path.to_bytes(), follow),
        };
        found.ok().map(|stat| inode_of(&stat))
    }

    /// `path` without symbolic links, if its directory can be resolved now.
    pub(super) fn canonical_dir(&mut self, dir: &[u8]) -> Option<Vec<u8>> {
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let located = self.locate(dir)?;
        if is_canonical(located) {
            return Some(located.to_bytes().to_vec());
        }
        let real = std::fs::canonicalize(std::ffi::OsStr::from_bytes(located.to_bytes())).ok()?;
        Some(real.into_os_string().into_vec())
    }

    /// File capabilities of an object (capabilities(7), "File capability extended attribute
    /// versioning"); none where there are none or they cannot be read.
    pub(super) fn file_caps(&mut self, path: &[u8]) -> FileCaps {
        let mut value = [0u8; 24];
        let Some(path) = self.locate(path) else {
            return FileCaps::NONE;
        };
        match rustix::fs::getxattr(path, "security.capability", &mut value) {
            Ok(len) => parse_caps(&value[..len.min(value.len())]).unwrap_or(FileCaps::NONE),
            Err(_) => FileCaps::NONE,
        }
    }

    /// First bytes of the file at `path`.
    pub(super) fn open(&mut self, path: &[u8]) -> Option<std::fs::File> {
        use rustix::fs::{openat, Mode, OFlags, CWD};
        let path = self.locate(path)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        openat(CWD, path, flags, Mode::empty())
            .ok()
            .map(std::fs::File::from)
    }

    fn locate(&mut self, path: &[u8]) -> Option<&CStr> {
        if path.first() != Some(&b'/') || path.contains(&0) {
            return None;
        }
        let path = self.for_others(path);
        let prefix = self.prefix.as_ref()?;
        self.path.clear();
        self.path.extend_from_slice(prefix);
        self.path.extend_from_slice(&path);
        self.path.push(0);
        CStr::from_bytes_with_nul(&self.path).ok()
    }
}

/// Whether an absolute path leads somewhere without symbolic links and is written as realpath(3) writes it: one
/// look-up, where that makes one for each directory of the path. `false` also where this cannot be told.
fn is_canonical(path: &CStr) -> bool {
    use rustix::fs::{openat2, Mode, OFlags, ResolveFlags, CWD};
    let mut names = path.to_bytes().split(|&byte| byte == b'/').skip(1);
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

/// The object at an absolute path that is longer than the kernel takes at once.
fn stat_long(path: &[u8], follow: bool) -> rustix::io::Result<Stat> {
    use rustix::fs::{openat, statat, AtFlags, Mode, OFlags, CWD};
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

/// Version and patch level of the running kernel; zeros if it names itself otherwise.
pub(super) fn release() -> (u32, u32) {
    let uname = rustix::system::uname();
    let mut numbers = uname
        .release()
        .to_str()
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Number of the namespace behind a `/proc/…/ns/…` link.
pub(super) fn namespace_of(link: &str) -> Option<u64> {
    stat(link).ok().map(|stat| stat.st_ino)
}

/// Device number in the kernel's own encoding.
pub(crate) fn kernel_dev(dev: u64) -> u32 {
    major(dev) << 20 | minor(dev)
}

pub(super) fn inode_of(stat: &Stat) -> Inode {
    Inode {
        ino: stat.st_ino,
        dev: kernel_dev(stat.st_dev),
        mode: stat.st_mode as u16,
        ouid: stat.st_uid,
        ogid: stat.st_gid,
        rdev: kernel_dev(stat.st_rdev),
    }
}

/// `struct vfs_ns_cap_data`, linux/capability.h: magic and flags, two pairs of words, root id.
fn parse_caps(value: &[u8]) -> Option<FileCaps> {
    let word = |i: usize| -> Option<u32> {
        Some(u32::from_le_bytes(
            value.get(i * 4..i * 4 + 4)?.try_into().ok()?,
        ))
    };
    let magic = word(0)?;
    let set = |i: usize| -> Option<u64> {
        Some(u64::from(word(i)?) | u64::from(word(i + 2).unwrap_or(0)) << 32)
    };
    Some(FileCaps::Known {
        permitted: set(1)?,
        inheritable: set(2)?,
        effective: (magic & 1) as i32,
        version: magic >> 24,
        rootid: word(5).unwrap_or(0) as i32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_canonical_as_realpath_has_it() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path().canonicalize().expect("its path");
        std::fs::create_dir(top.join("real")).expect("mkdir");
        std::fs::create_dir(top.join("real/sub")).expect("mkdir");
        std::os::unix::fs::symlink("real", top.join("link")).expect("symlink");
        let own = namespace_of("/proc/self/ns/mnt").expect("a namespace");
        let mut view = View::default();
        view.set(own, own as u32, std::process::id(), b"");
        let mut canonical =
            |dir: &str| view.canonical_dir(top.join(dir).as_os_str().as_encoded_bytes());
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
        assert_eq!(view.canonical_dir(b"/"), Some(b"/".to_vec()));
    }

    #[test]
    fn a_path_longer_than_one_look_up_takes_leads_to_its_object() {
        use rustix::fs::{mkdirat, openat, statat, AtFlags, Mode, OFlags, CWD};
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
        let own = namespace_of("/proc/self/ns/mnt").expect("a namespace");
        let mut view = View::default();
        view.set(own, own as u32, std::process::id(), b"");
        let deepest = statat(&dir, "", AtFlags::EMPTY_PATH).expect("stat");
        let found = view.inode(&path, true);
        assert_eq!(found, Some(inode_of(&deepest)));
        path.truncate(path.len() - 1);
        assert_eq!(view.inode(&path, true), None);
    }
}
