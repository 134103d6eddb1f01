//! A system with fixed contents, for tests and the fuzzer.

use crate::system::{Cgroup, ExecutedFile, KernelFile, Origin, Sign, System};
use plan::ObjectId;
use record::record::Inode;
use record::{ContainerNames, Digests, NameAnswer, NoDigest, SHA256_BYTES};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// An object at a path of a [`StaticSystem`].
#[derive(Clone, Debug, Default)]
pub struct StaticFile {
    /// Identity and attributes of the object.
    pub inode: Inode,
    /// Contents of the file.
    pub contents: Vec<u8>,
    /// The extended attribute `security.capability`.
    pub capabilities: Option<Vec<u8>>,
    /// The path without symbolic links, if it is a different one. The file is then a link to that path.
    pub real_path: Option<&'static str>,
}

/// A system that consists only of what its fields hold. Its clocks stand still.
#[derive(Debug, Default)]
pub struct StaticSystem {
    /// Files by absolute path.
    pub files: BTreeMap<&'static str, StaticFile>,
    /// Kinds of file systems (`f_type` of statfs(2)) by the path at which they are mounted.
    pub file_systems: BTreeMap<&'static str, u32>,
    /// Names by id, of both users and groups.
    pub names: BTreeMap<u32, &'static str>,
    /// Nanoseconds of CLOCK_MONOTONIC; CLOCK_REALTIME is [`StaticSystem::BOOTED_NS`] more.
    pub monotonic_ns: AtomicU64,
    /// See [`System::release`].
    pub release: (u32, u32),
    /// Names of containers, by id.
    pub containers: BTreeMap<&'static str, ContainerNames>,
    /// Cgroups by id, each after the one that it is in.
    pub cgroups: BTreeMap<u64, Cgroup>,
    /// See [`System::kernel_has`].
    pub signs: Vec<Sign<'static>>,
    /// Whether every look-up of what a path leads to is refused.
    pub refuses: AtomicBool,
    /// See [`System::refusals`].
    pub refusals: AtomicU32,
}

impl StaticSystem {
    /// Boot time of the system: 14 November 2023, in nanoseconds since the Unix epoch.
    pub const BOOTED_NS: u64 = 1_700_000_000_000_000_000;

    fn file(&self, path: &CStr) -> Option<&StaticFile> {
        if self.refuses.load(Ordering::Relaxed) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.files.get(path.to_str().ok()?)
    }

    /// The file that a path leads to.
    fn target(&self, path: &CStr) -> Option<&StaticFile> {
        let file = self.file(path)?;
        match file.real_path {
            Some(real) => self.files.get(real),
            None => Some(file),
        }
    }

    /// The file that a path leads to, if it is the object `of`.
    fn object(&self, path: &CStr, of: Option<ObjectId>) -> Option<&StaticFile> {
        let id = |file: &StaticFile| ObjectId {
            dev: file.inode.dev,
            ino: file.inode.ino,
        };
        let file = self.target(path)?;
        of.is_none_or(|of| of == id(file)).then_some(file)
    }
}

impl System for StaticSystem {
    fn begin_event(&self, _: Origin) {
        self.refusals.store(0, Ordering::Relaxed);
    }

    fn refusals(&self) -> u32 {
        self.refusals.load(Ordering::Relaxed)
    }

    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode> {
        let found = if follow {
            self.target(path)
        } else {
            self.file(path)
        };
        found.map(|file| file.inode)
    }

    fn real_path(&self, path: &CStr) -> Option<Vec<u8>> {
        let real = self.file(path)?.real_path;
        Some(real.map_or(path.to_bytes(), str::as_bytes).to_vec())
    }

    fn file_capabilities(&self, path: &CStr, of: Option<ObjectId>) -> Option<Vec<u8>> {
        self.object(path, of)?.capabilities.clone()
    }

    fn head(&self, path: &CStr, of: Option<ObjectId>, bytes_max: u32) -> Option<Vec<u8>> {
        let contents = &self.object(path, of)?.contents;
        let len = contents.len().min(bytes_max as usize);
        Some(contents[..len].to_vec())
    }

    /// Returns the first bytes of the contents in place of a digest.
    fn digests(&self, file: &ExecutedFile<'_>) -> Digests {
        let Some(found) = self.object(file.path, Some(file.object)) else {
            return Digests::none(NoDigest::Gone);
        };

        let mut bytes = [0; SHA256_BYTES];
        bytes
            .iter_mut()
            .zip(&found.contents)
            .for_each(|(to, from)| *to = *from);
        Digests {
            sha256: Ok(bytes),
            verity: None,
        }
    }

    fn file_system(&self, path: &CStr) -> Option<u32> {
        self.file_systems.get(path.to_str().ok()?).copied()
    }

    fn user(&self, uid: u32) -> NameAnswer {
        match self.names.get(&uid) {
            Some(name) => NameAnswer::Name((*name).to_owned()),
            None => NameAnswer::Nameless,
        }
    }

    fn group(&self, gid: u32) -> NameAnswer {
        self.user(gid)
    }

    fn kernel_file(&self, file: KernelFile) -> Option<Vec<u8>> {
        let file = self.files.get(&*file.path())?;
        Some(file.contents.clone())
    }

    fn cgroups(&self, found: &mut dyn FnMut(u64, Cgroup)) -> bool {
        for (id, cgroup) in &self.cgroups {
            found(*id, cgroup.clone());
        }
        true
    }

    fn cgroup(&self, id: u64) -> Option<Cgroup> {
        self.cgroups.get(&id).cloned()
    }

    fn container_names(&self, id: &[u8], _: &[u8]) -> Option<ContainerNames> {
        let id = std::str::from_utf8(id).ok()?;
        self.containers.get(id).cloned()
    }

    fn mount_namespace(&self, pid: Option<u32>) -> Option<u64> {
        let process = pid.map_or("self".to_owned(), |pid| pid.to_string());
        let link = self.files.get(&*format!("/proc/{process}/ns/mnt"))?;
        Some(link.inode.ino)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }

    fn realtime_ns(&self) -> u64 {
        Self::BOOTED_NS + self.monotonic_ns()
    }

    fn release(&self) -> (u32, u32) {
        self.release
    }

    fn kernel_has(&self, sign: Sign<'_>) -> bool {
        self.signs.contains(&sign)
    }
}
