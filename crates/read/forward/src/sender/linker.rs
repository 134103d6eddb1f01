//! A thread that links new log files: sending may take longer than a log takes to rotate away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::config::Start;
use crate::spool::{Files, Spool, SpoolError};

/// Time between two looks at the log's name.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Shared {
    spool: Spool,
    error: Option<SpoolError>,
    gaps: u64,
}

/// The thread and the spool that it keeps up to date.
#[derive(Debug)]
pub(super) struct Linker {
    shared: Arc<Mutex<Shared>>,
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Linker {
    pub(super) fn start(spool: Spool, start: Start) -> Linker {
        let shared = Arc::new(Mutex::new(Shared {
            spool,
            error: None,
            gaps: 0,
        }));
        refresh(&shared, start);

        let is_done = Arc::new(AtomicBool::new(false));
        let (theirs, done) = (Arc::clone(&shared), Arc::clone(&is_done));
        let thread = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                refresh(&theirs, start);
                std::thread::park_timeout(INTERVAL);
            }
        });

        Linker {
            shared,
            is_done,
            thread: Some(thread),
        }
    }

    /// The files as they are now, and the last error of linking.
    pub(super) fn files(&self) -> (Files, Option<SpoolError>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let error = shared.error.take();
        (Files::clone(&shared.spool), error)
    }

    /// Number of times that files were gone before they could be linked.
    pub(super) fn gaps(&self) -> u64 {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.gaps
    }

    /// Does something with the spool.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Spool) -> T) -> T {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut shared.spool)
    }
}

fn refresh(shared: &Mutex<Shared>, start: Start) {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    match shared.spool.refresh(start) {
        Ok(refreshed) => {
            shared.gaps += u64::from(refreshed.gap_before.is_some());
            shared.error = None;
        }
        Err(error) => shared.error = Some(error),
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
