//! Digests of executed files, for a helper of their own: it alone reads contents.
//!
//! A digest is told only if the file is the one that the event names, and its times prove that its
//! contents have not changed since ([`judge`]). Hashing has little time while the daemon waits
//! ([`Allowance`]); what takes longer is done for later events.

mod cache;
mod clock;
mod find;
mod ioctl;
mod judge;
mod worker;

use crate::lookup::devices::Devices;
use crate::lookup::message::{Asker, DigestQuestion};
use crate::lookup::walk::Gate;
use clock::EventClock;
use find::{Finder, Found};
use record::{Digests, NoDigest};
use std::io;
use std::time::{Duration, Instant};
use worker::{Job, Worker};

/// Size above which the daemon never waits for a digest.
const SMALL_BYTES: u64 = 8 << 20;

/// Answers questions for digests.
pub(crate) struct Hasher {
    clock: EventClock,
    allowance: Allowance,
    small: Worker,
    large: Worker,
}

impl Hasher {
    /// Starts the threads that hash.
    pub(crate) fn start() -> io::Result<Hasher> {
        Ok(Hasher {
            clock: EventClock::now(),
            allowance: Allowance::new(Instant::now()),
            small: Worker::start("tarsier-hash")?,
            large: Worker::start("tarsier-hash")?,
        })
    }

    /// The digests of a file.
    pub(crate) fn digests(
        &mut self,
        question: &DigestQuestion<'_>,
        asker: Asker,
        gate: &mut dyn Gate,
        devices: &mut Devices,
    ) -> Digests {
        if self.clock.measure() {
            // Later changes may have the times of earlier ones.
            self.small.clear();
            self.large.clear();
        }

        let Some(event_ns) = self.clock.realtime(question.time_ns) else {
            return Digests::none(NoDigest::Clock);
        };

        let mut finder = Finder {
            question,
            asker,
            event_ns,
            gate,
            devices,
        };

        match finder.find() {
            Ok(found) => Digests {
                verity: found.verity,
                sha256: self.sha256(found, question.bytes_max),
            },
            Err(why) => Digests::none(why),
        }
    }

    fn sha256(&mut self, found: Found, bytes_max: u64) -> Result<[u8; 32], NoDigest> {
        let size = found.contents.size;
        if size > bytes_max {
            return Err(NoDigest::TooBig);
        }

        let is_small = size <= SMALL_BYTES;
        let worker = if is_small { &self.small } else { &self.large };
        if let Some(digest) = worker.known(&found.contents) {
            return Ok(digest);
        }

        let job = Job {
            file: found.file,
            contents: found.contents,
        };
        let begin = Instant::now();
        let patience = if is_small {
            self.allowance.at(begin)
        } else {
            Duration::ZERO
        };
        let digest = worker.digest(job, patience);
        self.allowance.spend(begin.elapsed());

        digest
    }
}

/// The time for which the daemon may wait for digests: a twentieth of all time.
struct Allowance {
    left: Duration,
    at: Instant,
}

impl Allowance {
    /// Longest wait for one file, a fifth of the helper's deadline.
    const FILE_MAX: Duration = Duration::from_millis(20);
    /// Limit of what is saved up.
    const MAX: Duration = Duration::from_millis(50);
    const PART: u32 = 20;

    fn new(now: Instant) -> Allowance {
        Allowance {
            left: Allowance::MAX,
            at: now,
        }
    }

    /// Longest wait that is allowed now; zero if hardly any time is left.
    fn at(&mut self, now: Instant) -> Duration {
        let elapsed = now.saturating_duration_since(self.at);
        self.left = (self.left + elapsed / Allowance::PART).min(Allowance::MAX);
        self.at = now;
        if self.left < Duration::from_millis(1) {
            Duration::ZERO
        } else {
            self.left.min(Allowance::FILE_MAX)
        }
    }

    fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

#[cfg(test)]
mod tests;
