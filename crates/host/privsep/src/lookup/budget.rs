//! The time that look-ups may take: callers choose what is looked up, and the daemon has one thread.
//!
//! The look-ups of an event have [`EVENT_NS`] together. While the daemon is behind by [`BEHIND_NS`], a maker has
//! [`MAKER_NS`] of each second, and all makers have half of all time: [`Share`]. Then only those go on that have hardly
//! asked for anything, and these have another quarter. So look-ups delay what others do by some tens of milliseconds at
//! most, however many makers there are: a user may have many uids and cgroups.

use compose::Origin;
use std::collections::HashMap;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Time for all look-ups of an event.
pub(crate) const EVENT_NS: u64 = 20_000_000;
/// Time of a maker in each second: a twentieth.
const MAKER_NS: u64 = SECOND_NS / 20;
/// Time of a maker in each second up to which it is one that hardly asks.
const SMALL_NS: u64 = 1_000_000;
/// Age of a frame from which the daemon is behind: a little more than one that was in a ring when the daemon rested.
const BEHIND_NS: u64 = 12_000_000;
/// What a share saves up.
const BURST_NS: u64 = 5_000_000;
/// Time for all look-ups of the daemon's own regular work at a time.
const OWN_NS: u64 = 500_000_000;
/// Limit of the makers that are told apart; the others count as one.
const MAKERS_MAX: usize = 1024;
/// Limit of the directories of an event that are looked at upwards.
pub(crate) const STEPS_MAX: u32 = 2048;

/// A part of all time, of which [`BURST_NS`] are saved up.
#[derive(Debug)]
struct Share {
    /// The part is one of this many.
    of: u64,
    /// Time that was taken before it was given.
    level_ns: u64,
    at_ns: u64,
}

impl Share {
    fn new(of: u64) -> Share {
        Share {
            of,
            level_ns: 0,
            at_ns: 0,
        }
    }

    fn has_some(&mut self, now_ns: u64) -> bool {
        let given = now_ns.saturating_sub(self.at_ns) / self.of;
        self.level_ns = self.level_ns.saturating_sub(given);
        self.at_ns = now_ns;
        self.level_ns < BURST_NS
    }

    fn take(&mut self, ns: u64) {
        self.level_ns = self.level_ns.saturating_add(ns);
    }
}

/// An event whose look-ups are made.
#[derive(Debug)]
struct Current {
    maker: (u32, u64),
    made_ns: u64,
    left_ns: u64,
    steps_left: u32,
    refusals: u32,
    /// Whether one of them was refused for want of time.
    is_over: bool,
    /// Whether this is the daemon's own work, which nobody else causes.
    is_own: bool,
}

/// Time for a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// As much as a helper may need: the look-up is for no event.
    None,
    /// This long.
    Within(Duration),
    /// Nothing is left.
    Over,
}

impl Limit {
    /// The time as [`Client::ask`](crate::lookup::client::Client::ask) takes it.
    ///
    /// # Errors
    /// Nothing is left.
    pub(crate) fn within(self) -> Result<Option<Duration>, ()> {
        match self {
            Limit::None => Ok(None),
            Limit::Within(time) => Ok(Some(time)),
            Limit::Over => Err(()),
        }
    }
}

/// The time that is left for look-ups.
#[derive(Debug)]
pub(crate) struct Budgets {
    current: Option<Current>,
    /// Time that makers have used in the second `second`.
    makers: HashMap<(u32, u64), u64>,
    second: u64,
    /// Makers that are not told apart.
    others_ns: u64,
    all: Share,
    small: Share,
    /// Whether the look-up under way is of a maker that hardly asks, beyond the share of all.
    is_small: bool,
    /// Events of which a look-up was refused for want of time.
    pub(crate) over: u64,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets {
            current: None,
            makers: HashMap::new(),
            second: 0,
            others_ns: 0,
            all: Share::new(2),
            small: Share::new(4),
            is_small: false,
            over: 0,
        }
    }
}

impl Budgets {
    /// The next look-ups are of this event.
    pub(crate) fn begin(&mut self, origin: Origin) {
        self.current = Some(Current {
            maker: (origin.uid, origin.cgroup_id),
            made_ns: origin.made_ns,
            left_ns: EVENT_NS,
            steps_left: STEPS_MAX,
            refusals: 0,
            is_over: false,
            is_own: false,
        });
    }

    /// The next look-ups are of the daemon's own regular work.
    pub(crate) fn begin_own(&mut self) {
        self.begin(Origin {
            uid: 0,
            cgroup_id: 0,
            made_ns: u64::MAX,
        });
        if let Some(current) = &mut self.current {
            (current.left_ns, current.is_own) = (OWN_NS, true);
        }
    }

    /// The next look-ups are of no event.
    pub(crate) fn end(&mut self) {
        self.current = None;
    }

    /// Time for the next look-up.
    pub(crate) fn limit(&mut self, now_ns: u64) -> Limit {
        match &self.current {
            None => Limit::None,
            Some(current) => {
                let (left, made) = (current.left_ns, current.made_ns);
                let is_behind = now_ns.saturating_sub(made) >= BEHIND_NS;
                let share = if is_behind {
                    self.share(now_ns)
                } else {
                    u64::MAX
                };
                match left.min(share) {
                    0 => Limit::Over,
                    ns => Limit::Within(Duration::from_nanos(ns)),
                }
            }
        }
    }

    /// Time for which the maker may ask although the daemon is behind.
    fn share(&mut self, now_ns: u64) -> u64 {
        self.turn(now_ns);
        let used = *self.used();
        if used >= MAKER_NS || self.all.has_some(now_ns) {
            return MAKER_NS.saturating_sub(used);
        }
        self.is_small = used < SMALL_NS && self.small.has_some(now_ns);
        if self.is_small {
            SMALL_NS - used
        } else {
            0
        }
    }

    /// A look-up of the event took this long, until `now_ns`.
    pub(crate) fn spent(&mut self, ns: u64, now_ns: u64) {
        let Some(current) = &mut self.current else {
            return;
        };
        current.left_ns = current.left_ns.saturating_sub(ns);
        self.charge(ns, now_ns);
    }

    /// Something that has a limit of its own took this long for the event.
    pub(crate) fn charge(&mut self, ns: u64, now_ns: u64) {
        if self.current.as_ref().is_none_or(|current| current.is_own) {
            return;
        }
        self.turn(now_ns);
        *self.used() += ns;
        self.all.has_some(now_ns);
        self.all.take(ns);
        if std::mem::take(&mut self.is_small) {
            self.small.take(ns);
        }
    }

    /// A look-up of the event has no result; `is_for_time` if there was no time for it.
    pub(crate) fn refuse(&mut self, is_for_time: bool) {
        let Some(current) = &mut self.current else {
            return;
        };
        current.refusals = current.refusals.saturating_add(1);
        if is_for_time && !std::mem::replace(&mut current.is_over, true) {
            self.over += u64::from(!current.is_own);
        }
    }

    /// Number of look-ups of the event without a result.
    pub(crate) fn refusals(&self) -> u32 {
        self.current.as_ref().map_or(0, |current| current.refusals)
    }

    /// Whether something was refused for want of time.
    pub(crate) fn is_over(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.is_over)
    }

    /// Whether the event has used up its time.
    pub(crate) fn is_used_up(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.left_ns == 0)
    }

    /// Directories that the event may still look at upwards.
    pub(crate) fn steps_left(&self) -> u32 {
        let of_event = |current: &Current| current.steps_left;
        self.current.as_ref().map_or(STEPS_MAX, of_event)
    }

    /// The event has looked at this many directories upwards.
    pub(crate) fn stepped(&mut self, steps: u32) {
        if let Some(current) = &mut self.current {
            current.steps_left = current.steps_left.saturating_sub(steps);
        }
    }

    /// Begins a second, if the last one is over.
    fn turn(&mut self, now_ns: u64) {
        let second = now_ns / SECOND_NS;
        if std::mem::replace(&mut self.second, second) != second {
            self.makers.clear();
            self.others_ns = 0;
        }
    }

    /// What the event's maker has used in this second.
    fn used(&mut self) -> &mut u64 {
        let maker = self.current.as_ref().map(|current| current.maker);
        let is_full = self.makers.len() >= MAKERS_MAX;
        match maker {
            Some(maker) if !is_full || self.makers.contains_key(&maker) => {
                self.makers.entry(maker).or_default()
            }
            _ => &mut self.others_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn begin(budgets: &mut Budgets, uid: u32, made_ns: u64) {
        budgets.begin(Origin {
            uid,
            cgroup_id: 1,
            made_ns,
        });
    }

    /// Takes what the budgets give for an event of `uid` that was made long ago, up to `ns`. Returns what it got.
    fn take(budgets: &mut Budgets, uid: u32, now_ns: u64, ns: u64) -> u64 {
        begin(budgets, uid, 0);
        match budgets.limit(now_ns) {
            Limit::Within(time) => {
                let ns = ns.min(time.as_nanos() as u64);
                budgets.spent(ns, now_ns + ns);
                ns
            }
            Limit::None | Limit::Over => 0,
        }
    }

    #[test]
    fn the_look_ups_of_an_event_have_twenty_milliseconds_together() {
        let mut budgets = Budgets::default();
        assert_eq!(budgets.limit(0), Limit::None);
        begin(&mut budgets, 1, 20 * MS);
        for (now, left) in [(5 * MS, 20), (12 * MS, 13), (24 * MS, 1)] {
            let expected = Limit::Within(Duration::from_millis(left));
            assert_eq!(budgets.limit(now), expected);
            budgets.spent(if left == 20 { 7 } else { 12 } * MS, now);
        }
        assert_eq!(budgets.limit(30 * MS), Limit::Over);
        budgets.refuse(true);
        budgets.refuse(true);
        assert_eq!((budgets.refusals(), budgets.over), (2, 1));
        begin(&mut budgets, 1, 40 * MS);
        assert_eq!((budgets.refusals(), budgets.over), (0, 1));
        assert_ne!(budgets.limit(40 * MS), Limit::Over);
    }

    #[test]
    fn a_maker_has_a_twentieth_of_each_second_while_the_daemon_is_behind() {
        let mut budgets = Budgets::default();
        for second in 1..5 {
            let start = second * SECOND_NS;
            let got: u64 = (0..900)
                .map(|ms| take(&mut budgets, 7, start + ms * MS, MS))
                .sum();
            assert_eq!(got, MAKER_NS);
            // Not behind: nobody else waits.
            let now = start + 900 * MS;
            begin(&mut budgets, 7, now);
            assert_ne!(budgets.limit(now), Limit::Over);
            assert_eq!(take(&mut budgets, 8, now, MS), MS);
        }
    }

    #[test]
    fn however_many_makers_there_are_a_fifth_of_all_time_is_left() {
        let (mut budgets, mut now, mut got) = (Budgets::default(), SECOND_NS, 0);
        let end = now + 10 * SECOND_NS;
        let mut uid = 0;
        while now < end {
            uid = (uid + 1) % 5000;
            let taken = take(&mut budgets, uid, now, 20 * MS);
            got += taken;
            // What else an event costs.
            now += taken + 20_000;
        }
        assert!(got < 8_000 * MS, "{got}");
        assert!(budgets.makers.len() <= MAKERS_MAX);
    }

    #[test]
    fn who_hardly_asks_is_mostly_answered_beside_a_hundred_who_ask_much() {
        let (mut budgets, mut now, mut got) = (Budgets::default(), SECOND_NS, Vec::new());
        for round in 0..30_000 {
            now += 100_000 + take(&mut budgets, 1000 + round % 100, now, 20 * MS);
            if round % 1000 == 0 {
                got.push(take(&mut budgets, 1, now, 20_000) > 0);
            }
        }
        let answered = got.iter().filter(|&&is_answered| is_answered).count();
        assert!(answered * 2 > got.len(), "{answered} of {}", got.len());
    }
}
