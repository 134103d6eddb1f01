//! Makes seal and keys durable in the background.
//!
//! Keys that are ahead of their seal are what a removed entry looks like. So the seal comes first, and once more
//! after the keys, which have gone on since: a power failure finds them ahead only if it comes just between.

use std::fs::File;
use std::io;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

type Pair = (Arc<File>, Arc<File>);

/// One helper thread.
pub(super) struct Durability {
    jobs: Option<SyncSender<Pair>>,
    failure: Arc<Mutex<Option<io::Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl Durability {
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, todo) = sync_channel(1);
        let failure = Arc::new(Mutex::new(None));
        let for_thread = Arc::clone(&failure);
        let thread = std::thread::Builder::new()
            .name("journal-seal".into())
            .stack_size(64 * 1024)
            .spawn(move || serve(&todo, &for_thread))?;
        Ok(Durability {
            jobs: Some(jobs),
            failure,
            thread: Some(thread),
        })
    }

    /// Asks for a sync of both; while one is under way and another waits, the next request covers
    /// this one.
    pub(super) fn request(&self, seal: &Arc<File>, keys: &Arc<File>) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.try_send((Arc::clone(seal), Arc::clone(keys)));
        }
    }

    /// The error of the last failed sync since the last call.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

impl Drop for Durability {
    /// Waits for what was asked for.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Its panics have nothing left to tell.
            let _ = thread.join();
        }
    }
}

fn serve(todo: &Receiver<Pair>, failure: &Mutex<Option<io::Error>>) {
    while let Ok((seal, keys)) = todo.recv() {
        // Not the keys if the seal could not be synced: they would be ahead.
        let outcome = [&seal, &keys, &seal]
            .into_iter()
            .try_for_each(|file| file.sync_data());
        if let Err(error) = outcome {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}
