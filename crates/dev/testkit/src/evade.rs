//! Judges what `tests/evade` left: every selected call that a technique made is recorded with its key.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Where the techniques were used. It decides which of them may be skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvasionHost {
    /// On the host, with `mkfs.btrfs` installed.
    Host,
    /// In a guest of `cargo xtask vm`, which has no modules of the kernel.
    Guest,
}

/// Prefixes of a technique that may be skipped, and of the reason.
type Skip = (&'static str, &'static str);

const HOST_SKIPS: [Skip; 3] = [
    ("chain-document", "no binfmt_misc: "),
    ("x32-", "the kernel has no x32"),
    ("int80-", "no 32-bit entry here"),
];
const GUEST_SKIPS: [Skip; 12] = [
    ("chain-document", "no binfmt_misc: "),
    ("x32-", "the kernel has no x32"),
    // Since Linux 6.7, bind since 6.11.
    ("ring-setsockopt", "the kernel has no operation"),
    ("ring-bind-dir", "the kernel has no operation"),
    ("ring-getsockopt", "the kernel has no operation"),
    ("exe-btrfs", "no btrfs: "),
    ("path-btrfs", "no btrfs: "),
    ("chmod-btrfs", "no btrfs: "),
    ("exe-overlayfs", "no overlayfs: "),
    ("path-overlayfs", "no overlayfs: "),
    ("chmod-overlayfs", "no overlayfs: "),
    ("dir-overlayfs", "no overlayfs: "),
];
/// A technique that an engine is known not to record in full, with the reason.
/// docs/reference/differences.md lists them.
type Known = (&'static str, &'static str);

const LOOKED_UP_LATE: &str =
    "the name is looked up after the call, when the mount or its text is another";
const DIRECTORIES_LATE: &str = "directories above a rule's path are followed once a second";
const KNOWN_OF_TRAMPOLINES: [Known; 1] = [(
    "ptrace-exit-stop",
    "since Linux 6.16 exit is seen when the task ends",
)];
const KNOWN_OF_TRACEPOINTS: [Known; 12] = [
    ("dir-moved-unseen", DIRECTORIES_LATE),
    ("fchmodat-flipped", LOOKED_UP_LATE),
    ("fchmodat-protected", LOOKED_UP_LATE),
    ("link-flipped", LOOKED_UP_LATE),
    ("mkdirat-flipped", LOOKED_UP_LATE),
    ("renameat-flipped", LOOKED_UP_LATE),
    ("renameat-protected", LOOKED_UP_LATE),
    ("renameat-to-flipped", LOOKED_UP_LATE),
    ("truncate-flipped", LOOKED_UP_LATE),
    ("truncate-renamed", LOOKED_UP_LATE),
    ("unlinkat-flipped", LOOKED_UP_LATE),
    ("unlinkat-protected", LOOKED_UP_LATE),
];

/// Reason why an engine does not record all calls of a technique, if it is known.
fn known_reason(name: &str, is_tracepoint: bool) -> Option<&'static str> {
    let of_engine: &[Known] = if is_tracepoint {
        &KNOWN_OF_TRACEPOINTS
    } else {
        &KNOWN_OF_TRAMPOLINES
    };
    let known = of_engine.iter().find(|(technique, _)| *technique == name);
    known.map(|(_, why)| *why)
}

/// Techniques whose rules do not select the technique's calls alone.
const WATCH: &str = "watch-";
/// Techniques whose calls may be counted as lost instead of recorded.
const FLOOD: &str = "flood-";
/// Techniques with long arguments, which fill a ring: the event of such an execve needs the reader.
/// Where the machine is busy, up to half of their calls may be counted as lost. In guests, whose
/// processors are slow, all of them may, and so may calls of other techniques with execve that
/// follow while the ring is still full.
const LONG: [&str; 4] = [
    "exec-5mb",
    "exec-default-limit",
    "exec-many-arguments",
    "exec-argument-flipped",
];
const EXECVE: &str = "exec-";

impl EvasionHost {
    fn may_skip(self, name: &str, reason: &str) -> bool {
        let skips: &[Skip] = match self {
            EvasionHost::Host => &HOST_SKIPS,
            EvasionHost::Guest => &GUEST_SKIPS,
        };
        skips
            .iter()
            .any(|(names, why)| name.starts_with(names) && reason.starts_with(why))
    }
}

/// The verdict on one run of `tests/evade/run`.
#[derive(Debug, Default)]
pub struct EvasionVerdict {
    /// Number of techniques used, and of the calls that they made.
    used: u64,
    calls: u64,
    /// Techniques that were not possible, with the reason.
    pub skipped: Vec<String>,
    /// Techniques that are known to escape, and did, with the reason.
    pub escaped: Vec<String>,
    /// Techniques that hid a call, or made a false record, a line each.
    pub wrong: Vec<String>,
}

impl EvasionVerdict {
    /// Reads `NAME.made` and `NAME.counted` in `dir`.
    ///
    /// # Errors
    /// A file cannot be read, or has a line of another form.
    pub fn of_run(dir: &Path, name: &str, place: EvasionHost) -> Result<Self, String> {
        let read = |what: &str| {
            let path = dir.join(format!("{name}.{what}"));
            std::fs::read_to_string(&path)
                .map_err(|error| format!("reading {}: {error}", path.display()))
        };
        let is_tracepoint = name.starts_with("tracepoint");
        Self::of(&read("made")?, &read("counted")?, place, is_tracepoint)
    }

    /// Compares the output of `evade make` with that of `evade count`.
    fn of(
        made: &str,
        counted: &str,
        place: EvasionHost,
        is_tracepoint: bool,
    ) -> Result<Self, String> {
        let mut counts = counts_of(counted)?;
        if counts.is_empty() {
            return Err("no technique was asked for".to_owned());
        }

        let mut verdict = EvasionVerdict::default();

        for line in made.lines() {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            let [name, what, rest] = words[..] else {
                return Err(format!(
                    "NAME made, skipped or failed expected, not: {line}"
                ));
            };
            let Some(counts) = counts.remove(name) else {
                return Err(format!("{name}: made twice, or no rule has its key"));
            };
            match what {
                "made" => {
                    // Tags of the calls may follow, which `evade count` reads.
                    let made = rest.split(' ').next().unwrap_or_default();
                    let made = made.parse().map_err(|_| format!("no count: {line}"))?;
                    verdict.compare(name, made, counts, (place, is_tracepoint));
                }
                "skipped" => verdict.skip(name, rest, place),
                _ => verdict.wrong.push(line.to_owned()),
            }
        }

        let left = counts.keys().map(|name| format!("{name}: not made"));
        verdict.wrong.extend(left);

        Ok(verdict)
    }

    fn compare(
        &mut self,
        name: &str,
        made: u64,
        [recorded, lost]: [u64; 2],
        (place, is_tracepoint): (EvasionHost, bool),
    ) {
        self.used += 1;
        self.calls += made;
        let is_starved = match place {
            EvasionHost::Host => LONG.contains(&name) && 2 * lost <= made,
            EvasionHost::Guest => name.starts_with(EXECVE),
        };
        let may_be_lost = name.starts_with(FLOOD) || is_starved;

        // Watches select calls of everybody, of which some are recorded because they may be theirs.
        let is_all = if name.starts_with(WATCH) {
            recorded + lost >= made
        } else {
            recorded + lost == made
        };
        let is_right = is_all && (lost == 0 || may_be_lost) && made > 0;
        if is_right {
            return;
        }

        let text = format!("{name}: {made} made, {recorded} recorded, {lost} counted as lost");
        let is_escape = recorded < made && lost == 0;
        match known_reason(name, is_tracepoint) {
            Some(why) if is_escape => self.escaped.push(format!("{text} ({why})")),
            _ => self.wrong.push(text),
        }
    }

    fn skip(&mut self, name: &str, reason: &str, place: EvasionHost) {
        let text = format!("{name}: {reason}");
        if place.may_skip(name, reason) {
            self.skipped.push(text)
        } else {
            self.wrong
                .push(format!("{text} (may not be skipped on {place:?})"))
        }
    }

    /// Whether every call was recorded.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// The numbers, and what is wrong.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} techniques, {} calls, {} skipped, {} known to escape, {} wrong",
            self.used,
            self.calls,
            self.skipped.len(),
            self.escaped.len(),
            self.wrong.len()
        );

        for line in &self.escaped {
            let _ = write!(text, "\n  known: {line}");
        }
        for line in &self.wrong {
            let _ = write!(text, "\n  {line}");
        }
        text
    }
}

/// `NAME RECORDED LOST` of each line.
fn counts_of(text: &str) -> Result<BTreeMap<String, [u64; 2]>, String> {
    let parse = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let counts = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
        Some((name, counts))
    };
    text.lines()
        .map(|line| parse(line).ok_or_else(|| format!("NAME RECORDED LOST expected, not: {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(made: &str, counted: &str, place: EvasionHost) -> Vec<String> {
        let verdict =
            EvasionVerdict::of(made, counted, place, true).expect("lines of the right form");
        verdict.wrong
    }

    #[test]
    fn of_calls_with_long_arguments_half_may_be_lost() {
        let wrong = |counted: &str, place| {
            let verdict = EvasionVerdict::of("exec-5mb made 3\n", counted, place, true);
            verdict.expect("lines of the right form").wrong.len()
        };
        assert_eq!(wrong("exec-5mb 2 1\n", EvasionHost::Host), 0);
        assert_eq!(wrong("exec-5mb 1 2\n", EvasionHost::Host), 1);
        assert_eq!(wrong("exec-5mb 0 3\n", EvasionHost::Guest), 0);
        assert_eq!(wrong("exec-5mb 2 0\n", EvasionHost::Guest), 1);
        let of_others = |place| {
            let verdict =
                EvasionVerdict::of("exec-vfork made 3\n", "exec-vfork 2 1\n", place, true);
            verdict.expect("lines of the right form").wrong.len()
        };
        assert_eq!(of_others(EvasionHost::Guest), 0);
        assert_eq!(of_others(EvasionHost::Host), 1);
    }

    #[test]
    fn what_is_known_to_escape_one_engine_is_wrong_under_the_other() {
        let made = "truncate-renamed made 3\n";
        let of = |counted: &str, is_tracepoint| {
            let verdict = EvasionVerdict::of(made, counted, EvasionHost::Host, is_tracepoint);
            let verdict = verdict.expect("lines of the right form");
            (verdict.escaped.len(), verdict.wrong.len())
        };
        assert_eq!(of("truncate-renamed 1 0\n", true), (1, 0));
        assert_eq!(of("truncate-renamed 1 0\n", false), (0, 1));
        assert_eq!(of("truncate-renamed 3 0\n", true), (0, 0));
        // More than was made, or a loss, is wrong in any case.
        assert_eq!(of("truncate-renamed 4 0\n", true), (0, 1));
        assert_eq!(of("truncate-renamed 1 2\n", true), (0, 1));
    }

    #[test]
    fn what_was_made_must_be_recorded_neither_less_nor_more() {
        let made = "one made 3\n";
        assert!(wrong(made, "one 3 0\n", EvasionHost::Host).is_empty());
        for counted in ["one 2 0\n", "one 4 0\n", "one 2 1\n", "one 0 3\n"] {
            assert_eq!(
                wrong(made, counted, EvasionHost::Host).len(),
                1,
                "{counted}"
            );
        }
        let tagged = "one made 3 100 104 107\n";
        assert!(wrong(tagged, "one 3 0\n", EvasionHost::Host).is_empty());
        assert_eq!(
            wrong("one made 0\n", "one 0 0\n", EvasionHost::Host).len(),
            1
        );
    }

    #[test]
    fn a_flood_may_be_counted_as_lost() {
        let made = "flood-x made 10\n";
        assert!(wrong(made, "flood-x 4 6\n", EvasionHost::Host).is_empty());
        assert_eq!(wrong(made, "flood-x 4 5\n", EvasionHost::Host).len(), 1);
    }

    #[test]
    fn a_technique_is_skipped_only_where_and_why_it_may_be() {
        let counted = "exe-btrfs 0 0\n";
        let no_btrfs = "exe-btrfs skipped no btrfs: the kernel does not mount it\n";
        assert!(wrong(no_btrfs, counted, EvasionHost::Guest).is_empty());
        assert_eq!(wrong(no_btrfs, counted, EvasionHost::Host).len(), 1);
        let other = "exe-btrfs skipped it rains\n";
        assert_eq!(wrong(other, counted, EvasionHost::Guest).len(), 1);
    }

    #[test]
    fn a_technique_that_failed_or_was_not_used_is_wrong() {
        assert_eq!(
            wrong("a failed fork\n", "a 0 0\nb 0 0\n", EvasionHost::Host).len(),
            2
        );
        assert!(EvasionVerdict::of("", "", EvasionHost::Host, true).is_err());
        assert!(EvasionVerdict::of("c made 1\n", "a 1 0\n", EvasionHost::Host, true).is_err());
    }
}
