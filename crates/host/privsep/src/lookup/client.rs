//! The daemon's side of the helper that looks up objects at paths.
//!
//! For an event, an answer is waited for as long as its budget says ([`Budgets`](crate::lookup::budget::Budgets)). One that comes
//! later is not taken; until it has come, every question is refused at once. So a helper that is late costs the daemon
//! that time once.
//!
//! A helper that waits for a file system for [`DEADLINE`](crate::lookup::DEADLINE), ends, is stopped or answers wrongly
//! is killed, and the next question starts another; the answer is then "not known". The file system
//! for which it waited is avoided for [`AVOIDED_FOR`], and for as long as the killed helper hangs
//! in the kernel. A helper that announces no wait is not waiting for a file system that a caller
//! chose: it has [`SILENCES`] deadlines. A helper that gets no CPU time, or waits for a local file
//! system, is merely slow and has the longer time of [`Patience`].

use crate::lookup::counts::Counts;
use crate::lookup::link::{Broken, Link};
use crate::lookup::message::{Asker, Content, Question, Reply, Request, BYTES_MAX};
use crate::lookup::patience::{Doing, Patience};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Number of deadlines within which a helper must answer or announce what it waits for.
const SILENCES: u32 = 5;
/// Time for which a file system that did not answer is avoided.
const AVOIDED_FOR: Duration = Duration::from_secs(10);
/// Remainder of [`AVOIDED_FOR`] at which that time starts again, if a helper still hangs there.
const RENEWED_BEFORE: Duration = Duration::from_secs(3);
/// Period in which at most [`FAILURES_MAX`] helpers may fail; after that, nothing is waited for
/// until it is over.
const PERIOD: Duration = Duration::from_secs(10);
const FAILURES_MAX: usize = 3;
/// Limit of killed helpers that have not ended; beyond it, no other is started.
const STUCK_MAX: usize = 16;

/// A running helper.
pub(crate) trait Process: Send {
    /// The process id.
    fn pid(&self) -> u32;
    /// Kills the helper, without waiting until it has ended.
    fn kill(&mut self);
    /// Whether the helper has ended; if so, it is reaped.
    fn has_ended(&mut self) -> bool;
    /// The helper's current activity; `None` if that is unknown.
    fn doing(&self) -> Option<Doing>;
}

/// Starts helpers.
pub(crate) trait Start: Send {
    /// Starts one.
    fn start(&mut self) -> io::Result<(Link, Box<dyn Process>)>;
}

/// Called with the process id of each helper that is started, and with `None` when it is killed.
pub(crate) type Follow = Box<dyn FnMut(Option<u32>) + Send>;

/// A question has no answer: what it asks for may be there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// A question that was sent, and until when its answer is waited for.
struct Wait {
    number: u32,
    patience: Patience,
    silent_until: Instant,
    end: Instant,
    /// The file system that the helper waits for.
    waits: Option<u32>,
    /// Whether the helper is looked at for the last time.
    is_last: bool,
}

/// What a wait has ended with.
enum Waited {
    /// This many bytes of an answer.
    Answer(usize),
    /// Nothing yet.
    Late,
    /// The helper is killed.
    Failed,
}

/// A helper that has been killed.
struct Ended {
    process: Box<dyn Process>,
    /// The file system for which it waited.
    dev: Option<u32>,
}

/// Asks a helper, and replaces it when it fails.
pub(crate) struct Client {
    start: Box<dyn Start>,
    follow: Option<Follow>,
    running: Option<(Link, Box<dyn Process>)>,
    /// The question whose answer came too late, or has not come yet.
    late: Option<Wait>,
    ended: Vec<Ended>,
    avoided: Vec<(u32, Instant)>,
    /// Times of helpers' failures within the last [`PERIOD`].
    failures: VecDeque<Instant>,
    number: u32,
    out: Vec<u8>,
    buffer: Vec<u8>,
    counts: Counts,
}

impl Client {
    /// A client without a helper: the first question starts one.
    pub(crate) fn new(start: Box<dyn Start>) -> Client {
        Client {
            start,
            follow: None,
            running: None,
            late: None,
            ended: Vec::new(),
            avoided: Vec::new(),
            failures: VecDeque::new(),
            number: 0,
            out: Vec::new(),
            buffer: vec![0; BYTES_MAX],
            counts: Counts::default(),
        }
    }

    /// Calls `follow` for each helper from now on, and for the one that runs.
    pub(crate) fn follow(&mut self, mut follow: Follow) {
        follow(self.running.as_ref().map(|(_, process)| process.pid()));
        self.follow = Some(follow);
    }

    pub(crate) fn counts(&mut self) -> Counts {
        self.reap();
        Counts {
            stuck: self.ended.len() as u64,
            ..self.counts
        }
    }

    /// Process id of the helper that runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        let (_, process) = self.running.as_ref()?;
        Some(process.pid())
    }

    /// Starts a helper if none runs.
    pub(crate) fn prepare(&mut self) -> io::Result<()> {
        if self.running.is_some() {
            return Ok(());
        }

        self.reap();
        if self.ended.len() >= STUCK_MAX {
            return Err(io::Error::other("too many helpers hang in the kernel"));
        }

        let running = self.start.start()?;
        let now = Instant::now();
        self.avoided.retain(|&(_, until)| until > now);
        for &(dev, until) in &self.avoided {
            // A helper that does not read is noticed at the first question.
            let _ = running.0.send(&avoid(dev, until - now));
        }

        if let Some(follow) = &mut self.follow {
            follow(Some(running.1.pid()));
        }
        self.running = Some(running);
        Ok(())
    }

    /// Replaces the running helper, which has not failed, by another.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        self.end(None);
        self.prepare()
    }

    /// Ends the running helper, which has not failed.
    pub(crate) fn stop(&mut self) {
        if self.running.is_some() {
            self.end(None);
        }
    }

    /// The answer to `question` of `asker`, as `take` extracts it from the reply; `None` if there is no such thing. It is
    /// waited for until the time is over that `asker` has.
    ///
    /// # Errors
    /// The answer is not known.
    pub(crate) fn ask<T>(
        &mut self,
        question: Question<'_>,
        asker: Asker,
        take: impl FnOnce(Content<'_>) -> Option<T>,
    ) -> Result<Option<T>, Refused> {
        self.counts.asked += 1;
        let begin = Instant::now();
        let found = self.exchange(question, asker);
        // The reply has been parsed before.
        let reply = found.and_then(|len| Reply::parse(&self.buffer[..len]).map_err(|_| Refused));

        match reply.map(|reply| reply.content) {
            Ok(Content::Denied) => Err(Refused),
            // The helper has stopped in time, which is no fault of a file system.
            Ok(Content::NotNow) if asker.has_run_out(begin) => Err(Refused),
            Ok(Content::NotNow) | Err(Refused) => {
                self.counts.unanswered += 1;
                Err(Refused)
            }
            Ok(content) => Ok(take(content)),
        }
    }

    /// Sends the question and receives the reply into the buffer.
    fn exchange(&mut self, question: Question<'_>, asker: Asker) -> Result<usize, Refused> {
        let now = Instant::now();
        let limit = Duration::from_micros(asker.limit_us.into());
        let until = (asker.limit_us > 0).then(|| now + limit);
        self.settle(until.is_some())?;
        let may_wait = self.may_wait(now);
        if self.running.is_none() && !may_wait && self.failures.len() >= 2 * FAILURES_MAX {
            return Err(Refused);
        }

        self.number = self.number.wrapping_add(1);
        let request = Request::Ask {
            number: self.number,
            may_wait,
            asker,
            question,
        };
        request.put(&mut self.out);
        self.send(now)?;
        let Some((link, _)) = &self.running else {
            return Err(Refused);
        };

        let silent_until = now + SILENCES * link.patience();
        let mut wait = Wait {
            number: self.number,
            patience: Patience::new(now, link.patience()),
            silent_until,
            end: silent_until,
            waits: None,
            is_last: false,
        };

        let is_whole = until.is_none_or(|_| link.waits_at_most(limit));
        match self.wait(&mut wait, Some(&question), until, is_whole) {
            Waited::Answer(len) => Ok(len),
            Waited::Late if self.is_stopped() => Err(self.fail(now, None)),
            Waited::Late => {
                self.late = Some(wait);
                Err(Refused)
            }
            Waited::Failed => Err(Refused),
        }
    }

    /// Takes the answer that is late, if it has come, or gives up the helper, if it is time. Unless `is_at_once`, waits
    /// for either.
    fn settle(&mut self, is_at_once: bool) -> Result<(), Refused> {
        let Some(mut wait) = self.late.take() else {
            return Ok(());
        };

        let until = is_at_once.then(Instant::now);
        match self.wait(&mut wait, None, until, false) {
            // The next question has a helper, this one or another.
            Waited::Answer(_) | Waited::Failed => Ok(()),
            Waited::Late => {
                self.late = Some(wait);
                Err(Refused)
            }
        }
    }

    /// Waits for a reply to `question`, until `until` at most. `is_first` if what the link itself waits is not too long.
    fn wait(
        &mut self,
        wait: &mut Wait,
        question: Option<&Question<'_>>,
        until: Option<Instant>,
        mut is_first: bool,
    ) -> Waited {
        loop {
            let Some((link, process)) = &self.running else {
                return Waited::Failed;
            };
            let end = until.map_or(wait.end, |until| until.min(wait.end));
            let received = link.receive(&mut self.buffer, end, is_first);
            let is_early = std::mem::take(&mut is_first) && Instant::now() < end;
            let len = match received {
                Ok(Some(len)) => len,
                Ok(None) if is_early => continue,
                Ok(None) if Instant::now() < wait.end => return Waited::Late,
                // The helper may be slow only because others use the processor or the disk.
                Ok(None) if wait.patience.lasts(process.doing(), wait.waits) => {
                    wait.end = Instant::now() + link.patience();
                    continue;
                }
                // The helper may have answered meanwhile.
                Ok(None) if !wait.is_last => {
                    wait.is_last = true;
                    continue;
                }
                // The helper is late, or has ended.
                _ => return self.give_up(wait.waits),
            };
            match Reply::parse(&self.buffer[..len]) {
                Ok(reply) if reply.number == wait.number => match reply.content {
                    Content::Waits(_) if wait.patience.is_over() => return self.give_up(None),
                    Content::Waits(dev) => {
                        wait.waits = Some(dev);
                        wait.end = wait.silent_until.min(Instant::now() + link.patience());
                    }
                    content if question.is_none_or(|question| content.answers(question)) => {
                        return Waited::Answer(len)
                    }
                    _ => return self.give_up(None),
                },
                _ => return self.give_up(None),
            }
        }
    }

    fn give_up(&mut self, waits: Option<u32>) -> Waited {
        self.fail(Instant::now(), waits);
        Waited::Failed
    }

    /// Whether the helper that runs is stopped by a signal or a tracer.
    fn is_stopped(&self) -> bool {
        let doing = self
            .running
            .as_ref()
            .and_then(|(_, process)| process.doing());
        doing.is_some_and(|doing| doing.is_stopped)
    }

    /// Sends what is in `out`, to another helper if the one that runs has ended.
    fn send(&mut self, now: Instant) -> Result<(), Refused> {
        for _ in 0..2 {
            if self.prepare().is_err() {
                self.note_failure(now);
                return Err(Refused);
            }
            let sent = self.running.as_ref().map(|(link, _)| link.send(&self.out));
            match sent {
                Some(Ok(())) => return Ok(()),
                Some(Err(Broken)) | None => {
                    self.fail(now, None);
                }
            }
        }

        Err(Refused)
    }

    /// Whether a file system may be waited for: not if helpers failed too often lately.
    fn may_wait(&mut self, now: Instant) -> bool {
        while self
            .failures
            .front()
            .is_some_and(|&at| now.saturating_duration_since(at) > PERIOD)
        {
            self.failures.pop_front();
        }
        self.failures.len() < FAILURES_MAX
    }

    fn note_failure(&mut self, now: Instant) {
        self.failures.push_back(now);
        // More than are ever used.
        if self.failures.len() > 4 * FAILURES_MAX {
            self.failures.pop_front();
        }
    }

    /// Kills the helper, which waited for the file system `waits`.
    fn fail(&mut self, now: Instant, waits: Option<u32>) -> Refused {
        self.note_failure(now);
        self.counts.replaced += 1;
        if let Some(dev) = waits {
            self.avoided.retain(|&(other, _)| other != dev);
            self.avoided.push((dev, Instant::now() + AVOIDED_FOR));
        }
        self.end(waits);
        Refused
    }

    /// Kills the helper, which waits for the file system `dev`.
    fn end(&mut self, dev: Option<u32>) {
        self.late = None;
        if let Some((_, mut process)) = self.running.take() {
            process.kill();
            self.ended.push(Ended { process, dev });
        }
        if let Some(follow) = &mut self.follow {
            follow(None);
        }
    }

    fn reap(&mut self) {
        self.ended.retain_mut(|ended| !ended.process.has_ended());
    }

    /// Reaps killed helpers, and keeps avoiding file systems for which one still waits. Call it
    /// about once a second.
    pub(crate) fn tend(&mut self) {
        let _ = self.settle(true);
        if self.ended.is_empty() {
            return;
        }

        self.reap();
        let now = Instant::now();
        for ended in &self.ended {
            let hangs_at = |avoided: &&mut (u32, Instant)| ended.dev == Some(avoided.0);
            let Some(avoided) = self.avoided.iter_mut().find(hangs_at) else {
                continue;
            };
            if avoided.1.saturating_duration_since(now) < RENEWED_BEFORE {
                avoided.1 = now + AVOIDED_FOR;
                if let Some((link, _)) = &self.running {
                    // A helper that does not read is noticed at the next question.
                    let _ = link.send(&avoid(avoided.0, AVOIDED_FOR));
                }
            }
        }
    }
}

fn avoid(dev: u32, time: Duration) -> Vec<u8> {
    let mut out = Vec::new();
    let ms = time.as_millis().try_into().unwrap_or(u32::MAX);
    Request::Avoid { dev, ms }.put(&mut out);
    out
}

#[cfg(test)]
impl Client {
    /// Makes everything that has a time older by this much.
    pub(crate) fn age(&mut self, time: Duration) {
        self.failures.iter_mut().for_each(|at| *at -= time);
        for (_, until) in &mut self.avoided {
            *until -= time;
        }
    }
}
