//! A system that is written down: for tests, and for the fuzzer.

use crate::system::{Sign, System};
use event::record::Inode;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// What there is of a path.
#[derive(Clone, Debug, Default)]
pub struct StaticFile {
    /// The object.
    pub inode: Inode,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// Its extended attribute `security.capability`.
    pub capabilities: Option<Vec<u8>>,
    /// What it is without symbolic links, if that is another path. It is then a link to that.
    pub real_path: Option<&'static str>,
}

/// A system that has what its fields say and nothing else. Its clocks stand still.
#[derive(Debug, Default)]
pub struct StaticSystem {
    /// Files by absolute path.
    pub files: BTreeMap<&'static str, StaticFile>,
    /// Kinds of file systems by the path at which they are mounted.
    pub file_systems: BTreeMap<&'static str, u32>,
    /// Users and groups have the same names.
    pub names: BTreeMap<u32, &'static str>,
    /// CLOCK_MONOTONIC; CLOCK_REALTIME is [`StaticSystem::BOOTED_NS`] more.
    pub monotonic_ns: AtomicU64,
    /// See [`System::release`].
    pub release: (u32, u32),
    /// See [`System::kernel_has`].
    pub signs: Vec<Sign<'static>>,
}

impl StaticSystem {
    /// When it was booted: 14 November 2023, nanoseconds of the epoch.
    pub const BOOTED_NS: u64 = 1_700_000_000_000_000_000;

    fn file(&self, path: &CStr) -> Option<&StaticFile> {
        self.files.get(path.to_str().ok()?)
    }

    /// What a path leads to.
    fn target(&self, path: &CStr) -> Option<&StaticFile> {
        let file = self.file(path)?;
        match file.real_path {
            Some(real) => self.files.get(real),
            None => Some(file),
        }
    }
}

impl System for StaticSystem {
    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode> {
        let found = match follow {
            true => self.target(path),
            false => self.file(path),
        };
        found.map(|file| file.inode)
    }

    fn real_path(&self, path: &CStr) -> Option<Vec<u8>> {
        let real = self.file(path)?.real_path;
        Some(real.map_or(path.to_bytes(), str::as_bytes).to_vec())
    }

    fn file_capabilities(&self, path: &CStr) -> Option<Vec<u8>> {
        self.target(path)?.capabilities.clone()
    }

    fn read(&self, path: &CStr, bytes_max: u64) -> Option<Vec<u8>> {
        let contents = &self.target(path)?.contents;
        let len = usize::try_from(bytes_max).map_or(contents.len(), |max| contents.len().min(max));
        Some(contents[..len].to_vec())
    }

    fn file_system(&self, path: &CStr) -> Option<u32> {
        self.file_systems.get(path.to_str().ok()?).copied()
    }

    fn user(&self, uid: u32) -> Option<String> {
        self.names.get(&uid).map(|name| (*name).to_owned())
    }

    fn group(&self, gid: u32) -> Option<String> {
        self.user(gid)
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
