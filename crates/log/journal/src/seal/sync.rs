//! Makes the seal and the keys durable in the background.
//!
//! Keys that are ahead of their seal look like removed entries. So the seal is synced first, and
//! again after the keys, which have advanced meanwhile: a power failure leaves the keys ahead only
//! if it comes between those two syncs.

use std::fs::File;
use std::io;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

type Pair = (Arc<File>, Arc<File>);

/// Handle of the helper thread.
pub(super) struct SealSyncer {
    jobs: Option<SyncSender<Pair>>,
    failure: Arc<Mutex<Option<io::Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl SealSyncer {
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, todo) = sync_channel(1);
        let failure = Arc::new(Mutex::new(None));
        let for_thread = Arc::clone(&failure);
        let thread = std::thread::Builder::new()
            .name("journal-seal".into())
            .stack_size(64 * 1024)
            .spawn(move || serve(&todo, &for_thread))?;
        Ok(SealSyncer {
            jobs: Some(jobs),
            failure,
            thread: Some(thread),
        })
    }

    /// Requests a sync of both files. If one sync is running and another is queued, this request is
    /// dropped: the queued one has not started yet, and the next checkpoint requests another.
    pub(super) fn request(&self, seal: &Arc<File>, keys: &Arc<File>) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.try_send((Arc::clone(seal), Arc::clone(keys)));
        }
    }

    /// The error of the last sync that failed since the previous call.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

impl Drop for SealSyncer {
    /// Waits for the requested syncs.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, there is nobody to report that to.
            let _ = thread.join();
        }
    }
}

fn serve(todo: &Receiver<Pair>, failure: &Mutex<Option<io::Error>>) {
    while let Ok((seal, keys)) = todo.recv() {
        // If the seal cannot be synced, neither are the keys: they would be ahead of it.
        let outcome = [&seal, &keys, &seal]
            .into_iter()
            .try_for_each(|file| file.sync_data());
        if let Err(error) = outcome {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}
