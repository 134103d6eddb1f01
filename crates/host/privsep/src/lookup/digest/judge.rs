//! Whether a file's times prove that its contents are those of the time of an execve.
//!
//! A program that runs is not open for writing (`deny_write_access()`, fs/exec.c), so whatever
//! changes it afterwards begins afterwards, and first sets `st_ctime`. A file whose last change is
//! older than the execve is thus unchanged, if the file system keeps to that ([`Kind`]), and if the
//! times are further apart than clocks are wrong.

use crate::lookup::object::FileTime;
use record::NoDigest;

/// Nanoseconds by which the time in an inode may be older than the change: a tick of the clock, at
/// most 10 ms, and longer where a virtual machine is not scheduled.
const LAG_NS: i64 = 250_000_000;
/// The same where times of inodes are whole seconds, as with 128-byte inodes of ext4.
const WHOLE_SECONDS_LAG_NS: i64 = 2_000_000_000;
/// Longest time that an execve of a script is taken to last, in nanoseconds. The kernel denies
/// writing only until it turns to the interpreter.
const SCRIPT_NS: i64 = 2_000_000_000;
/// Time after which changes through a mapping have been written back, in nanoseconds: twice
/// `vm.dirty_expire_centisecs`. On overlayfs a mapping may be written while the file is executed, but
/// after it was written back, that sets `st_ctime` again.
const WRITEBACK_NS: i64 = 60_000_000_000;

/// Promise that a kind of file systems makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every change sets `st_ctime`.
    Plain,
    /// Like [`Kind::Plain`], but several files have the same device and inode number.
    Btrfs,
    /// Changes go to another file system.
    Overlay,
}

impl Kind {
    /// Kind by `f_type` of statfs(2); `None` if changes may leave no trace: a server or a process answers
    /// for the file, or, as on tmpfs, writing through a mapping sets no time.
    pub(super) fn of(kind: i64) -> Option<Kind> {
        match kind {
            // ext2, ext3 and ext4; XFS; F2FS; SquashFS; EROFS.
            0xef53 | 0x5846_5342 | 0xf2f5_2010 | 0x7371_7368 | 0xe0f5_e1e2 => Some(Kind::Plain),
            0x9123_683e => Some(Kind::Btrfs),
            0x794c_7630 => Some(Kind::Overlay),
            _ => None,
        }
    }
}

/// Whether renames of directories on this kind of file system set `st_ctime`.
pub(super) fn has_true_directories(kind: i64) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    kind == TMPFS || Kind::of(kind).is_some()
}

/// Margin by which a change has to be older than the execve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Margin {
    pub(super) is_script: bool,
    pub(super) is_overlay: bool,
}

impl Margin {
    /// Margin for a directory that leads to a script.
    pub(super) const DIRECTORY: Margin = Margin {
        is_script: true,
        is_overlay: false,
    };

    /// Whether a change at `changed` was before an execve that was done at `event_ns` of
    /// CLOCK_REALTIME.
    pub(super) fn check(self, changed: FileTime, event_ns: i64) -> Result<(), NoDigest> {
        let (seconds, nanoseconds) = changed;
        let lag = match nanoseconds {
            0 => WHOLE_SECONDS_LAG_NS,
            _ => LAG_NS,
        };
        let script = if self.is_script { SCRIPT_NS } else { 0 };
        let writeback = if self.is_overlay { WRITEBACK_NS } else { 0 };
        let seconds = seconds.saturating_mul(1_000_000_000);
        let changed_ns = seconds.saturating_add(nanoseconds.into());
        if changed_ns > event_ns {
            return Err(NoDigest::Changed);
        }

        if changed_ns.saturating_add(lag + script.max(writeback)) <= event_ns {
            Ok(())
        } else {
            Err(NoDigest::Recent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Margin = Margin {
        is_script: false,
        is_overlay: false,
    };
    /// A time of an execve, in nanoseconds.
    const EVENT: i64 = 1_000_000_000_500_000_000;

    /// The judgement of a change this much before the execve.
    fn judged(margin: Margin, before_ns: i64) -> Result<(), NoDigest> {
        let changed = (
            (EVENT - before_ns).div_euclid(1_000_000_000),
            (EVENT - before_ns).rem_euclid(1_000_000_000) as u32,
        );
        margin.check(changed, EVENT)
    }

    #[test]
    fn a_change_that_may_have_come_after_the_execve_leaves_no_digest() {
        assert_eq!(judged(PROGRAM, -1), Err(NoDigest::Changed));
        for before in [0, 1, 10_000_000, LAG_NS - 1] {
            assert_eq!(judged(PROGRAM, before), Err(NoDigest::Recent), "{before}");
        }
        assert_eq!(judged(PROGRAM, LAG_NS), Ok(()));
        let script = Margin::DIRECTORY;
        assert_eq!(judged(script, SCRIPT_NS), Err(NoDigest::Recent));
        assert_eq!(judged(script, SCRIPT_NS + LAG_NS), Ok(()));
        let overlay = Margin {
            is_overlay: true,
            ..script
        };
        assert_eq!(judged(overlay, WRITEBACK_NS), Err(NoDigest::Recent));
        assert_eq!(judged(overlay, WRITEBACK_NS + LAG_NS), Ok(()));
    }

    #[test]
    fn a_time_of_whole_seconds_may_be_older_than_the_change() {
        assert_eq!(judged(PROGRAM, 1_500_000_000), Err(NoDigest::Recent));
        assert_eq!(judged(PROGRAM, 2_500_000_000), Ok(()));
    }

    #[test]
    fn times_at_the_ends_of_their_range_are_judged() {
        for (seconds, expected) in [(i64::MAX, Err(NoDigest::Changed)), (i64::MIN, Ok(()))] {
            let changed = (seconds, 7);
            assert_eq!(PROGRAM.check(changed, EVENT), expected);
        }
    }

    #[test]
    fn servers_processes_and_memory_are_not_trusted() {
        // FUSE, NFS, CIFS, tmpfs, ramfs, proc, 9p.
        for kind in [
            0x6573_5546,
            0x6969,
            0xff53_4d42,
            0x0102_1994,
            0x8584_58f6,
            0x9fa0,
            0x0102_1997,
        ] {
            assert_eq!(Kind::of(kind), None, "{kind:x}");
        }
        assert!(has_true_directories(0x0102_1994) && !has_true_directories(0x9fa0));
    }
}
