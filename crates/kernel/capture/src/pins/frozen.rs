//! Bytes in a pinned map that no process can change any more, root included: bpf(2), BPF_MAP_FREEZE. Whoever may write
//! to the BPF file system can remove the pin; the holder of the map pins it again.

use super::file_system;
use crate::error::{system, CaptureError};
use bpf::load::refused;
use libbpf_rs::libbpf_sys::{bpf_map_create_opts, bpf_obj_pin};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of one element. The kernel copies an element at a time.
const ELEMENT_BYTES: usize = 4096;
/// Bytes before the text in the first element: the text's length (u64).
const HEAD_BYTES: usize = 8;
/// Longest text, in bytes.
const BYTES_MAX: usize = 256 << 20;
/// Name of the map, as `bpftool map` shows it.
const NAME: &str = "tarsier_frozen";

/// A frozen map that is pinned.
#[derive(Debug)]
pub struct FrozenMap {
    map: MapHandle,
    path: PathBuf,
}

impl FrozenMap {
    /// Makes a map with this text, freezes it and pins it as `path`, in place of what is there. If `path` is below the
    /// standard mount point, a BPF file system is mounted there if necessary.
    ///
    /// # Errors
    /// `path` is not on a BPF file system, or the kernel refuses a step.
    pub fn make(path: &Path, text: &[u8]) -> Result<FrozenMap, CaptureError> {
        let mut bytes = (text.len() as u64).to_ne_bytes().to_vec();
        bytes.extend_from_slice(text);
        bytes.resize(bytes.len().next_multiple_of(ELEMENT_BYTES), 0);

        let elements = bytes.chunks_exact(ELEMENT_BYTES);
        let options = bpf_map_create_opts {
            sz: std::mem::size_of::<bpf_map_create_opts>() as u64,
            ..bpf_map_create_opts::default()
        };

        let map = MapHandle::create(
            MapType::Array,
            Some(NAME),
            4,
            ELEMENT_BYTES as u32,
            elements.len() as u32,
            &options,
        );
        let map = map.map_err(refused("map for frozen text".to_owned()))?;

        for (place, element) in (0u32..).zip(elements) {
            map.update(&place.to_ne_bytes(), element, MapFlags::ANY)
                .map_err(refused("text of a frozen map".to_owned()))?;
        }
        map.freeze().map_err(refused("BPF_MAP_FREEZE".to_owned()))?;

        let frozen = FrozenMap {
            map,
            path: path.to_owned(),
        };
        frozen.pin()?;
        Ok(frozen)
    }

    /// Mounts the standard BPF file system if `path` is below its mount point and none is there: a confined process
    /// cannot do so later.
    ///
    /// # Errors
    /// The file system cannot be mounted.
    pub fn prepare(path: &Path) -> Result<(), CaptureError> {
        file_system::mount_if_missing(path)
    }

    /// The frozen map that this user has pinned as `path`, with its text; `None` if there is none, a map of another
    /// kind, or another user's: everybody may write to some BPF file systems.
    pub fn find(path: &Path) -> Option<(FrozenMap, Vec<u8>)> {
        let found = path.symlink_metadata().ok()?;
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return None;
        }

        let map = MapHandle::from_pinned_path(path).ok()?;
        let is_of_this_kind = map.map_type() == MapType::Array
            && map.key_size() == 4
            && map.value_size() as usize == ELEMENT_BYTES
            && is_frozen(&map);

        let count = map.max_entries();
        if !is_of_this_kind || count as usize > BYTES_MAX / ELEMENT_BYTES {
            return None;
        }

        let mut bytes = Vec::new();
        for place in 0..count {
            let element = map.lookup(&place.to_ne_bytes(), MapFlags::ANY).ok()??;
            bytes.extend(element);
        }

        let (head, text) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let len = usize::try_from(u64::from_ne_bytes(*head)).ok()?;
        let text = text.get(..len)?.to_vec();
        let path = path.to_owned();
        Some((FrozenMap { map, path }, text))
    }

    /// Whether its pin is there and is of this map.
    pub fn is_pinned(&self) -> bool {
        let id = |map: &MapHandle| map.info().ok().map(|info| info.info.id);
        // Opening what is no map is an error.
        let there = MapHandle::from_pinned_path(&self.path);
        there.is_ok_and(|there| id(&there).is_some() && id(&there) == id(&self.map))
    }

    /// Pins it, in place of what is there.
    ///
    /// # Errors
    /// `path` is not on a BPF file system, or the kernel refuses it.
    pub fn pin(&self) -> Result<(), CaptureError> {
        let what = || format!("pin {}", self.path.display());

        file_system::mount_if_missing(&self.path)?;
        let _ = rustix::fs::unlink(&self.path);
        let _ = rustix::fs::rmdir(&self.path);
        let path = CString::new(self.path.as_os_str().as_bytes());
        let path = path.map_err(|error| CaptureError::System {
            what: what(),
            source: error.into(),
        })?;

        // SAFETY: the path outlives the call, which only reads it.
        match unsafe { bpf_obj_pin(self.map.as_fd().as_raw_fd(), path.as_ptr()) } {
            0 => Ok(()),
            error => Err(Errno::from_raw_os_error(-error)).map_err(system(what())),
        }
    }
}

/// Whether the kernel has frozen a map (proc(5), fdinfo of maps).
fn is_frozen(map: &MapHandle) -> bool {
    let path = format!("/proc/self/fdinfo/{}", map.as_fd().as_raw_fd());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .any(|line| line.split_whitespace().eq(["frozen:", "1"]))
}
