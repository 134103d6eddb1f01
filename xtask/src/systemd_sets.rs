//! `cargo xtask systemd-sets --from FILE`: the system-call sets of `SystemCallFilter=`.
//!
//! `FILE` is the output of `systemd-analyze syscall-filter`. To use a systemd that is newer than the host's,
//! extract that release's `systemd` and `libsystemd-shared` packages and the libraries that they need, and run the
//! program with its own loader:
//!
//! ```text
//! L=root/usr/lib/x86_64-linux-gnu
//! $L/ld-linux-x86-64.so.2 --library-path $L:$L/systemd root/usr/bin/systemd-analyze syscall-filter
//! ```

use anyhow::{bail, Context, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Writes the table to `out`.
///
/// # Errors
/// The file cannot be read, or does not look like the command's output.
pub(crate) fn write(from: &Path, out: &Path) -> Result<()> {
    let text =
        fs::read_to_string(from).with_context(|| format!("cannot read {}", from.display()))?;
    let sets = parse(&text);
    if sets.len() < 25 {
        bail!("{} has only {} sets", from.display(), sets.len());
    }

    let mut table = String::from(
        "//! System-call sets of systemd 257.9 by `cargo xtask systemd-sets`, from the output of\n\
         //! `systemd-analyze syscall-filter` (Debian 257.9-1~deb13u1). Do not edit.\n\n\
         /// Name and members; a member with `@` is a set. By name.\n\
         #[rustfmt::skip]\n\
         pub(super) static SETS: &[(&str, &[&str])] = &[\n",
    );

    for (name, members) in sets {
        writeln!(table, "    ({name:?}, &[")?;
        let mut line = String::from("       ");
        for member in members {
            if line.len() + member.len() > 94 {
                writeln!(table, "{line}")?;
                line = String::from("       ");
            }
            write!(line, " {member:?},")?;
        }
        writeln!(table, "{line}\n    ]),")?;
    }

    table.push_str("];\n");

    fs::write(out, table).with_context(|| format!("cannot write {}", out.display()))
}

/// The sets by name. Comments start with `#`; members are indented.
fn parse(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sets: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let word = line.trim();
        if word.is_empty() || word.starts_with('#') {
            continue;
        }
        match sets.last_mut() {
            Some(set) if line.starts_with(' ') => set.1.push(word),
            _ => sets.push((word, Vec::new())),
        }
    }

    sets.sort();
    sets
}
