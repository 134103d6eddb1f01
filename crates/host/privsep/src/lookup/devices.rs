//! The device of an object's file system as the kernel has it, `i_sb->s_dev`, which the kernel's
//! audit and the programs compare. stat(2) shows another one on btrfs (the subvolume's) and
//! overlayfs (the layer's).

use crate::lookup::object::{dev_of, unique_mount_of};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use rustix::fs::{Statx, StatxFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek};

/// Limit of the bytes read from the mounts of another namespace, whose number a caller may choose:
/// about a thousand mounts.
const OTHERS_BYTES_MAX: u64 = 128 * 1024;
/// Limit of the mounts of other namespaces that are remembered.
const OTHERS_MAX: usize = 4096;
/// Bits of a device number below the major number: MINORBITS of linux/kdev_t.h.
const MAJOR_SHIFT: u32 = 20;

/// Devices of mounts.
#[derive(Default)]
pub(crate) struct Devices {
    own: Option<OwnMounts>,
    /// Devices of mounts in other namespaces, by ids that are not used again (`STATX_MNT_ID_UNIQUE`, Linux 6.8).
    others: HashMap<u64, u32>,
}

impl Devices {
    /// The device of the file system of `object`, which is open, so that the id of its mount in `stat` is not used
    /// again meanwhile. It was reached through the root directory of `process`, if that is not `None`.
    ///
    /// For a mount in neither namespace it is unknown; then the result is the device that stat(2)
    /// shows.
    pub(crate) fn of(&mut self, object: impl AsFd, stat: &Statx, process: Option<u32>) -> u32 {
        let shown = dev_of(stat);
        // Devices that differ belong to no block device.
        let is_plain = shown >> MAJOR_SHIFT != 0;
        if is_plain || stat.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return shown;
        }
        let mount = stat.stx_mnt_id;
        let found = self.own_mount(mount);
        let found = found.or_else(|| self.others_mount(object, mount, process?));
        found.unwrap_or(shown)
    }

    fn own_mount(&mut self, id: u64) -> Option<u32> {
        if self.own.is_none() {
            self.own = OwnMounts::open();
        }
        self.own.as_mut()?.device(id)
    }

    fn others_mount(&mut self, object: impl AsFd, id: u64, process: u32) -> Option<u32> {
        let unique = unique_mount_of(object);
        if let Some(dev) = unique.and_then(|unique| self.others.get(&unique)) {
            return Some(*dev);
        }

        let mut mounts = Vec::new();
        let file = File::open(format!("/proc/{process}/mountinfo")).ok()?;
        // The part read before an error counts.
        let _ = file.take(OTHERS_BYTES_MAX).read_to_end(&mut mounts);
        let mut mounts = mounts.split(|&byte| byte == b'\n').filter_map(mount_of);
        let (_, dev) = mounts.find(|&(other, _)| other == id)?;
        if let Some(unique) = unique {
            if self.others.len() >= OTHERS_MAX {
                self.others.clear();
            }
            self.others.insert(unique, dev);
        }

        Some(dev)
    }
}

/// The mounts of this process's namespace.
struct OwnMounts {
    /// `mountinfo`. poll(2) reports whether it has changed since the last poll:
    /// proc_pid_mountinfo(5).
    file: File,
    devices: HashMap<u64, u32>,
}

impl OwnMounts {
    fn open() -> Option<OwnMounts> {
        let file = File::open("/proc/self/mountinfo").ok()?;
        let mut own = OwnMounts {
            file,
            devices: HashMap::new(),
        };
        own.read()?;
        Some(own)
    }

    /// The current device of the mount with this id.
    fn device(&mut self, id: u64) -> Option<u32> {
        let mut file = [PollFd::new(&self.file, PollFlags::PRI)];
        let at_once = Timespec::default();
        if poll(&mut file, Some(&at_once)) != Ok(0) {
            self.read()?;
        }
        self.devices.get(&id).copied()
    }

    fn read(&mut self) -> Option<()> {
        self.devices.clear();
        self.file.rewind().ok()?;
        let mut mounts = Vec::new();
        self.file.read_to_end(&mut mounts).ok()?;
        let mounts = mounts.split(|&byte| byte == b'\n').filter_map(mount_of);
        self.devices.extend(mounts);
        Some(())
    }
}

/// Id and device of a mount from its line in mountinfo.
fn mount_of(line: &[u8]) -> Option<(u64, u32)> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mut field = || std::str::from_utf8(fields.next()?).ok();
    let id = field()?.parse().ok()?;
    let _parent = field()?;
    let (major, minor) = field()?.split_once(':')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    Some((id, major << MAJOR_SHIFT | minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::object::stat;

    #[test]
    fn a_line_of_mountinfo_has_the_id_and_the_device() {
        let line = b"36 35 98:12 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_of(line), Some((36, 98 << 20 | 12)));
        assert_eq!(mount_of(b"36 35 0:12 /"), Some((36, 12)));
        for broken in [&b""[..], b"36", b"36 35 98", b"x 35 98:12", b"36 35 98:x"] {
            assert_eq!(mount_of(broken), None);
        }
    }

    #[test]
    fn the_device_is_that_of_the_mount_whatever_stat_shows() {
        let object = File::open("/proc/version").expect("proc(5)");
        let mut shown = stat(&object).expect("statx");
        let dev = dev_of(&shown);
        shown.stx_dev_minor += 1000;
        let mut devices = Devices::default();
        assert_eq!(devices.of(&object, &shown, None), dev);
        shown.stx_dev_major = 8;
        assert_eq!(devices.of(&object, &shown, None), dev_of(&shown));
        shown.stx_dev_major = 0;
        shown.stx_mnt_id = u64::MAX;
        assert_eq!(devices.of(&object, &shown, None), dev_of(&shown));
        let pid = Some(std::process::id());
        assert_eq!(devices.of(&object, &shown, pid), dev_of(&shown));
    }

    #[test]
    fn a_mount_that_another_namespace_has_is_read_of_a_process_there() {
        let object = File::open("/proc/version").expect("proc(5)");
        let shown = stat(&object).expect("statx");
        let mut devices = Devices::default();
        let found = devices.others_mount(&object, shown.stx_mnt_id, std::process::id());
        assert_eq!(found, Some(dev_of(&shown)));
        // From now on without reading, where ids are not used again.
        let is_known = devices.others_mount(&object, u64::MAX, 0).is_some();
        assert_eq!(is_known, unique_mount_of(&object).is_some());
    }
}
