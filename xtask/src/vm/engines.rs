//! Results of `tests/vm/engines`: which eBPF engines work on a kernel, and what is less exact there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};

/// Names of the engines, as users write them.
pub(super) const ENGINES: [&str; 2] = ["tracepoint", "trampoline"];
/// Number of selected calls that the guest makes under each engine.
const CALLS: usize = 3;

/// The result for an engine on a kernel.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Engine {
    pub(super) works: bool,
    /// The program's message if the engine does not work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) why: String,
    /// The plan's notes on the engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

/// The results of both engines, by name.
pub(super) fn read(dir: &Path) -> Result<BTreeMap<String, Engine>> {
    let engine = |name: &&str| Ok((name.to_string(), read_engine(dir, name)?));
    ENGINES.iter().map(engine).collect()
}

fn read_engine(dir: &Path, name: &str) -> Result<Engine> {
    let text = |extension: &str| {
        let path = dir.join(format!("{name}.{extension}"));
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let said = text("err")?;
    if text("status")?.trim() != "0" {
        return Ok(Engine {
            works: false,
            why: said.lines().last().unwrap_or_default().to_owned(),
            notes: Vec::new(),
        });
    }

    let log = text("log")?;
    let calls = log.lines().filter(|line| line.starts_with("type=SYSCALL "));
    let calls = calls
        .filter(|line| line.contains(" key=\"engines\""))
        .count();
    let works = calls == CALLS;
    let plan: serde_json::Value =
        serde_json::from_str(&text("plan")?).context(format!("{name}.plan"))?;

    Ok(Engine {
        works,
        why: if works {
            String::new()
        } else {
            format!("{calls} of {CALLS} calls recorded")
        },
        notes: notes_of(&plan),
    })
}

/// The notes of a plan.
fn notes_of(plan: &serde_json::Value) -> Vec<String> {
    let notes = plan["notes"].as_array().into_iter().flatten();
    notes
        .filter_map(|note| Some(note.as_str()?.to_owned()))
        .collect()
}

/// Both engines must work; the text contains the notes of their plans.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let mut said = Vec::new();
    let mut is_right = true;
    for (name, engine) in read(dir)? {
        is_right &= engine.works;
        let verdict = if engine.works {
            format!("works, {} notes", engine.notes.len())
        } else {
            engine.why
        };
        said.push(format!("{name}: {verdict}"));
    }

    if is_right {
        Ok(said.join("\n"))
    } else {
        bail!("{}", said.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_works_that_is_armed_and_records() {
        let dir = tempfile::tempdir().expect("a directory");
        let leave = |engine: &str, status: &str, err: &str, calls: usize| {
            let log = "type=SYSCALL msg=audit(1.0:1): key=\"engines\"\n".repeat(calls);
            for (name, text) in [
                ("status", status),
                ("err", err),
                ("log", &log),
                ("plan", "{\"notes\": [\"no clocks\"]}"),
            ] {
                fs::write(dir.path().join(format!("{engine}.{name}")), text).expect("a file");
            }
        };
        leave("tracepoint", "0\n", "tarsier: armed\n", CALLS);
        leave("trampoline", "1\n", "tarsier: no such field\n", 0);
        let found = read(dir.path()).expect("both");
        assert!(found["tracepoint"].works && found["tracepoint"].notes == ["no clocks"]);
        assert_eq!(found["trampoline"].why, "tarsier: no such field");
        assert!(judge(dir.path()).is_err());
        leave("trampoline", "0\n", "tarsier: armed\n", CALLS - 1);
        assert!(!read(dir.path()).expect("both")["trampoline"].works);
        leave("trampoline", "0\n", "tarsier: armed\n", CALLS);
        assert!(judge(dir.path()).is_ok());
    }
}
