//! Frames that tell of cgroups.

use super::{frame_kind, read, tarsier_cgroup, FrameKind, WireError};
use super::{TARSIER_CGROUP_OF_ROOT, TARSIER_CGROUP_REMOVED};
use core::mem::size_of;

/// The longest name of a directory: linux/limits.h.
const NAME_MAX: usize = 255;

/// A CGROUP frame: a cgroup of the cgroup2 hierarchy was made or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupFrame<'a> {
    /// Id of the cgroup; no other cgroup ever has it.
    pub id: u64,
    /// Id of the cgroup that it is in.
    pub parent: u64,
    /// Whether it was removed; otherwise it was made.
    pub is_removed: bool,
    /// Whether nobody but root could write to the directory that it is in, and so choose its name.
    pub is_of_root: bool,
    /// The cgroup's own name, the last of its path.
    pub name: &'a [u8],
}

impl<'a> CgroupFrame<'a> {
    /// Checks the whole frame `bytes`, which must be exactly one CGROUP frame.
    pub fn parse(bytes: &'a [u8]) -> Result<CgroupFrame<'a>, WireError> {
        let (kind, frame) = frame_kind(bytes)?;
        if kind != FrameKind::Cgroup {
            return Err(WireError::Kind(frame.kind));
        }

        let header: tarsier_cgroup = read(bytes)?;
        let at = size_of::<tarsier_cgroup>();
        let name = bytes[at..].get(..header.len as usize);
        let name = name.filter(|name| name.len() <= NAME_MAX);
        let Some(name) = name else {
            return Err(WireError::PartBounds { part: 0, at });
        };

        let is_name = !name.is_empty() && !name.iter().any(|byte| matches!(byte, b'/' | 0));
        let flags = u32::from(header.flags);
        if !is_name || flags & !(TARSIER_CGROUP_REMOVED | TARSIER_CGROUP_OF_ROOT) != 0 {
            return Err(WireError::Cgroup(header.flags));
        }

        Ok(CgroupFrame {
            id: header.id,
            parent: header.parent,
            is_removed: flags & TARSIER_CGROUP_REMOVED != 0,
            is_of_root: flags & TARSIER_CGROUP_OF_ROOT != 0,
            name,
        })
    }
}
