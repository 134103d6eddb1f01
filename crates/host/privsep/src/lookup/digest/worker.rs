//! Threads that read and hash files, so that a question is answered in time whatever a disk does.

use super::cache::{Cache, Contents, Digest};
use super::find::contents;
use super::ioctl;
use crate::lookup::object::stat;
use record::NoDigest;
use rustix::fd::OwnedFd;
use rustix::io::{pread, Errno};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limit of the files that wait for a worker. Each is open.
const WAITING_MAX: usize = 64;
/// Bytes that are read at a time.
const PIECE_BYTES: usize = 256 * 1024;
/// A worker's rest, as a multiple of the time it hashed before, while nobody waits for it: a fifth
/// of a processor is used.
const REST: u32 = 4;

/// A file to hash.
pub(super) struct Job {
    pub(super) file: OwnedFd,
    pub(super) contents: Contents,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// The file that the thread hashes now.
    current: Option<Contents>,
    /// Whether a question waits, for this file or another.
    is_awaited: bool,
    /// Result of the job that was finished last.
    last: Option<(Contents, Result<Digest, NoDigest>)>,
    cache: Cache,
    /// Number of times that the cache was cleared.
    cleared: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is a job, or one is finished.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that hashes one file after the other.
pub(super) struct Worker {
    shared: Arc<Shared>,
}

impl Worker {
    /// Starts the thread, and waits until it runs: it can then be confined.
    pub(super) fn start(name: &str) -> io::Result<Worker> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let builder = std::thread::Builder::new().name(name.to_owned());
        let (tell, told) = std::sync::mpsc::channel();
        builder.stack_size(256 * 1024).spawn(move || {
            // Who has asked for it waits.
            let _ = tell.send(());
            work(&own);
        })?;
        told.recv().map_err(io::Error::other)?;
        Ok(Worker { shared })
    }

    /// The digest of a file, if it is known.
    pub(super) fn known(&self, contents: &Contents) -> Option<Digest> {
        self.shared.lock().cache.get(contents)
    }

    /// The digest of a file, for which at most `patience` is waited. If that is not enough, the file
    /// is hashed for later questions.
    pub(super) fn digest(&self, job: Job, patience: Duration) -> Result<Digest, NoDigest> {
        let wanted = job.contents.clone();
        let mut state = self.shared.lock();
        let is_there = state.current.as_ref() == Some(&wanted)
            || state.waiting.iter().any(|other| other.contents == wanted);
        if !is_there {
            if state.waiting.len() >= WAITING_MAX {
                return Err(NoDigest::Busy);
            }
            if patience.is_zero() {
                state.waiting.push_back(job)
            } else {
                state.waiting.push_front(job)
            }
        }

        if patience.is_zero() {
            self.shared.changed.notify_all();
            return Err(NoDigest::Busy);
        }

        state.is_awaited = true;
        state.last = None;
        self.shared.changed.notify_all();
        let is_unfinished = |state: &mut State| match &state.last {
            Some((contents, _)) => *contents != wanted,
            None => true,
        };
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, patience, is_unfinished);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_awaited = false;

        match state.last.take() {
            Some((contents, found)) if contents == wanted => found,
            _ => Err(NoDigest::Busy),
        }
    }

    /// Forgets every digest.
    pub(super) fn clear(&self) {
        let mut state = self.shared.lock();
        state.cache.clear();
        state.cleared += 1;
    }
}

/// The thread.
fn work(shared: &Shared) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let mut state = shared.lock();
        let (job, cleared) = loop {
            match state.waiting.pop_front() {
                Some(job) => break (job, state.cleared),
                None => {
                    let woken = shared.changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        state.current = Some(job.contents.clone());
        drop(state);
        let found = hash(&job, &mut buffer, || shared.lock().is_awaited);
        let mut state = shared.lock();
        state.current = None;
        if let (Ok(digest), true) = (found, state.cleared == cleared) {
            state.cache.insert(job.contents.clone(), digest);
        }
        state.last = Some((job.contents, found));
        shared.changed.notify_all();
    }
}

/// The digest of a file, if its contents are still the same at the end.
fn hash(job: &Job, buffer: &mut [u8], is_awaited: impl Fn() -> bool) -> Result<Digest, NoDigest> {
    let (mut hasher, mut at) = (Sha256::new(), 0);
    loop {
        let begin = Instant::now();
        let len = match pread(&job.file, &mut *buffer, at) {
            Ok(0) => break,
            Ok(len) => len,
            Err(Errno::INTR) => continue,
            Err(_) => return Err(NoDigest::Unreadable),
        };
        at += len as u64;
        if at > job.contents.size {
            return Err(NoDigest::Changed);
        }
        hasher.update(&buffer[..len]);
        if at < job.contents.size && !is_awaited() {
            std::thread::sleep(REST * begin.elapsed());
        }
    }

    // A file is truncated before its time is set. So first make sure that nobody is about to: what
    // was changed before now has its time.
    match ioctl::is_written(&job.file) {
        Ok(false) => {}
        Ok(true) => return Err(NoDigest::Changed),
        Err(_) => return Err(NoDigest::Unreadable),
    }

    let found = stat(&job.file).map_err(NoDigest::from)?;
    let now = contents(job.contents.dev.0, &found, job.contents.handle.clone());
    if at == job.contents.size && now == job.contents {
        Ok(hasher.finalize().into())
    } else {
        Err(NoDigest::Changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;

    const ENOUGH: Duration = Duration::from_secs(60);

    fn job(path: &Path) -> Job {
        let file: OwnedFd = File::open(path).expect("the file").into();
        let found = stat(&file).expect("statx");
        Job {
            contents: contents(0, &found, Vec::new()),
            file,
        }
    }

    fn worker() -> Worker {
        Worker::start("test").expect("a thread")
    }

    #[test]
    fn a_digest_is_that_of_sha256sum_and_is_known_from_then_on() {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, bytes) in [
            ("empty", Vec::new()),
            ("short", b"abc".to_vec()),
            ("long", vec![7; 3 * PIECE_BYTES + 5]),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, &bytes).expect("a file");
            let worker = worker();
            let job = job(&path);
            let contents = job.contents.clone();
            assert_eq!(worker.known(&contents), None);
            let digest = worker.digest(job, ENOUGH).expect("a digest");
            assert_eq!(worker.known(&contents), Some(digest));
            let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let output = std::process::Command::new("sha256sum").arg(&path).output();
            let output = output.expect("sha256sum(1)").stdout;
            assert!(output.starts_with(text.as_bytes()), "{name}: {text}");
            worker.clear();
            assert_eq!(worker.known(&contents), None);
        }
    }

    #[test]
    fn a_file_that_changes_before_the_end_has_no_digest() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, b"before").expect("a file");
        let longer = job(&path);
        let mut file = File::options().append(true).open(&path).expect("the file");
        file.write_all(b" and after").expect("more");
        let mut buffer = vec![0; 4];
        assert_eq!(hash(&longer, &mut buffer, || true), Err(NoDigest::Changed));
        let written = job(&path);
        assert_eq!(hash(&written, &mut buffer, || true), Err(NoDigest::Changed));
        drop(file);
        while ioctl::is_written(&written.file).expect("an own file") {
            // Another test may have forked while it was open.
            std::thread::yield_now();
        }
        assert!(hash(&written, &mut buffer, || true).is_ok());
        let mut other_time = job(&path);
        other_time.contents.changed.1 ^= 1;
        let found = hash(&other_time, &mut buffer, || true);
        assert_eq!(found, Err(NoDigest::Changed));
        let shorter = job(&path);
        let file = File::options().write(true).open(&path).expect("the file");
        file.set_len(2).expect("ftruncate");
        drop(file);
        assert_eq!(hash(&shorter, &mut buffer, || true), Err(NoDigest::Changed));
    }

    #[test]
    fn without_patience_the_digest_is_for_later_and_the_queue_is_bounded() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 100_000]).expect("a file");
        let worker = worker();
        let contents = job(&path).contents;
        let now = worker.digest(job(&path), Duration::ZERO);
        assert_eq!(now, Err(NoDigest::Busy));
        let end = Instant::now() + ENOUGH;
        while worker.known(&contents).is_none() {
            assert!(Instant::now() < end, "the digest is never known");
            std::thread::yield_now();
        }
        // A worker without a thread.
        let idle = Worker {
            shared: Arc::default(),
        };
        for ino in 0..2 * WAITING_MAX as u64 {
            let mut other = job(&path);
            other.contents.ino = ino;
            assert_eq!(idle.digest(other, Duration::ZERO), Err(NoDigest::Busy));
        }
        assert_eq!(idle.shared.lock().waiting.len(), WAITING_MAX);
    }
}
