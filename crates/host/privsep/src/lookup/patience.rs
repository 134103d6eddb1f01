//! Distinguishes a helper that hangs from one that is slow because the machine is busy.

use compose::KernelFile;
use std::time::{Duration, Instant};

/// Number of deadlines to wait for a helper that is merely slow: 5 s in all.
const DEADLINES_MAX: u32 = 50;
/// Clock ticks that a helper may compute after its deadline: a tenth of a second.
const TICKS_MAX: u64 = 10;
/// Block devices have a major number; FUSE may have one, too.
const MAJOR_SHIFT: u32 = 20;
/// File systems without a block device that depend on this machine only.
const LOCAL: [&[u8]; 8] = [
    b"bcachefs",
    b"btrfs",
    b"devtmpfs",
    b"proc",
    b"ramfs",
    b"sysfs",
    b"tmpfs",
    b"zfs",
];

/// Activity of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doing {
    /// The process runs, or waits for a processor.
    pub(crate) is_runnable: bool,
    /// The process is stopped, by a signal or a tracer.
    pub(crate) is_stopped: bool,
    /// Processor time that it has used, in clock ticks.
    pub(crate) ticks: u64,
}

impl Doing {
    /// Activity of process `pid`; `None` if that is unknown.
    pub(crate) fn of(pid: u32) -> Option<Doing> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Doing::parse(&stat)
    }

    /// `stat` of proc_pid_stat(5).
    fn parse(stat: &[u8]) -> Option<Doing> {
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let mut times = fields.skip(10).map(str::parse::<u64>);
        let ticks = times.next()?.ok()?.checked_add(times.next()?.ok()?)?;
        Some(Doing {
            is_runnable: state == "R",
            is_stopped: matches!(state, "T" | "t"),
            ticks,
        })
    }
}

/// The time that one question may take.
pub(crate) struct Patience {
    /// Time at which even a slow helper is given up.
    until: Instant,
    ticks: Option<u64>,
}

impl Patience {
    /// Patience for a question that is asked `now`, with deadlines this long.
    pub(crate) fn new(now: Instant, deadline: Duration) -> Patience {
        Patience {
            until: now + DEADLINES_MAX * deadline,
            ticks: None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Whether a helper that is late by now has another deadline: it got no CPU time, or it waits
    /// for the file system `waits`, which is local.
    pub(crate) fn lasts(&mut self, doing: Option<Doing>, waits: Option<u32>) -> bool {
        if self.is_over() {
            return false;
        }

        match doing {
            Some(doing) if doing.is_runnable => {
                let before = *self.ticks.get_or_insert(doing.ticks);
                doing.ticks.saturating_sub(before) < TICKS_MAX
            }
            Some(_) => waits.is_some_and(|dev| {
                crate::lookup::kernel::file(KernelFile::Mounts)
                    .is_some_and(|mounts| is_local(&mounts, dev))
            }),
            None => false,
        }
    }
}

/// Whether the file system with device number `dev` depends only on this machine's disks or memory,
/// by `mountinfo` of proc(5).
fn is_local(mounts: &[u8], dev: u32) -> bool {
    let (major, minor) = (dev >> MAJOR_SHIFT, dev & ((1 << MAJOR_SHIFT) - 1));
    let device = format!("{major}:{minor}");
    let mut kinds = mounts
        .split(|&byte| byte == b'\n')
        .filter_map(|line| kind(line, &device));
    let Some(kind) = kinds.next() else {
        return false;
    };

    match major {
        0 => LOCAL.contains(&kind),
        _ => !kind.starts_with(b"fuse"),
    }
}

/// The kind of the file system of a line of `mountinfo`, if it is on `device`.
fn kind<'a>(line: &'a [u8], device: &str) -> Option<&'a [u8]> {
    let mut fields = line.split(|&byte| byte == b' ');
    if fields.nth(2)? != device.as_bytes() {
        return None;
    }
    fields.find(|&field| field == b"-")?;
    fields.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"\
        21 1 254:0 / / rw,noatime shared:1 - ext4 /dev/vda rw\n\
        22 21 0:20 / /proc rw - proc proc rw\n\
        23 21 0:33 / /mnt/dead rw shared:7 master:2 - fuse.dead dead rw\n\
        24 21 0:34 / /mnt/nfs rw - nfs4 host:/x rw\n\
        25 21 8:1 / /mnt/ntfs rw - fuseblk /dev/sda1 rw\n\
        26 21 0:35 / /tmp rw - tmpfs none rw\n";

    #[test]
    fn local_file_systems_are_those_of_disks_and_memory() {
        let local = |major: u32, minor: u32| is_local(MOUNTS, major << 20 | minor);
        assert!(local(254, 0) && local(0, 20) && local(0, 35));
        assert!(!local(0, 33) && !local(0, 34) && !local(8, 1));
        assert!(!local(254, 1) && !local(0, 99));
        assert!(!is_local(b"21 1 254:0 / / rw", 254 << 20));
    }

    #[test]
    fn what_a_process_does_is_read_whatever_its_name() {
        let stat = b"7 (a) S (b) R 1 7 7 0 -1 4194560 1 2 3 4 50 6 0 0 20 0 1 0";
        let expected = Doing {
            is_runnable: true,
            is_stopped: false,
            ticks: 56,
        };
        assert_eq!(Doing::parse(stat), Some(expected));
        let stopped = [&stat[..12], b"T", &stat[13..]].concat();
        assert!(Doing::parse(&stopped).is_some_and(|doing| doing.is_stopped && !doing.is_runnable));
        assert_eq!(Doing::parse(b"7 (a) R 1 7"), None);
        assert_eq!(Doing::parse(b""), None);
        assert!(Doing::of(std::process::id()).is_some());
    }

    #[test]
    fn a_helper_has_time_while_it_has_no_processor_but_not_to_compute() {
        let mut patience = Patience::new(Instant::now(), Duration::from_secs(10));
        let runnable = |ticks| {
            Some(Doing {
                is_runnable: true,
                is_stopped: false,
                ticks,
            })
        };
        assert!(patience.lasts(runnable(100), None));
        assert!(patience.lasts(runnable(109), Some(1)));
        assert!(!patience.lasts(runnable(110), None));
        let sleeps = Some(Doing {
            is_runnable: false,
            is_stopped: false,
            ticks: 100,
        });
        assert!(!patience.lasts(sleeps, None));
        assert!(!patience.lasts(None, None));
        let mut over = Patience::new(Instant::now(), Duration::ZERO);
        assert!(!over.lasts(runnable(100), None));
    }
}
