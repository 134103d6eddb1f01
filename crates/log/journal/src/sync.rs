//! Makes what was written durable: at once, or on one helper thread that does nothing else.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{mpsc, Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::EventfdFlags;
use rustix::process::Pid;

use crate::counters::Position;

/// Syncs of rotated files that may be queued; if files are rotated faster than that, the journal
/// waits for the disk.
const JOBS_MAX: usize = 8;

/// The call that makes a file durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncCall {
    /// fdatasync(2): data, and the metadata needed to read it.
    Data,
    /// fsync(2): all metadata too.
    Full,
}

impl SyncCall {
    pub(crate) fn run(self, file: &File) -> io::Result<()> {
        match self {
            SyncCall::Data => file.sync_data(),
            SyncCall::Full => file.sync_all(),
        }
    }
}

/// A file to sync, and how far the stream is durable once that is done.
struct SyncJob {
    file: Arc<File>,
    call: SyncCall,
    covers: Position,
}

/// A sync that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Everything up to here is durable.
    pub upto: Position,
    /// Time at which `upto` was reached: CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
}

/// Finished syncs that are kept until they are asked for; further ones are not listed.
pub(crate) const SYNCED_MAX: usize = 1024;

/// Results of finished syncs.
#[derive(Default)]
pub(crate) struct SyncProgress {
    pub(crate) durable: Position,
    pub(crate) syncs: u64,
    /// Failed syncs: the error and the events they were to cover.
    pub(crate) failures: Vec<(io::Error, u64)>,
    /// Positions up to which the stream became durable, with their times.
    pub(crate) synced: Vec<Synced>,
}

impl SyncProgress {
    /// Records the outcome of a sync that covers everything up to `covers`.
    pub(crate) fn note(&mut self, covers: Position, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => {
                self.syncs += 1;
                if self.synced.len() < SYNCED_MAX {
                    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
                    let at_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
                    let upto = covers;
                    self.synced.push(Synced { upto, at_ns });
                }
            }
            Err(error) => {
                let events = covers.events.saturating_sub(self.durable.events);
                self.failures.push((error, events));
            }
        }

        // Advances after a failure too: those events are counted as doubtful, and no later sync
        // would report them.
        self.durable = self.durable.max(covers);
    }
}

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<SyncJob>,
    busy: bool,
    stop: bool,
    /// Whether a caller waits for the thread to begin or end a job.
    waiting: bool,
    progress: SyncProgress,
}

struct SyncQueue {
    state: Mutex<QueueState>,
    /// Notified when there is a job for the thread.
    requested: Condvar,
    /// Notified when a job has begun or ended, if [`QueueState::waiting`].
    moved: Condvar,
    /// Readable after a sync has finished.
    done: OwnedFd,
}

impl SyncQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code that holds the lock can panic in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of the helper thread.
pub(crate) struct Syncer {
    shared: Arc<SyncQueue>,
    id: Pid,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub(crate) fn start() -> io::Result<Self> {
        let done = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(SyncQueue {
            state: Mutex::default(),
            requested: Condvar::new(),
            moved: Condvar::new(),
            done,
        });
        let for_thread = Arc::clone(&shared);
        let (send_id, thread_id) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("journal-sync".into())
            .stack_size(64 * 1024)
            .spawn(move || {
                // Cannot fail: the starter waits for this message.
                let _ = send_id.send(rustix::thread::gettid());
                serve(&for_thread);
            })?;

        Ok(Syncer {
            shared,
            id: thread_id.recv().map_err(io::Error::other)?,
            thread: Some(thread),
        })
    }

    /// Asks for a sync and returns at once, unless too many rotated files are queued. Requests for
    /// the same file that have not started yet are merged.
    pub(crate) fn request(&self, file: &Arc<File>, call: SyncCall, covers: Position) {
        let mut state = self.shared.lock();
        if let Some(last) = state.jobs.back_mut() {
            if Arc::ptr_eq(&last.file, file) && last.call == call {
                // It has not begun, so it will cover what was written for both requests.
                last.covers = covers;
                return;
            }
        }

        // Each job holds its file open: rotations that outrun the disk must wait for it.
        while state.jobs.len() >= JOBS_MAX {
            state = self.wait(state);
        }

        let is_idle = state.jobs.is_empty() && !state.busy;
        state.jobs.push_back(SyncJob {
            file: Arc::clone(file),
            call,
            covers,
        });

        // A busy thread looks for jobs when it ends one. An idle one is woken after the lock is
        // released, so that it need not wait for it.
        drop(state);
        if is_idle {
            self.shared.requested.notify_one();
        }
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        state.waiting = true;
        self.shared
            .moved
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every requested sync has been tried.
    pub(crate) fn drain(&self) {
        let mut state = self.shared.lock();
        while state.busy || !state.jobs.is_empty() {
            state = self.wait(state);
        }
    }

    pub(crate) fn durable(&self) -> Position {
        self.shared.lock().progress.durable
    }

    /// Syncs and failures since the last call, and how far the stream is durable now.
    pub(crate) fn take_progress(&self) -> SyncProgress {
        // Cleared before the results are taken: a sync that ends in between makes it readable again.
        let mut counter = [0u8; 8];
        // EAGAIN only means that nothing has finished since the last call.
        let _ = rustix::io::read(&self.shared.done, &mut counter);
        let mut state = self.shared.lock();
        SyncProgress {
            durable: state.progress.durable,
            syncs: std::mem::take(&mut state.progress.syncs),
            failures: std::mem::take(&mut state.progress.failures),
            synced: std::mem::take(&mut state.progress.synced),
        }
    }

    /// Thread id of the helper thread.
    pub(crate) fn id(&self) -> Pid {
        self.id
    }

    pub(crate) fn done_fd(&self) -> BorrowedFd<'_> {
        self.shared.done.as_fd()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.requested.notify_one();
        if let Some(thread) = self.thread.take() {
            // If it panicked, there is nobody to report that to.
            let _ = thread.join();
        }
    }
}

/// The thread's loop: runs jobs in order until it is told to stop and none is left.
fn serve(shared: &SyncQueue) {
    let mut state = shared.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            state.busy = true;
            release(shared, state);
            let SyncJob { file, call, covers } = job;
            let outcome = call.run(&file);
            // Whoever sees the sync as done may rely on the file, and its lock, being released.
            drop(file);
            state = shared.lock();
            state.busy = false;
            state.progress.note(covers, outcome);
            release(shared, state);
            // Fails only when the counter is at its maximum, and then the descriptor is readable
            // anyway.
            let _ = rustix::io::write(&shared.done, &1u64.to_ne_bytes());
            state = shared.lock();
        } else if state.stop {
            return;
        } else {
            state = shared
                .requested
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Releases the lock and wakes whoever waits for a change.
fn release(shared: &SyncQueue, mut state: MutexGuard<'_, QueueState>) {
    let is_awaited = std::mem::take(&mut state.waiting);
    drop(state);
    if is_awaited {
        shared.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(events: u64) -> Position {
        Position {
            bytes: events,
            events,
        }
    }

    #[test]
    fn durable_advances_only_when_a_sync_has_finished() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let syncer = Syncer::start().unwrap();
        assert_eq!(syncer.durable(), Position::default());
        syncer.request(&file, SyncCall::Data, position(3));
        syncer.request(&file, SyncCall::Data, position(5));
        syncer.drain();
        assert_eq!(syncer.durable(), position(5));
        let progress = syncer.take_progress();
        assert!((1..=2).contains(&progress.syncs));
        assert!(progress.failures.is_empty());
    }

    #[test]
    fn failed_sync_is_reported_with_the_events_it_leaves_in_doubt() {
        // fdatasync(2) on a pipe gives EINVAL: a real failure of the real call.
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        let broken = Arc::new(File::from(writer));
        let good = Arc::new(tempfile::tempfile().unwrap());
        let syncer = Syncer::start().unwrap();
        syncer.request(&good, SyncCall::Data, position(2));
        syncer.drain();
        syncer.request(&broken, SyncCall::Data, position(7));
        syncer.drain();
        let progress = syncer.take_progress();
        assert_eq!(progress.failures.len(), 1);
        assert_eq!(progress.failures[0].1, 5);
        assert_eq!(progress.failures[0].0.raw_os_error(), Some(libc::EINVAL));
        assert!(syncer.take_progress().failures.is_empty());
    }
}
