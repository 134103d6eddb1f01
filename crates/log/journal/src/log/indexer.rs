//! Makes the index of a file after its rotation (`index_rotated = yes`), when nothing else needs a processor.

use crate::index;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Makes one index at a time. Nothing waits for it: a file without an index is searched as well.
#[derive(Default)]
pub(super) struct Indexer {
    running: Option<Indexing>,
}

struct Indexing {
    goes_on: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Indexer {
    /// Starts to make the index of a rotated file, on a thread of the policy SCHED_IDLE. Does nothing while an earlier
    /// thread runs, which may not have had a processor yet: whoever searches makes the index then.
    pub(super) fn start(&mut self, path: PathBuf) {
        let earlier = self.running.as_ref();
        if earlier.is_some_and(|running| !running.thread.is_finished()) {
            return;
        }

        let goes_on = Arc::new(AtomicBool::new(true));
        let is_wanted = Arc::clone(&goes_on);
        let work = move || {
            run_when_idle();
            if index::is_for_index(&path) {
                // Whoever searches makes it, if this fails.
                let _ = index::build_while(&path, || is_wanted.load(Ordering::Relaxed));
            }
        };

        let started = std::thread::Builder::new()
            .name("journal-idx".into())
            .spawn(work);
        self.running = started.ok().map(|thread| Indexing { goes_on, thread });
    }

    /// Ends the work within a MiB of text, without waiting for that: the names of the files are about to change.
    pub(super) fn interrupt(&self) {
        if let Some(running) = &self.running {
            running.goes_on.store(false, Ordering::Relaxed);
        }
    }

    /// Waits for the index, for tests.
    #[cfg(test)]
    fn wait(&mut self) {
        if let Some(running) = self.running.take() {
            let _ = running.thread.join();
        }
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.interrupt();
    }
}

/// Lets this thread run only on a processor that has nothing else to do.
fn run_when_idle() {
    // SAFETY: the structure is valid when it is zero, and SCHED_IDLE wants it so.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is this thread; the parameters are read only. An error leaves the thread as it was.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn log(path: &Path) {
        let line = |number: u32| {
            format!("type=USER msg=audit(1700000000.000:{number}): pid={number} uid=0 text\n")
        };
        let text: String = (0..20_000).map(line).collect();
        std::fs::write(path, text).expect("a written log");
    }

    #[test]
    fn a_rotated_file_has_an_index_and_takes_it_along() {
        let dir = tempfile::tempdir().expect("a directory");
        let [first, second] = ["audit.log.1", "audit.log.2"].map(|name| dir.path().join(name));
        log(&first);
        let mut indexer = Indexer::default();
        indexer.start(first.clone());
        indexer.wait();
        let is_plain = |_: &std::fs::File| Ok(false);
        assert!(index::load(&first, is_plain).is_some());

        std::fs::rename(&first, &second).expect("renamed");
        index::follow(&first, &second);
        assert!(index::load(&second, is_plain).is_some());
        log(&first);
        // Stopped before it could begin, or replaced by the second, which waits for it.
        indexer.start(first.clone());
        indexer.start(first.clone());
        indexer.wait();
        assert!(index::load(&first, is_plain).is_some());
        assert!(!dir.path().join("audit.log.1.idx.part").exists());
    }

    #[test]
    fn a_file_that_is_not_rotated_or_short_has_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let (live, short) = (dir.path().join("audit.log"), dir.path().join("audit.log.1"));
        log(&live);
        std::fs::write(&short, "type=A\n").expect("a written log");
        for path in [live, short] {
            let mut indexer = Indexer::default();
            indexer.start(path.clone());
            indexer.wait();
            assert!(!index::index_path(&path).exists());
        }
    }
}
