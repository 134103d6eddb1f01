//! Compares the log of what a program did through io_uring with the program's own output.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};

const ENGINES: [&str; 2] = ["tracepoint", "trampoline"];
const MODES: [&str; 3] = ["inline", "worker", "sqpoll"];
/// Operations that the rules of `tests/vm/rings` select.
const NAMES: [&str; 17] = [
    "openat",
    "openat2",
    "read",
    "write",
    "close",
    "linkat",
    "renameat",
    "symlinkat",
    "mkdirat",
    "unlinkat",
    "socket",
    "connect",
    "accept",
    "send",
    "sendmsg",
    "recv",
    "splice",
];
/// Operations that the rules for objects select.
const OF_OBJECTS: [&str; 8] = [
    "openat",
    "openat2",
    "linkat",
    "renameat",
    "symlinkat",
    "mkdirat",
    "unlinkat",
    "connect",
];
/// The login uid that `tests/vm/rings` sets for itself.
const AUID: &str = "1000";

/// An operation, as printed by the workload or as recorded in an event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Operation {
    pid: String,
    name: String,
    result: String,
    /// Paths that it names, or the address that it uses.
    objects: Vec<String>,
}

/// Judges the results of `tests/vm/rings`: both engines must have every operation once, in order; the kernel's
/// audit, those that it records at all. The text contains the counts.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let mut said = String::new();
    for mode in MODES {
        for engine in ENGINES {
            let case = format!("{engine}.{mode}");
            let made = made(dir, &case, &NAMES)?;
            compare(&made, &logged(dir, &case, true)?).with_context(|| case.clone())?;
            said += &format!("{case}: {} of {} operations\n", made.len(), made.len());
        }
        let case = format!("kernel.{mode}");
        let (found, all) = of_the_kernel(dir, &case)?;
        said += &format!("{case}: {found} of {all} operations\n");
    }

    for mode in MODES {
        said += &objects(dir, &format!("trampoline.objects.{mode}"))?;
    }
    for engine in ENGINES {
        let case = format!("{engine}.twins");
        let made = made(dir, &case, &["openat"])?;
        compare(&made, &logged(dir, &case, true)?).with_context(|| case.clone())?;
        said += &storm(dir, &format!("{engine}.storm"))?;
    }

    Ok(said.trim_end().to_string())
}

/// For operations whose calls are watched, too, the objects are those that the kernel used: even an object that
/// was removed before the daemon could read it has its inode.
fn objects(dir: &Path, case: &str) -> Result<String> {
    let made = made(dir, case, &OF_OBJECTS)?;
    compare(&made, &logged(dir, case, true)?).with_context(|| case.to_owned())?;
    let text = read(dir, &format!("{case}.log"))?;
    let serial = |line: &str| {
        let (_, rest) = line.split_once("audit(")?;
        Some(rest.split_once(')')?.0.to_owned())
    };
    let of_type = |kind: &'static str| text.lines().filter(move |line| line.starts_with(kind));
    let succeeded: HashSet<Option<String>> = of_type("type=URINGOP ")
        .filter(|line| field(line, "success") == "yes")
        .map(serial)
        .collect();
    let items: Vec<&str> = of_type("type=PATH ")
        .filter(|line| succeeded.contains(&serial(line)))
        .collect();

    for nametype in ["DELETE", "CREATE"] {
        let of_type = |line: &&&str| field(line, "nametype") == nametype;
        let all: Vec<&&str> = items.iter().filter(of_type).collect();
        ensure!(!all.is_empty(), "{case}: no PATH record of type {nametype}");
        let nameless = all.iter().find(|line| field(line, "inode").is_empty());
        if let Some(line) = nameless {
            bail!("{case}: an object without inode: {line}");
        }
    }

    Ok(format!(
        "{case}: {} of {} operations, {} objects by inode\n",
        made.len(),
        made.len(),
        items.len()
    ))
}

/// Rings whose operations are linked, cancelled, carried out by workers, or in flight when the ring is closed:
/// each submitted operation must be in the log once, with its result.
fn storm(dir: &Path, case: &str) -> Result<String> {
    let truth = read(dir, &format!("{case}.truth"))?;
    let made = truth.trim().strip_prefix("openat\t");
    let made: usize = made
        .with_context(|| format!("{case}.truth: {truth}"))?
        .parse()?;
    let logged = logged(dir, case, true)?;
    ensure!(
        logged.len() == made,
        "{case}: {made} operations made, {} logged",
        logged.len()
    );
    let of = |path: &str, results: &[&str]| {
        let ours = logged.iter().filter(|op| op.objects[..] == [path]);
        let right = ours.filter(|op| results.contains(&op.result.as_str()));
        right.count()
    };

    // ENOENT, or ECANCELED if the ring is closed first; ECANCELED for the operation linked to it.
    let results = [
        of("/nowhere/at/all", &["-2", "-125"]),
        of("/dev/null", &["-125"]),
    ];
    ensure!(
        results == [made / 3; 2],
        "{case}: {results:?} of {} each have the right name and result",
        made / 3
    );

    Ok(format!("{case}: {made} of {made} operations\n"))
}

/// Number of operations that the kernel's audit recorded, and the number of all; an error if the
/// audited operations are not those that `abi` lists. The kernel does not know the names of files
/// that a ring opens (`name=(null)`), and records a second attempt as another event.
fn of_the_kernel(dir: &Path, case: &str) -> Result<(usize, usize)> {
    let made = made(dir, case, &NAMES)?;
    let logged = logged(dir, case, false)?;
    let mut all = 0;

    for name in NAMES {
        let count = |ops: &[Operation]| ops.iter().filter(|op| op.name == name).count();
        let number = abi::uring_op_number(name).context("an operation of the table")?;
        let (wanted, found) = (count(&made), count(&logged));
        if abi::uring_op_is_audited(number) {
            ensure!(
                found >= wanted,
                "{case}: {found} of {wanted} {name} in the kernel's log"
            );
        } else {
            ensure!(
                found == 0,
                "{case}: this kernel audits {name}, which abi::uring_op_is_audited() denies"
            );
        }
        all += found.min(wanted);
    }

    Ok((all, made.len()))
}

fn compare(made: &[Operation], logged: &[Operation]) -> Result<()> {
    ensure!(!made.is_empty(), "the workload made nothing");
    for (at, op) in made.iter().enumerate() {
        ensure!(
            logged.get(at) == Some(op),
            "operation {at}: made {op:?}, logged {:?}",
            logged.get(at)
        );
    }

    ensure!(
        logged.len() == made.len(),
        "one that was not made: {:?}",
        logged.get(made.len())
    );
    Ok(())
}

/// The workload's lines `MODE PID NAME RESULT OBJECTS` whose name is among `names`.
fn made(dir: &Path, case: &str, names: &[&str]) -> Result<Vec<Operation>> {
    let text = read(dir, &format!("{case}.truth"))?;
    let mut made = Vec::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, pid, name, result, objects] = columns[..] else {
            bail!("{case}.truth: expected five columns: {line}");
        };
        if !names.contains(&name) {
            continue;
        }
        let objects: Vec<String> = objects.split(' ').map(str::to_owned).collect();
        let is_missing = name == "unlinkat" && result.starts_with('-');
        made.push(Operation {
            pid: pid.to_owned(),
            name: name.to_owned(),
            result: result.to_owned(),
            objects: match objects[..] {
                _ if is_missing => Vec::new(),
                [ref none] if none == "-" => Vec::new(),
                _ => objects,
            },
        });
    }

    Ok(made)
}

/// The operations in a log, in order. With `has_auid` each must have the expected auid.
fn logged(dir: &Path, case: &str, has_auid: bool) -> Result<Vec<Operation>> {
    let text = read(dir, &format!("{case}.log"))?;
    let mut events: Vec<(&str, Operation)> = Vec::new();
    let mut at: HashMap<&str, usize> = HashMap::new();

    for line in text.lines() {
        let Some((head, serial)) = line
            .split_once(" msg=audit(")
            .and_then(|(head, rest)| Some((head, rest.split_once("):")?.0)))
        else {
            bail!("{case}.log: no record: {line}");
        };
        let field = |name: &str| field(line, name);
        match head.trim_start_matches("type=") {
            "URINGOP" => {
                let number = field("uring_op").parse().context("uring_op")?;
                if has_auid {
                    ensure!(field("auid") == AUID, "{case}.log: another auid: {line}");
                }
                at.insert(serial, events.len());
                let operation = Operation {
                    pid: field("pid").to_owned(),
                    name: abi::uring_op_name(number).unwrap_or("unknown").to_owned(),
                    result: field("exit").to_owned(),
                    objects: Vec::new(),
                };
                events.push((serial, operation));
            }
            "PATH" if field("nametype") != "PARENT" => {
                if let Some(at) = at.get(serial) {
                    let name = field("name").trim_matches('"').to_owned();
                    let objects = &mut events[*at].1.objects;
                    if name != "(null)" && objects.last() != Some(&name) {
                        objects.push(name);
                    }
                }
            }
            "SOCKADDR" => {
                if let Some(at) = at.get(serial) {
                    events[*at].1.objects.push(field("saddr").to_owned());
                }
            }
            _ => {}
        }
    }

    let mut operations: Vec<Operation> = events.into_iter().map(|(_, op)| op).collect();
    for op in &mut operations {
        if op.name != "connect" && op.objects.iter().any(|object| !object.contains('/')) {
            op.objects.retain(|object| object.contains('/'));
        }
        if op.name == "unlinkat" && op.result.starts_with('-') {
            op.objects.clear();
        }
    }

    Ok(operations)
}

fn read(dir: &Path, name: &str) -> Result<String> {
    let path = dir.join(name);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// The value of ` name=`; empty if the record does not have it.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let found = line
        .split(' ')
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_default()
}
