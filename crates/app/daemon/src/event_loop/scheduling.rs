//! The daemon's priority over other tasks while rings are filling.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;

/// Fill of a ring, in parts per thousand, from which the daemon is late.
const LATE_PER_MILLE: u32 = 400;
/// Fill of a ring, in parts per thousand, from which losses are imminent: calls that wait for space
/// keep their processor, and if the daemon does not run before them, their events are lost.
const NEARLY_FULL_PER_MILLE: u32 = 850;
/// The highest priority that nice can give.
const NICE_MIN: i32 = -20;
/// Step by which the nice value is lowered.
const NICE_STEP: i32 = 6;
/// Interval at which the nice value is adjusted.
const WINDOW: Duration = Duration::from_millis(20);
/// Share of a window spent waiting for a processor, in parts per thousand, from which other tasks
/// are in the way.
const WAITED_MUCH: u64 = 250;
/// Share of a window below which the daemon has a higher priority than it needs.
const WAITED_LITTLE: u64 = 100;

/// The nice value of the daemon's thread, of the thread that syncs the log, without which nothing
/// becomes durable, and of the helper that looks up paths.
///
/// Until a ring is two fifths full, `priority_boost` sets it. From then on, until a pass finds nothing to read, it is
/// adjusted to the daemon's needs: lowered while the thread waits for a processor for a quarter of the time, as
/// `schedstat` reports (Documentation/scheduler/sched-stats.rst), and raised while it waits for less than a tenth. A
/// lower value would only hold up other tasks, among them the kernel threads that write the log. While a ring is nearly
/// full, it is the lowest possible value.
#[derive(Debug)]
pub(crate) struct Scheduling {
    /// The nice value while no ring is filling up.
    base: i32,
    nice: i32,
    /// `schedstat` of the daemon's thread; without it, nice goes to its minimum.
    schedstat: Option<File>,
    window: Option<LateWindow>,
}

/// A period over which waiting is measured.
#[derive(Clone, Copy, Debug)]
struct LateWindow {
    start: Instant,
    waited_ns: u64,
}

impl Scheduling {
    /// Starts for the calling thread, whose nice value is `base`.
    pub(crate) fn new(base: i32) -> Self {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        Scheduling {
            base,
            nice: base,
            // If the kernel does not count, all numbers are 0, even how often this thread ran.
            schedstat: schedstat.filter(|file| number_of(file, 2) > 0),
            window: None,
        }
    }

    /// On a host with one processor the reader cannot run beside the tasks that fill the rings, and
    /// a call that waits for the reader keeps it from running. So this makes the first thread of
    /// process `pid`, the daemon or a helper that it waits for, run before all tasks without
    /// real-time priority. Threads and programs that it starts do not inherit this. Without
    /// permission nothing changes.
    pub(crate) fn go_first_on_one_processor(pid: u32) {
        const PRIORITY_LEAST: i32 = 1;
        let processors = rustix::thread::sched_getaffinity(None).map_or(0, |set| set.count());
        if processors != 1 {
            return;
        }

        let parameter = libc::sched_param {
            sched_priority: PRIORITY_LEAST,
        };
        // In turns, so that neither keeps the other from running.
        let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;

        // SAFETY: reads the parameter, which outlives the call.
        unsafe {
            libc::sched_setscheduler(pid as libc::pid_t, policy, &parameter);
        }
    }

    /// Disables huge pages for this process. khugepaged, which runs at nice 19, locks the address
    /// space while it makes them: on a busy host the daemon's next page fault waited up to six
    /// seconds for it. Child processes inherit this unless it is reset, as for the command
    /// ([`crate::event_loop::child::start`]), plugins and EXEC programs.
    pub(crate) fn refuse_huge_pages() {
        // Linux before 3.15 has no such switch; nothing can be done about that.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }

    /// Sets all threads of the process, and the process `helper` that it waits for, to `base`, their
    /// nice value while no ring is filling up.
    ///
    /// # Errors
    /// setpriority(2) failed; threads before the failing one are set.
    pub(crate) fn rest_at(&mut self, base: i32, helper: Option<Pid>) -> std::io::Result<()> {
        (self.base, self.window) = (base, None);
        if helper.is_some() {
            // It may have ended; the next one inherits the value.
            let _ = rustix::process::setpriority_process(helper, base);
        }

        // Each thread has its own nice value, and the sync thread must not wait longer than this
        // one.
        for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten() {
            let name = thread.map(|thread| thread.file_name()).unwrap_or_default();
            let id = name.to_str().and_then(|name| name.parse().ok());
            let Some(id) = id.and_then(Pid::from_raw) else {
                continue;
            };
            match rustix::process::setpriority_process(Some(id), base) {
                // The thread has ended.
                Ok(()) | Err(Errno::SRCH) => self.nice = base,
                Err(errno) => return Err(errno.into()),
            }
        }

        Ok(())
    }

    /// Adjusts the nice value after a pass that read `frames`. `fill` is the fill of the fullest
    /// ring before the pass and `left` the fill now, in parts per thousand: a daemon that seldom
    /// runs finds rings full, and leaves them empty.
    ///
    /// `others` are a thread and a process for which the daemon waits.
    pub(crate) fn note(&mut self, frames: usize, fill: u32, left: u32, others: [Option<Pid>; 2]) {
        let fullest = fill.max(left);

        match self.window {
            None if fullest < LATE_PER_MILLE => {}
            _ if fullest >= NEARLY_FULL_PER_MILLE => {
                self.begin_window();
                self.set(NICE_MIN, others);
            }
            None => {
                self.begin_window();

                // Without schedstat it cannot be seen whether a step helps: then all at once.
                let step = self
                    .schedstat
                    .as_ref()
                    .map_or(NICE_MIN, |_| self.nice - NICE_STEP);
                self.set(step, others);
            }
            Some(_) if frames == 0 => {
                self.window = None;
                self.set(self.base, others);
            }
            Some(window) => {
                let elapsed = window.start.elapsed();
                if elapsed >= WINDOW && self.schedstat.is_some() {
                    let waited_ns = self.waited_ns().saturating_sub(window.waited_ns);
                    self.begin_window();
                    self.set(next(self.nice, self.base, waited_ns, elapsed), others);
                }
            }
        }
    }

    /// Has the daemon, and the `others` for which it waits, run before all other tasks: the recording ends, which must not
    /// wait for those whom it recorded.
    pub(crate) fn run_first(&mut self, others: [Option<Pid>; 2]) {
        self.set(NICE_MIN, others);
    }

    fn begin_window(&mut self) {
        self.window = Some(LateWindow {
            start: Instant::now(),
            waited_ns: self.waited_ns(),
        });
    }

    /// Total time for which this thread has waited for a processor.
    fn waited_ns(&self) -> u64 {
        self.schedstat.as_ref().map_or(0, |file| number_of(file, 1))
    }

    fn set(&mut self, nice: i32, others: [Option<Pid>; 2]) {
        let nice = nice.clamp(NICE_MIN, self.base.max(NICE_MIN));
        if nice == self.nice {
            return;
        }
        // Without permission the nice value stays as it is.
        if rustix::process::setpriority_process(None, nice).is_ok() {
            self.nice = nice;
            for other in others.into_iter().flatten() {
                let _ = rustix::process::setpriority_process(Some(other), nice);
            }
        }
    }
}

/// A number of `schedstat`: 0 is the time run and 1 the time waited, in nanoseconds; 2 is how often
/// the thread ran. 0 if it cannot be read.
fn number_of(schedstat: &File, place: usize) -> u64 {
    let mut text = [0; 96];
    let len = schedstat.read_at(&mut text, 0).unwrap_or(0);
    let text = std::str::from_utf8(&text[..len]).unwrap_or_default();
    let word = text.split_ascii_whitespace().nth(place);
    word.and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// The next nice value after `elapsed` at `nice`, during which the thread waited `waited_ns` for a
/// processor.
fn next(nice: i32, base: i32, waited_ns: u64, elapsed: Duration) -> i32 {
    let per_mille = u128::from(waited_ns) * 1000 / elapsed.as_nanos().max(1);
    match u64::try_from(per_mille).unwrap_or(u64::MAX) {
        WAITED_MUCH.. => (nice - NICE_STEP).max(NICE_MIN),
        0..WAITED_LITTLE => (nice + 1).min(base),
        _ => nice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_follows_what_the_thread_waits() {
        let after = |nice, waited_ms: u64| next(nice, -4, waited_ms * 1_000_000, WINDOW);
        assert_eq!(after(-4, 20), -10);
        assert_eq!(after(-16, 5), -20);
        assert_eq!(after(-20, 20), -20);
        assert_eq!(after(-14, 3), -14);
        assert_eq!(after(-14, 1), -13);
        assert_eq!(after(-4, 0), -4);
    }

    #[test]
    fn schedstat_tells_of_waiting() {
        let scheduling = Scheduling::new(0);
        let counts = std::path::Path::new("/proc/self/schedstat").exists();
        assert_eq!(scheduling.schedstat.is_some(), counts);
        // A thread that sleeps and wakes waits for a processor sooner or later.
        let deadline = Instant::now() + Duration::from_secs(60);
        while counts && scheduling.waited_ns() == 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(100));
        }
        assert_eq!(scheduling.waited_ns() > 0, counts);
    }
}
