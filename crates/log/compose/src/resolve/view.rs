//! Looks up, from the daemon, what a process saw at a path.

use super::text;
use crate::system::{ExecutedFile, KernelFile, System};
use plan::ObjectId;
use record::record::{FileCaps, Inode};
use record::Digests;
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// The file system as one process sees it: `prefix` leads from here to the root directory of the process; `None` if it
/// cannot be reached, and then nothing is found. That of a process in another mount namespace is asked for when something
/// is looked up.
pub(super) struct View {
    system: Arc<dyn System>,
    own_mnt_ns: u64,
    /// Mount namespace of the first process: the host's, where the daemon is in one of its own. `None` if it may not be
    /// looked at.
    host_mnt_ns: Option<u64>,
    prefix: Option<Vec<u8>>,
    path: Vec<u8>,
    pid: u32,
    is_foreign: bool,
    /// Whether the root directory of the process is that of its mount namespace.
    is_at_root: bool,
    mnt_ns: u64,
    /// Whether `prefix` is that of the process.
    is_located: bool,
    /// What paths led to when the call was over, and whether links at their ends were followed.
    known: Vec<(Vec<u8>, bool, Option<Inode>)>,
    /// Directories whose paths were without symbolic links and `..` then.
    direct: Vec<Vec<u8>>,
    /// Paths whose directories the event has, up to the root of their file system.
    under_known: Vec<Vec<u8>>,
    /// Look-ups that were refused and are not needed.
    spared: u32,
}

impl View {
    /// A view that finds nothing until [`View::set`] is called.
    pub(super) fn new(system: Arc<dyn System>) -> View {
        View {
            own_mnt_ns: system.mount_namespace(None).unwrap_or(0),
            host_mnt_ns: system.mount_namespace(Some(1)),
            system,
            prefix: None,
            path: Vec::new(),
            pid: 0,
            is_foreign: false,
            is_at_root: false,
            mnt_ns: 0,
            is_located: false,
            known: Vec::new(),
            direct: Vec::new(),
            under_known: Vec::new(),
            spared: 0,
        }
    }

    /// Sets the view to that of process `pid` in mount namespace `mnt_ns`; `root` is the process's root directory in
    /// that namespace (empty: the namespace's own).
    pub(super) fn set(&mut self, mnt_ns: u32, pid: u32, root: &[u8]) {
        self.pid = pid;
        self.known.clear();
        self.direct.clear();
        self.under_known.clear();
        self.spared = 0;
        let is_own = u64::from(mnt_ns) == self.own_mnt_ns;
        let is_hosts = self.host_mnt_ns == Some(mnt_ns.into());
        self.is_foreign = !is_own && !is_hosts;
        self.is_at_root = root.is_empty();
        self.mnt_ns = mnt_ns.into();
        self.is_located = !self.is_foreign;
        if self.is_foreign {
            return;
        }

        let prefix = self.prefix.get_or_insert_with(Vec::new);
        prefix.clear();
        if is_hosts {
            prefix.extend_from_slice(b"/proc/1/root");
        }
        prefix.extend_from_slice(root);
        self.system.seen_by(pid, prefix);
    }

    /// Sets the prefix of a process in another mount namespace, unless that is done.
    fn locate_process(&mut self) {
        if self.is_located {
            return;
        }

        self.is_located = true;
        let pid = self.pid;
        let prefix = self.prefix.get_or_insert_with(Vec::new);
        prefix.clear();
        if self.system.mount_namespace(Some(pid)) == Some(self.mnt_ns) {
            prefix.extend_from_slice(format!("/proc/{pid}/root").as_bytes());
        } else {
            self.prefix = None;
        }

        let prefix = self.prefix.as_deref().unwrap_or_default();
        self.system.seen_by(pid, prefix);
    }

    /// Number of look-ups of the event that are needed and whose results are not known: see [`System::refusals`].
    pub(super) fn refusals(&self) -> u32 {
        self.system.refusals().saturating_sub(self.spared)
    }

    /// `path` as other processes have to write it: `/proc/self` becomes `/proc/PID`.
    pub(super) fn for_others<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        match path.strip_prefix(b"/proc/self/") {
            Some(rest) => [format!("/proc/{}/", self.pid).as_bytes(), rest]
                .concat()
                .into(),
            None => path.into(),
        }
    }

    /// Whether a file system of this kind is on a device; `None` if the kernel knows no such kind.
    pub(super) fn needs_device(&self, kind: &[u8]) -> Option<bool> {
        let known = self.system.kernel_file(KernelFile::Filesystems)?;
        let mut lines = known.split(|&byte| byte == b'\n');
        lines.find_map(|line| {
            let mut words = line.split(|&byte| byte == b'\t');
            let needs = words.next()? != b"nodev";
            (words.next()? == kind).then_some(needs)
        })
    }

    /// Whether the process is in another mount namespace, so that its paths are not those of the rules.
    pub(super) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Whether the root directory of the process can be reached, so that its paths can be looked up.
    pub(super) fn is_reached(&mut self) -> bool {
        self.locate_process();
        self.prefix.is_some()
    }

    /// Adds what the absolute path `path` led to when the call was over; `None`: to nothing.
    pub(super) fn know(&mut self, path: &[u8], follow: bool, inode: Option<Inode>) {
        self.known.push((path.to_vec(), follow, inode));
    }

    /// What [`View::know`] was told of `path`.
    pub(super) fn known(&self, path: &[u8], follow: bool) -> Option<Option<Inode>> {
        let mut known = self.known.iter();
        let found = known.find(|known| known.1 == follow && known.0 == path);
        found.map(|known| known.2)
    }

    /// Whether [`View::know`] was told that a path led to this object.
    pub(super) fn has_seen(&self, object: Inode) -> bool {
        let id = |inode: Inode| (inode.dev, inode.ino);
        let mut known = self.known.iter().filter_map(|known| known.2);
        known.any(|inode| id(inode) == id(object))
    }

    /// The object at the absolute path `path`: when the call was over if that is known, or now.
    pub(super) fn inode(&mut self, path: &[u8], follow: bool) -> Option<Inode> {
        if let Some(known) = self.known(path, follow) {
            return known;
        }
        let (system, path) = self.locate(path)?;
        system.inode(path, follow)
    }

    /// The object of the directory `path`, whose path has no `..`, and in which a call has used a name. Of one of descriptors
    /// rules need no number: its path tells what it is.
    pub(super) fn directory(&mut self, path: &[u8]) -> Option<Inode> {
        if self.descriptors(path).is_some() {
            self.spare(|view| view.inode(path, true))
        } else {
            self.inode(path, true)
        }
    }

    /// The path in `/proc` of a directory of descriptors, if `path` is one of a process that has `/proc` and `/dev` from the
    /// host. It can be nothing else, although it is gone with the process; `/dev/fd` is a link to that of the caller.
    pub(super) fn descriptors(&self, path: &[u8]) -> Option<Vec<u8>> {
        if self.is_foreign || !self.is_at_root {
            return None;
        }

        let path = if path == b"/dev/fd" {
            b"/proc/self/fd"
        } else {
            path
        };
        let path = self.for_others(path);
        let process = path.strip_prefix(b"/proc/")?.strip_suffix(b"/fd")?;
        let is_process = !process.is_empty() && process.iter().all(u8::is_ascii_digit);
        is_process.then(|| path.to_vec())
    }

    /// The object that the call has made at the absolute path `path`. Where rules name objects, its path decides; to those
    /// that ask for its owner or kind, it is unknown if the look-up is refused.
    pub(super) fn made(&mut self, path: &[u8]) -> Option<Inode> {
        self.spare(|view| view.inode(path, false))
    }

    /// Looks something up that no rule needs: a refusal leaves the record without it, and the event as sure as it was.
    fn spare<T>(&mut self, look: impl FnOnce(&mut View) -> T) -> T {
        let before = self.system.refusals();
        let found = look(self);
        self.spared += self.system.refusals().saturating_sub(before);
        found
    }

    /// Adds that neither a symbolic link nor `..` led to the directory `path`.
    pub(super) fn know_direct(&mut self, path: &[u8]) {
        self.direct.push(path.to_vec());
    }

    /// Whether [`View::know_direct`] was told that no link leads to `path`, or to a directory below it.
    pub(super) fn is_direct(&self, path: &[u8]) -> bool {
        let mut direct = self.direct.iter();
        direct.any(|dir| text::below(dir, path).is_some())
    }

    /// Adds that the event has the directories above `path`.
    pub(super) fn know_above(&mut self, path: &[u8]) {
        self.under_known.push(path.to_vec());
    }

    /// Whether the event has the directories above `path`.
    pub(super) fn is_above_known(&self, path: &[u8]) -> bool {
        let mut known = self.under_known.iter();
        known.any(|known| text::below(known, path).is_some())
    }

    /// The directories above `path`, without the root directory of the process and those that the event has.
    pub(super) fn directories_above(&mut self, path: &[u8]) -> Vec<ObjectId> {
        if self.is_above_known(path) {
            return Vec::new();
        }
        self.locate_process();
        let prefix = self.prefix.as_ref().map_or(0, Vec::len);
        match self.locate(path) {
            Some((system, path)) => system.directories_above(path, prefix),
            None => Vec::new(),
        }
    }

    /// `path` without symbolic links; `None` if it cannot be resolved now. `is_proven`: what it leads to is known without it.
    pub(super) fn real_path(&mut self, path: &[u8], is_proven: bool) -> Option<Vec<u8>> {
        let look = |view: &mut View| {
            let located = view.locate(path);
            located.and_then(|(system, path)| system.real_path(path))
        };
        if is_proven {
            self.spare(look)
        } else {
            look(self)
        }
    }

    /// File capabilities of the object at `path` (capabilities(7), "File capability extended attribute versioning");
    /// [`FileCaps::NONE`] if there are none, if they cannot be read, or if it is another object than `of`.
    pub(super) fn file_caps(&mut self, path: &[u8], of: Option<ObjectId>) -> FileCaps {
        let value = self
            .locate(path)
            .and_then(|(system, path)| system.file_capabilities(path, of));
        value
            .and_then(|value| parse_caps(&value))
            .unwrap_or(FileCaps::NONE)
    }

    /// The first `bytes_max` bytes of the regular file at `path`; `None` if it is another object than `of`.
    pub(super) fn head(
        &mut self,
        path: &[u8],
        of: Option<ObjectId>,
        bytes_max: u32,
    ) -> Option<Vec<u8>> {
        let (system, path) = self.locate(path)?;
        system.head(path, of, bytes_max)
    }

    /// The first `bytes_max` bytes of the image `of`, which the process has executed at `path`. Where no path leads to it
    /// any more, or none ever did (memfd_create(2)), the process has it as long as it runs it.
    pub(super) fn image_head(
        &mut self,
        path: &[u8],
        of: ObjectId,
        bytes_max: u32,
    ) -> Option<Vec<u8>> {
        self.spare(|view| {
            let at_path = view.head(path, Some(of), bytes_max);
            at_path.or_else(|| {
                let exe = CString::new(format!("/proc/{}/exe", view.pid)).ok()?;
                view.system.head(&exe, Some(of), bytes_max)
            })
        })
    }

    /// The digests of the file that was executed at `path`. If `path` cannot be reached, only the process is asked.
    pub(super) fn digests(&mut self, path: &[u8], file: ExecutedFile<'_>) -> Digests {
        match self.locate(path) {
            Some((system, path)) => system.digests(&ExecutedFile { path, ..file }),
            None => self.system.digests(&file),
        }
    }

    fn locate(&mut self, path: &[u8]) -> Option<(&dyn System, &CStr)> {
        if path.first() != Some(&b'/') || path.contains(&0) {
            return None;
        }

        self.locate_process();
        let prefix = self.prefix.as_ref()?;
        let path = if self.is_foreign {
            // There, the process may have another number.
            Cow::Borrowed(path)
        } else {
            self.for_others(path)
        };

        self.path.clear();
        self.path.extend_from_slice(prefix);
        self.path.extend_from_slice(&path);
        self.path.push(0);
        let path = CStr::from_bytes_with_nul(&self.path).ok()?;
        Some((&*self.system, path))
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
    use crate::static_system::{StaticFile, StaticSystem};

    fn numbered(ino: u64) -> StaticFile {
        StaticFile {
            inode: Inode {
                ino,
                ..Inode::default()
            },
            ..StaticFile::default()
        }
    }

    /// A view from namespace 1, on a system where process 7 is in namespace 2.
    fn view() -> View {
        let mut system = StaticSystem::default();
        let files = [
            ("/proc/self/ns/mnt", 1),
            ("/proc/7/ns/mnt", 2),
            ("/etc", 10),
            ("/jail/etc", 11),
            ("/proc/7/root/etc", 12),
            ("/proc/7/comm", 13),
        ];
        system.files = files.map(|(path, ino)| (path, numbered(ino))).into();
        View::new(Arc::new(system))
    }

    fn ino(view: &mut View, path: &str) -> Option<u64> {
        view.inode(path.as_bytes(), true).map(|inode| inode.ino)
    }

    #[test]
    fn a_path_is_looked_up_where_the_process_saw_it() {
        let mut view = view();
        view.set(1, 7, b"");
        assert_eq!(ino(&mut view, "/etc"), Some(10));
        view.set(1, 7, b"/jail");
        assert_eq!(ino(&mut view, "/etc"), Some(11));
        view.set(2, 7, b"");
        assert_eq!(ino(&mut view, "/etc"), Some(12));
    }

    #[test]
    fn the_hosts_files_are_seen_at_the_first_process_although_the_other_has_ended() {
        let mut system = StaticSystem::default();
        let files = [
            ("/proc/self/ns/mnt", 1),
            ("/proc/1/ns/mnt", 2),
            ("/proc/1/root/etc", 10),
            ("/proc/1/root/jail/etc", 11),
            ("/proc/1/root/proc/7/comm", 12),
        ];
        system.files = files.map(|(path, ino)| (path, numbered(ino))).into();
        let mut view = View::new(Arc::new(system));
        view.set(2, 7, b"");
        assert_eq!(
            (view.is_foreign(), ino(&mut view, "/etc")),
            (false, Some(10))
        );
        assert_eq!(ino(&mut view, "/proc/self/comm"), Some(12));
        view.set(2, 7, b"/jail");
        assert_eq!(ino(&mut view, "/etc"), Some(11));
        view.set(3, 7, b"");
        assert_eq!((view.is_foreign(), ino(&mut view, "/etc")), (true, None));
    }

    #[test]
    fn nothing_is_seen_of_a_namespace_that_is_gone_or_of_a_process_with_another_pid() {
        let mut view = view();
        for (mnt_ns, pid) in [(3, 7), (2, 8)] {
            view.set(mnt_ns, pid, b"");
            assert_eq!(ino(&mut view, "/etc"), None);
        }
        view.set(1, 7, b"");
        assert_eq!(ino(&mut view, "/etc"), Some(10));
    }

    #[test]
    fn what_is_known_of_directories_is_forgotten_with_the_event() {
        let mut view = view();
        view.set(1, 7, b"");
        view.know_direct(b"/a/b");
        let is_direct = |view: &View| {
            ["/", "/a", "/a/b", "/a/bc", "/a/b/c"].map(|path| view.is_direct(path.as_bytes()))
        };
        assert_eq!(is_direct(&view), [true, true, true, false, false]);
        view.set(1, 7, b"");
        assert_eq!(is_direct(&view), [false; 5]);
    }

    #[test]
    fn proc_self_is_the_directory_of_the_process() {
        let mut view = view();
        view.set(1, 7, b"");
        assert_eq!(ino(&mut view, "/proc/self/comm"), Some(13));
    }

    #[test]
    fn a_directory_of_descriptors_is_told_by_its_whole_path() {
        let mut view = view();
        view.set(1, 7, b"");
        let told = |view: &View, path: &str| {
            let told = view.descriptors(path.as_bytes());
            told.map(|path| String::from_utf8_lossy(&path).into_owned())
        };
        assert_eq!(told(&view, "/dev/fd").as_deref(), Some("/proc/7/fd"));
        assert_eq!(told(&view, "/proc/self/fd").as_deref(), Some("/proc/7/fd"));
        assert_eq!(told(&view, "/proc/17/fd").as_deref(), Some("/proc/17/fd"));
        let others = [
            "/proc/self/cwd/fd",
            "/proc/self/root/proc/self/fd",
            "/proc/self/cwd/../fd",
            "/proc//fd",
            "/proc/fd",
            "/proc/thread-self/fd",
            "/proc/self/fd/3",
            "/dev/fd/3",
            "/jail/dev/fd",
        ];
        for other in others {
            assert_eq!(told(&view, other), None, "{other}");
        }

        // There, users choose what is at /dev and /proc.
        for (mnt_ns, root) in [(1, &b"/jail"[..]), (2, b"")] {
            view.set(mnt_ns, 7, root);
            assert_eq!(told(&view, "/dev/fd"), None);
            assert_eq!(told(&view, "/proc/self/fd"), None);
        }
    }

    #[test]
    fn a_refusal_counts_unless_the_path_of_a_used_directory_tells_what_it_is() {
        let refused = |root: &[u8], look: fn(&mut View) -> Option<Inode>| {
            let mut view = View::new(Arc::new(StaticSystem {
                refuses: true.into(),
                ..StaticSystem::default()
            }));
            view.set(0, 7, root);
            assert!(look(&mut view).is_none());
            view.refusals() > 0
        };
        assert!(!refused(b"", |view| view.directory(b"/dev/fd")));
        assert!(refused(b"/jail", |view| view.directory(b"/dev/fd")));
        assert!(refused(b"", |view| view.directory(b"/etc")));
        assert!(refused(b"", |view| view.inode(b"/dev/fd", true)));
    }

    #[test]
    fn what_is_no_absolute_path_is_not_looked_up() {
        let mut view = view();
        view.set(1, 7, b"");
        assert_eq!(view.inode(b"etc", true), None);
        assert_eq!(view.inode(b"/etc\0", true), None);
        assert_eq!(view.inode(b"", true), None);
    }

    #[test]
    fn file_capabilities_are_read_as_the_kernel_lays_them_out() {
        let words =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let parsed = parse_caps(&words(&[0x0200_0001, 0x400, 1, 2, 3]));
        let known = FileCaps::Known {
            permitted: 2 << 32 | 0x400,
            inheritable: 3 << 32 | 1,
            effective: 1,
            version: 2,
            rootid: 0,
        };
        assert_eq!(parsed, Some(known));
        assert_eq!(parse_caps(&words(&[0x0200_0001])), None);
        assert_eq!(parse_caps(b""), None);
    }
}
