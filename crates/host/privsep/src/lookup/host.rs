//! The running system, looked up in the calling process, which waits for any file system that a
//! path leads to. Only for commands that an administrator runs and can end; the daemon uses
//! [`Remote`](crate::lookup::Remote).

use crate::lookup::answer;
use crate::lookup::budget::STEPS_MAX;
use crate::lookup::cgroups;
use crate::lookup::devices::Devices;
use crate::lookup::kernel;
use crate::lookup::message::{Asker, Content, Question};
use crate::lookup::walk::Gate;
use compose::{Cgroup, ExecutedFile, KernelFile, Sign, System};
use plan::ObjectId;
use record::record::Inode;
use record::{ContainerNames, Digests, NameAnswer, NoDigest};
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

/// The running system.
pub struct Host {
    kernel_has: fn(Sign<'_>) -> bool,
    devices: Mutex<Devices>,
}

/// Waits for every file system.
struct Open;

impl Gate for Open {
    fn may_wait(&mut self, _: u32) -> bool {
        true
    }
}

impl Host {
    /// The system of this process. `kernel_has` answers [`System::kernel_has`].
    pub fn new(kernel_has: fn(Sign<'_>) -> bool) -> Host {
        Host {
            kernel_has,
            devices: Mutex::default(),
        }
    }

    fn answer(&self, question: Question<'_>) -> Content<'static> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        answer::to(question, Asker::default(), &mut Open, &mut devices, None)
    }

    fn bytes(&self, question: Question<'_>) -> Option<Vec<u8>> {
        match self.answer(question) {
            Content::Bytes(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }

    fn name(&self, question: Question<'_>) -> NameAnswer {
        match self.answer(question) {
            Content::Bytes(name) => NameAnswer::Name(String::from_utf8_lossy(&name).into_owned()),
            Content::NotNow => NameAnswer::NotNow,
            _ => NameAnswer::Nameless,
        }
    }
}

impl System for Host {
    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode> {
        let path = path.to_bytes();
        match self.answer(Question::Inode { path, follow }) {
            Content::Inode(inode) => Some(inode),
            _ => None,
        }
    }

    /// None: commands need no digests.
    fn digests(&self, _: &ExecutedFile<'_>) -> Digests {
        Digests::none(NoDigest::Unanswered)
    }

    fn real_path(&self, path: &CStr) -> Option<Vec<u8>> {
        self.bytes(Question::RealPath(path.to_bytes()))
    }

    fn file_capabilities(&self, path: &CStr, of: Option<ObjectId>) -> Option<Vec<u8>> {
        self.bytes(Question::Capabilities(path.to_bytes(), of))
    }

    fn head(&self, path: &CStr, of: Option<ObjectId>, bytes_max: u32) -> Option<Vec<u8>> {
        self.bytes(Question::Head(path.to_bytes(), of, bytes_max))
    }

    fn directories_above(&self, path: &CStr, prefix: usize) -> Vec<ObjectId> {
        let asker = Asker {
            prefix: prefix as u32,
            ..Asker::default()
        };
        let question = Question::Above(path.to_bytes(), STEPS_MAX);
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        match answer::to(question, asker, &mut Open, &mut devices, None) {
            Content::Above(above) => above.objects,
            _ => Vec::new(),
        }
    }

    fn file_system(&self, path: &CStr) -> Option<u32> {
        match self.answer(Question::FileSystem(path.to_bytes())) {
            Content::Number(kind) => Some(kind),
            _ => None,
        }
    }

    fn user(&self, uid: u32) -> NameAnswer {
        self.name(Question::User(uid))
    }

    fn group(&self, gid: u32) -> NameAnswer {
        self.name(Question::Group(gid))
    }

    fn kernel_file(&self, file: KernelFile) -> Option<Vec<u8>> {
        kernel::file(file)
    }

    fn cgroups(&self, found: &mut dyn FnMut(u64, Cgroup)) -> bool {
        cgroups::all(found)
    }

    fn cgroup(&self, id: u64) -> Option<Cgroup> {
        cgroups::one(id)
    }

    fn container_names(&self, id: &[u8], pod: &[u8]) -> Option<ContainerNames> {
        let path = [b"/", id, b"/", pod].concat();
        match self.answer(Question::Container(&path)) {
            Content::Container(names) => Some(names),
            _ => None,
        }
    }

    fn mount_namespace(&self, pid: Option<u32>) -> Option<u64> {
        kernel::mount_namespace(pid)
    }

    fn monotonic_ns(&self) -> u64 {
        kernel::monotonic_ns()
    }

    fn realtime_ns(&self) -> u64 {
        kernel::realtime_ns()
    }

    fn release(&self) -> (u32, u32) {
        kernel::release()
    }

    fn kernel_has(&self, sign: Sign<'_>) -> bool {
        (self.kernel_has)(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mkdirat, openat, statat, AtFlags, Mode, OFlags, CWD};
    use std::ffi::CString;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
    use std::path::Path;

    fn no_types(_: Sign<'_>) -> bool {
        false
    }

    fn host() -> Host {
        Host::new(no_types)
    }

    fn c_string(path: &Path) -> CString {
        CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL")
    }

    fn id(path: &Path) -> Option<ObjectId> {
        let inode = host().inode(&c_string(path), true).expect("it is there");
        let (dev, ino) = (inode.dev, inode.ino);
        Some(ObjectId { dev, ino })
    }

    #[test]
    fn an_object_has_what_stat_shows() {
        for path in ["/", "/proc/1/status", "/dev/null", "/etc/passwd"] {
            let found = host().inode(&c_string(Path::new(path)), true).expect(path);
            let stat = std::fs::metadata(path).expect(path);
            let expected = Inode {
                ino: stat.ino(),
                // See `devices.rs`.
                dev: found.dev,
                mode: stat.permissions().mode() as u16,
                ouid: stat.uid(),
                ogid: stat.gid(),
                rdev: compose::kernel_dev(stat.rdev()),
                label: 0,
            };
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_directory_is_canonical_as_realpath_has_it() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path().canonicalize().expect("its path");
        std::fs::create_dir_all(top.join("real/sub")).expect("mkdir");
        std::os::unix::fs::symlink("real", top.join("link")).expect("symlink");
        let canonical = |dir: &str| host().real_path(&c_string(&top.join(dir)));
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
        assert_eq!(host().real_path(c"/"), Some(b"/".to_vec()));
    }

    #[test]
    fn a_path_longer_than_one_look_up_takes_leads_to_its_object() {
        let top = tempfile::tempdir().expect("a directory");
        let name = "n".repeat(200);
        let mut path = top.path().to_owned();
        let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut dir = openat(CWD, top.path(), open, Mode::empty()).expect("open");
        for _ in 0..50 {
            mkdirat(&dir, &name, Mode::RWXU).expect("mkdir");
            dir = openat(&dir, &name, open, Mode::empty()).expect("open");
            path.push(&name);
        }
        let deepest = statat(&dir, "", AtFlags::EMPTY_PATH).expect("stat");
        let found = host().inode(&c_string(&path), true).expect("found");
        assert_eq!(found.ino, deepest.st_ino);
        path.set_file_name("n");
        assert_eq!(host().inode(&c_string(&path), true), None);
    }

    #[test]
    fn only_the_head_of_the_regular_file_that_is_meant_is_read() {
        let top = tempfile::tempdir().expect("a directory");
        let (file, other, fifo) = (
            top.path().join("file"),
            top.path().join("other"),
            top.path().join("fifo"),
        );
        std::fs::write(&file, "#!/bin/sh\n").expect("a file");
        std::fs::write(&other, "x").expect("a file");
        for program in [&file, &other] {
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(program, mode).expect("chmod");
        }
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        assert!(fifo.metadata().expect("metadata").file_type().is_fifo());
        let head = |path: &Path, of, most| host().head(&c_string(path), of, most);
        assert_eq!(head(&file, id(&file), 4), Some(b"#!/b".to_vec()));
        assert_eq!(head(&file, None, 256), Some(b"#!/bin/sh\n".to_vec()));
        assert_eq!(head(&file, id(&other), 256), None);
        assert_eq!(head(&fifo, None, 256), None);
        assert_eq!(head(Path::new("/dev/zero"), None, 256), None);
        assert_eq!(head(top.path(), None, 256), None);
        assert_eq!(head(Path::new("/proc/version"), None, 256), None);
        let text = top.path().join("text");
        std::fs::write(&text, "#!/bin/sh\n").expect("a file");
        assert_eq!(head(&text, None, 256), None, "nobody may execute it");
        let link = top.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("symlink");
        assert_eq!(head(&link, id(&file), 2), Some(b"#!".to_vec()));
    }

    #[test]
    fn the_kind_of_a_file_system_is_that_of_statfs() {
        let kind = |path: &str| host().file_system(&c_string(Path::new(path)));
        assert_eq!(kind("/proc/1"), Some(0x9fa0));
        assert_eq!(kind("/nowhere"), None);
    }

    #[test]
    fn names_are_those_of_the_databases() {
        assert_eq!(host().user(0), NameAnswer::Name("root".to_owned()));
        assert_eq!(host().group(0), NameAnswer::Name("root".to_owned()));
        assert_eq!(host().user(4_000_000_000), NameAnswer::Nameless);
    }

    #[test]
    fn the_label_is_what_proc_shows_of_the_process() {
        let own = std::fs::read("/proc/self/attr/current").ok();
        let pid = std::process::id();
        assert_eq!(host().kernel_file(KernelFile::Label(Some(pid))), own);
        assert_eq!(
            host().mount_namespace(Some(pid)),
            host().mount_namespace(None)
        );
    }
}
