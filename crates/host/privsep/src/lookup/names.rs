//! The daemon's side of the helper that looks up names of users and groups.
//!
//! A directory service may be slow or down. The daemon waits for a name as long as an event's budget says; then it
//! goes on without names until the helper has answered, and that answer is kept for the next event with this id. A
//! helper that has not answered after [`PATIENCE`] is killed.

use crate::lookup::budget::Limit;
use crate::lookup::client::{Follow, Process, Start};
use crate::lookup::link::{Broken, Link};
use crate::lookup::message::{Asker, Content, Question, Reply, Request, BYTES_MAX};
use record::NameAnswer;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time after which a helper is given up, and time until the next one.
const PATIENCE: Duration = Duration::from_secs(10);
/// Limit of the late answers kept for ids that may never be needed again.
const LATE_MAX: usize = 64;
/// Number of names that are asked for at once, and then per second. Further ids get no names.
const BURST: u32 = 4096;
const PER_SECOND: u32 = 1000;

/// Whether the id is that of a group, and the id.
type Id = (bool, u32);

/// A question that is not answered yet.
struct Pending {
    id: Id,
    number: u32,
    since: Instant,
}

/// Asks a helper for names.
pub(crate) struct Names {
    start: Box<dyn Start>,
    follow: Option<Follow>,
    running: Option<(Link, Box<dyn Process>)>,
    ended: Vec<Box<dyn Process>>,
    pending: Option<Pending>,
    late: HashMap<Id, NameAnswer>,
    paused_until: Option<Instant>,
    allowance: Allowance,
    number: u32,
    buffer: Vec<u8>,
    /// Names that records lack.
    pub(crate) unanswered: u64,
    /// Helpers that were given up.
    pub(crate) replaced: u64,
}

impl Names {
    /// Starts without a helper: the first question starts one.
    pub(crate) fn new(start: Box<dyn Start>) -> Names {
        Names {
            start,
            follow: None,
            running: None,
            ended: Vec::new(),
            pending: None,
            late: HashMap::new(),
            paused_until: None,
            allowance: Allowance::new(Instant::now()),
            number: 0,
            buffer: vec![0; BYTES_MAX],
            unanswered: 0,
            replaced: 0,
        }
    }

    /// Calls `follow` for each helper from now on, and for the one that runs.
    pub(crate) fn follow(&mut self, mut follow: Follow) {
        follow(self.running.as_ref().map(|(_, process)| process.pid()));
        self.follow = Some(follow);
    }

    /// The name of a user or group, if it comes in time.
    pub(crate) fn ask(&mut self, is_group: bool, id: u32, limit: Limit) -> NameAnswer {
        let now = Instant::now();
        let answer = self.known((is_group, id), now, limit);
        self.unanswered += u64::from(answer == NameAnswer::NotNow);
        answer
    }

    fn known(&mut self, id: Id, now: Instant, limit: Limit) -> NameAnswer {
        self.collect(now);
        if let Some(answer) = self.late.remove(&id) {
            return answer;
        }

        let is_paused = self.paused_until.is_some_and(|until| until > now);
        let Ok(within) = limit.within() else {
            return NameAnswer::NotNow;
        };
        if is_paused || self.pending.is_some() || !self.allowance.take(now) {
            return NameAnswer::NotNow;
        }

        match self.exchange(id, now, within) {
            Ok(Some(answer)) => answer,
            Ok(None) => NameAnswer::NotNow,
            Err(Broken) => {
                self.give_up(now);
                NameAnswer::NotNow
            }
        }
    }

    /// Takes the answer to the pending question, if it has come.
    fn collect(&mut self, now: Instant) {
        let (Some(pending), Some((link, _))) = (&self.pending, &self.running) else {
            return;
        };

        let (id, since) = (pending.id, pending.since);
        match received(link, &mut self.buffer, pending.number, now, false) {
            Ok(Some(answer)) => {
                self.pending = None;
                if self.late.len() >= LATE_MAX {
                    self.late.clear();
                }
                self.late.insert(id, answer);
            }
            Ok(None) if now.saturating_duration_since(since) < PATIENCE => {}
            Ok(None) | Err(Broken) => self.give_up(now),
        }
    }

    /// Asks for a name. Without an answer in time, the question stays pending.
    fn exchange(
        &mut self,
        id: Id,
        now: Instant,
        within: Option<Duration>,
    ) -> Result<Option<NameAnswer>, Broken> {
        if self.running.is_none() {
            self.ended.retain_mut(|process| !process.has_ended());
            let running = self.start.start().map_err(|_| Broken)?;
            if let Some(follow) = &mut self.follow {
                follow(Some(running.1.pid()));
            }
            self.running = Some(running);
        }

        let Some((link, _)) = &self.running else {
            return Err(Broken);
        };

        self.number = self.number.wrapping_add(1);
        let number = self.number;
        let question = match id {
            (false, uid) => Question::User(uid),
            (true, gid) => Question::Group(gid),
        };
        let mut out = Vec::new();
        Request::Ask {
            number,
            may_wait: true,
            asker: Asker::default(),
            question,
        }
        .put(&mut out);
        link.send(&out)?;

        let limit = within.map_or(link.patience(), |within| within.min(link.patience()));
        let is_first = link.waits_at_most(limit);
        let answer = received(link, &mut self.buffer, number, now + limit, is_first)?;
        if answer.is_none() {
            self.pending = Some(Pending {
                id,
                number,
                since: now,
            });
        }

        Ok(answer)
    }

    /// Kills the helper, and asks no questions for a while.
    fn give_up(&mut self, now: Instant) {
        self.replaced += 1;
        self.pending = None;
        self.paused_until = Some(now + PATIENCE);
        if let Some((_, mut process)) = self.running.take() {
            process.kill();
            self.ended.push(process);
        }
        if let Some(follow) = &mut self.follow {
            follow(None);
        }
    }

    /// Reaps killed helpers. Call it about once a second.
    pub(crate) fn tend(&mut self) {
        self.ended.retain_mut(|process| !process.has_ended());
    }

    /// Killed helpers that have not ended.
    pub(crate) fn stuck(&self) -> usize {
        self.ended.len()
    }
}

/// The answer to request `number`, if it comes until `end`.
fn received(
    link: &Link,
    buffer: &mut [u8],
    number: u32,
    end: Instant,
    is_first: bool,
) -> Result<Option<NameAnswer>, Broken> {
    let mut received = link.receive(buffer, end, is_first)?;
    if received.is_none() && is_first && Instant::now() < end {
        received = link.receive(buffer, end, false)?;
    }
    let Some(len) = received else {
        return Ok(None);
    };

    match Reply::parse(&buffer[..len]) {
        Ok(reply) if reply.number == number => match reply.content {
            Content::Bytes(name) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                Ok(Some(NameAnswer::Name(name)))
            }
            Content::Missing => Ok(Some(NameAnswer::Nameless)),
            _ => Err(Broken),
        },
        _ => Err(Broken),
    }
}

/// Number of names that may still be asked for.
struct Allowance {
    left: u32,
    at: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Allowance {
        Allowance {
            left: BURST,
            at: now,
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.at).as_millis();
        let more = elapsed * u128::from(PER_SECOND) / 1000;
        if more > 0 {
            let more = more.min(BURST.into()) as u32;
            self.left = (self.left + more).min(BURST);
            self.at = now;
        }
        let has_some = self.left > 0;
        self.left -= u32::from(has_some);
        has_some
    }
}

#[cfg(test)]
impl Names {
    /// Makes everything that has a time older by this much.
    pub(crate) fn age(&mut self, time: Duration) {
        if let Some(pending) = &mut self.pending {
            pending.since -= time;
        }
        if let Some(until) = &mut self.paused_until {
            *until -= time;
        }
    }
}
