//! Rules for the code, checked by a test and by `cargo xtask tidy`.
//!
//! * [`length`]: no file and no function is too long.
//! * [`circles`]: the files of a crate have no circular dependencies.
//! * [`arrows`]: crates depend on each other as the architecture page says.
//! * [`impls`]: no type is spread over many files.
//! * [`names`]: a type's name stands for one thing.
//! * [`dialect`]: a condition is an `if`.
//! * [`numbers`]: record types and errors have names.
//! * [`rust_version`]: everything can be built with the stated version of Rust.
//! * [`versions`]: nothing depends on the version of the kernel.

mod arrows;
mod circles;
mod dialect;
mod impls;
mod length;
mod names;
mod numbers;
mod rust_version;
mod source;
mod versions;

use std::path::Path;

use anyhow::{bail, Result};

/// A place in the code that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Offence {
    /// The place as an exception names it: a file, `FILE: FUNCTION`, `FILE: TYPE`, or `FILE -> FILE`.
    place: String,
    /// Description of the fault, including the place.
    error: String,
}

/// A place that may break a rule for now.
struct Exception {
    place: &'static str,
    /// The reason, printed when the exception is no longer needed.
    why: &'static str,
}

/// Places that may break a rule. An entry that is no longer needed is an error.
const EXCEPTIONS: [Exception; 2] = [
    Exception {
        place: "crates/host/privsep/src/lookup/kernel.rs",
        why: "the release is what the file below asks for",
    },
    Exception {
        place: "crates/log/compose/src/resolve/kernel.rs",
        why: "what newfstatat records of an empty path, and open with O_CREAT of its directory, shows in no type of the kernel",
    },
];

/// Names that more than two types have for now. Whoever renames types takes them from here.
const SHARED_NAMES: &str = "\
    Action Answer Asked Call Change Class Client Container Context Cursor Decision Draft Engine Entry \
    Event Events Extra Facts Fault Field Files Filter Form Format Found Group Host Item Kept Kernel Key \
    Kind Known Level Line Lines Machine Made Maker Names Next Node Outcome Part Parts Pending Place \
    Process Program Progress Reader Reading Record Refused Reply Request Row Rows Run Seen Sender Shared \
    Signals Sink Source State Step Store Subject Summary System Table Target Test Totals Tree Value \
    Verdict Waiting Walk Wanted Word Words Writer";

/// Fails with an error that names every place where the code breaks a rule.
pub(crate) fn check(root: &Path) -> Result<()> {
    let sources = source::all(root)?;
    let excused: Vec<&str> = EXCEPTIONS.iter().map(|each| each.place).collect();
    let mut offences = length::offences(&sources);
    offences.extend(circles::offences(&sources, &excused));
    offences.extend(impls::offences(&sources));
    offences.extend(of_names(names::offences(&sources)));
    offences.extend(dialect::offences(&sources));
    offences.extend(numbers::offences(&sources));
    offences.extend(versions::offences(&sources));
    offences.extend(arrows::offences(root)?);
    offences.extend(rust_version::offences(root)?);
    let errors = judged(offences, &EXCEPTIONS);
    match errors.len() {
        0 => Ok(()),
        count => bail!("{count} errors:\n{}", errors.join("\n")),
    }
}

/// The names that are not among [`SHARED_NAMES`], and those of the list that no longer belong there.
fn of_names(found: Vec<Offence>) -> Vec<Offence> {
    let listed: Vec<&str> = SHARED_NAMES.split_whitespace().collect();
    let (shared, mut wrong): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|each| listed.contains(&each.place.as_str()));

    let unneeded = listed
        .iter()
        .filter(|name| !shared.iter().any(|each| each.place == **name));
    wrong.extend(unneeded.map(|name| Offence {
        place: (*name).to_owned(),
        error: format!("type {name}: take it out of SHARED_NAMES in xtask/src/tidy/mod.rs"),
    }));
    wrong
}

/// The offences that are not excepted, and the exceptions without an offence.
fn judged(offences: Vec<Offence>, exceptions: &[Exception]) -> Vec<String> {
    let is_needed =
        |exception: &&Exception| offences.iter().any(|each| each.place == exception.place);
    let (needed, unneeded): (Vec<_>, Vec<_>) = exceptions.iter().partition(is_needed);
    let is_excused = |offence: &Offence| needed.iter().any(|each| each.place == offence.place);
    let unneeded = unneeded.iter().map(|each| {
        format!(
            "{}: its exception in xtask/src/tidy/mod.rs is no longer needed ({})",
            each.place, each.why
        )
    });
    let rest = offences.iter().filter(|each| !is_excused(each));

    rest.map(|each| each.error.clone())
        .chain(unneeded)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_root;

    #[test]
    fn the_code_is_tidy() {
        if let Err(error) = check(&source_root()) {
            panic!("{error:#}");
        }
    }

    #[test]
    fn an_exception_excuses_its_place_and_is_an_error_when_not_needed() {
        let offence = |place: &str| Offence {
            place: place.into(),
            error: format!("{place}: wrong"),
        };
        let exceptions = [
            Exception {
                place: "a.rs",
                why: "x",
            },
            Exception {
                place: "b.rs",
                why: "y",
            },
        ];
        let errors = judged(vec![offence("a.rs"), offence("c.rs")], &exceptions);
        assert_eq!(
            errors,
            [
                "c.rs: wrong",
                "b.rs: its exception in xtask/src/tidy/mod.rs is no longer needed (y)"
            ]
        );
    }
}
