//! The programs read the names of cgroups as crates/core/identity does.

use capture::{CaptureOptions, EbpfEngine};
use identity::{Place, Workload};
use plan::{Capabilities, Identities, Plan, WorkloadClass, WorkloadNames};
use rules::{parse_line_as, Command, Dialect, Rule, Source, SystemHost};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Paths as systemd and container runtimes make them; those after a tab say what they mean.
const PATHS: &str = include_str!("../../../core/identity/tests/paths.txt");

/// A cgroup that counts as the root of the hierarchy; removed at the end, with all below.
struct Root(PathBuf);

impl Root {
    fn new() -> Option<Root> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the mounts");
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let place = mounts.find_map(|mut line| {
            let (place, kind) = (line.nth(1)?, line.next()?);
            (kind == "cgroup2").then(|| place.to_owned())
        });
        let name = format!("tarsier-classes-{}", std::process::id());
        let path = Path::new(&place.unwrap_or_default()).join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => Some(Root(path)),
            Err(error) => {
                println!("skipped: classes of cgroups: no cgroup2 to change: {error}");
                None
            }
        }
    }

    fn id(&self) -> u64 {
        id_of(&self.0)
    }

    /// Makes the cgroups of a path that do not exist yet, some of which then belong to a user if `are_given`. Returns the
    /// id of the last, and how much of the path root has named; `None` if the kernel refuses the name.
    fn make(&self, path: &[u8], are_given: bool) -> Option<(u64, usize)> {
        let mut at = self.0.clone();
        let (mut end, mut of_root) = (0, 0);
        for name in path.split(|&byte| byte == b'/').filter(|n| !n.is_empty()) {
            end += 1 + name.len();
            let uid = std::fs::metadata(&at).expect("a cgroup").uid();
            if uid == 0 && of_root + 1 + name.len() == end {
                of_root = end;
            }
            at.push(std::ffi::OsStr::from_bytes(name));
            if !at.is_dir() {
                std::fs::create_dir(&at).ok()?;
                if are_given && name.len() % 8 == 0 {
                    std::os::unix::fs::chown(&at, Some(1000), None).expect("its owner");
                }
            }
        }
        let is_all = of_root == end;
        Some((id_of(&at), if is_all { path.len() } else { of_root }))
    }

    /// Removes all cgroups below.
    fn empty(&self) {
        let mut dirs = vec![self.0.clone()];
        let mut at = 0;
        while let Some(dir) = dirs.get(at) {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
            dirs.extend(below);
            at += 1;
        }
        for dir in dirs.iter().skip(1).rev() {
            let _ = std::fs::remove_dir(dir);
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.empty();
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn id_of(dir: &Path) -> u64 {
    std::fs::metadata(dir).expect("a cgroup").ino()
}

fn real_paths() -> impl Iterator<Item = &'static [u8]> {
    let lines = PATHS.lines().filter(|line| line.starts_with('/'));
    lines.map(str::as_bytes)
}

fn rule(field: &str, name: &[u8]) -> Rule {
    let start = format!("-a always,exit -F arch=b64 -S getpid -F {field}=");
    let escaped = String::from_utf8_lossy(name).replace('\\', "\\\\");
    let line = format!("{start}{}", escaped.replace(' ', "\\ "));
    let source = Source::default();
    let parsed = parse_line_as(Dialect::Tarsier, line.as_bytes(), &source, &SystemHost);
    match parsed.commands.into_iter().next() {
        Some(Command::Append(rule)) => rule,
        other => panic!("{line}: {other:?} {:?}", parsed.error),
    }
}

/// Rules that name half of what is in the paths.
fn rules_on<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Vec<Rule> {
    let mut names = BTreeSet::new();
    for path in paths {
        let workload = Workload::of(path);
        let container = workload.container.map(|container| container.id);
        let found = [
            ("unit", workload.unit),
            ("slice", workload.slice),
            ("container", container),
        ];
        for (field, name) in found {
            names.extend(name.map(|name| (field, name.into_owned())));
        }
    }
    let named = names.iter().step_by(2);
    named.map(|(field, name)| rule(field, name)).collect()
}

fn plan_of(rules: &[Rule]) -> Plan {
    let capabilities = Capabilities::assumed(abi::Arch::native());
    Plan::new(rules, &capabilities, &Identities::default(), 1).expect("the rules fit")
}

/// Whether the programs leave a name to the daemon: that of a machine with escapes.
fn is_left(path: &[u8]) -> bool {
    let mut names = path.split(|&byte| byte == b'/');
    names.any(|name| {
        let name = name.strip_prefix(b"_").unwrap_or(name);
        let starts = [&b"machine-"[..], b"systemd-nspawn@"];
        name.contains(&b'\\') && starts.iter().any(|start| name.starts_with(start))
    })
}

/// Compares the class of a new cgroup. Returns whether the programs know it.
fn is_as_by_path(
    engine: &EbpfEngine,
    root: &Root,
    names: &WorkloadNames,
    path: &[u8],
    are_given: bool,
) -> Option<bool> {
    let (cgroup, of_root) = root.make(path, are_given)?;
    let shown = String::from_utf8_lossy(path);
    let expected = names.class(&Place::of(path, of_root));
    let class = engine.class(cgroup);
    match class {
        Some((epoch, class)) => {
            assert_eq!(Some(class), expected, "{shown}: {of_root}");
            assert_eq!(epoch, names.epoch(), "{shown}");
        }
        None => assert!(expected.is_none() || is_left(path), "{shown}: not known"),
    }
    Some(class.is_some())
}

/// The place of a path that root has named.
fn of_root(path: &[u8]) -> Place<'_> {
    Place::of(path, path.len())
}

/// An engine for which the cgroup counts as the root of the hierarchy.
fn engine_on(root: &Root, plan: &Plan) -> EbpfEngine {
    let options = CaptureOptions::with_ring_bytes(1 << 22);
    let engine = EbpfEngine::start(plan, &options, std::process::id()).expect("it starts");
    let class = WorkloadClass::default();
    let told = engine.classify(root.id(), plan.workloads.epoch(), &class);
    told.expect("the programs are told");
    engine
}

#[test]
fn the_programs_read_real_paths_as_the_daemon_does() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let Some(root) = Root::new() else {
        return;
    };
    let rules = rules_on(real_paths());
    let plan = plan_of(&rules);
    assert!(plan.workloads.len() > 15, "{} names", plan.workloads.len());
    let engine = engine_on(&root, &plan);
    let known = real_paths();
    let known =
        known.filter_map(|path| is_as_by_path(&engine, &root, &plan.workloads, path, false));
    let known: Vec<bool> = known.collect();
    let count = known.iter().filter(|known| **known).count();
    // Containers in others are left to the daemon.
    assert!(known.len() > 50 && known.len() - count < 12, "{known:?}");
}

/// Parts of names that lead into every branch.
const PIECES: [&str; 24] = [
    "system.slice",
    "a-b.slice",
    ".slice",
    "a.service",
    "user@1000.service",
    "x y.service",
    "init.scope",
    "_",
    "lxc",
    "lxc.payload.",
    "lxc.payload.one",
    "machine-",
    "machine-m.scope",
    "machine-qemu-1.scope",
    "machine-a\\x2db.scope",
    "systemd-nspawn@n.service",
    "systemd-nspawn@.service",
    "supervisor",
    "payload",
    "conmon-1e84f70d4d5b0d5e0d9d4fa6cb21a4ab1cb8d1d1bd4d9f2c61d7eb9d3a0b7c55",
    "x:conmon:1e84f70d4d5b0d5e0d9d4fa6cb21a4ab1cb8d1d1bd4d9f2c61d7eb9d3a0b7c55",
    "s.slice:docker:679F3691f7f1b20198548be43b86f265f9fff9be0ac4c973638f5ee89decbca9",
    "-679f3691f7f1b20198548be43b86f265f9fff9be0ac4c973638f5ee89decbca9.scope",
    "679f3691f7f1b20198548be43b86f265f9fff9be0ac4c973638f5ee89decbca9",
];

/// Random names: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn name(&mut self) -> String {
        let mut name = PIECES[self.below(PIECES.len())].to_owned();
        match self.below(8) {
            0 => name.insert(0, '_'),
            1 => name.push_str(PIECES[self.below(PIECES.len())]),
            2 => name.truncate(name.len() - 1),
            3 => name = format!("{}{name}", "n".repeat(255_usize.saturating_sub(name.len()))),
            _ => {}
        }
        name
    }

    fn path(&mut self) -> Vec<u8> {
        let names: Vec<String> = (0..5).map(|_| self.name()).collect();
        format!("/{}", names.join("/")).into_bytes()
    }
}

#[test]
fn the_programs_read_any_names_as_the_daemon_does() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let Some(root) = Root::new() else {
        return;
    };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let paths: Vec<Vec<u8>> = (0..testkit::times(400, 10_000))
        .map(|_| random.path())
        .collect();
    let plan = plan_of(&rules_on(paths.iter().map(Vec::as_slice).take(300)));
    let engine = engine_on(&root, &plan);
    let mut known = 0;
    for (chunk, number) in paths.chunks(100).zip(0..) {
        let are_given = number % 2 == 1;
        for path in chunk {
            // Each cgroup on the way is one more case.
            let ends = (1..=path.len()).filter(|&at| path.get(at).is_none_or(|b| *b == b'/'));
            for end in ends {
                let is_known =
                    is_as_by_path(&engine, &root, &plan.workloads, &path[..end], are_given);
                known += usize::from(is_known == Some(true));
            }
        }
        root.empty();
    }
    assert!(known > paths.len() / 2, "{known} of {} paths", paths.len());
}

#[test]
fn a_class_ends_with_its_cgroup_and_with_the_names_it_is_made_of() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let Some(root) = Root::new() else {
        return;
    };
    let rules = [rule("unit", b"a.service")];
    let plan = plan_of(&rules);
    let mut engine = engine_on(&root, &plan);
    let cgroup = root
        .make(b"/system.slice/a.service", false)
        .expect("a cgroup")
        .0;
    let slice = root.make(b"/system.slice", false).expect("a cgroup").0;
    let class = engine.class(cgroup).expect("a class");
    assert_eq!(
        class.1,
        plan.workloads
            .class(&of_root(b"/system.slice/a.service"))
            .expect("a class")
    );
    std::fs::remove_dir(root.0.join("system.slice/a.service")).expect("it is empty");
    assert_eq!(engine.class(cgroup), None);
    // Below a cgroup whose class is of other names, nothing is known.
    let other = plan_of(&[rule("unit", b"b.service")]);
    engine.replace(&other).expect("other rules");
    let below = root
        .make(b"/system.slice/b.service", false)
        .expect("a cgroup")
        .0;
    assert_eq!(engine.class(below), None);
    let class = other
        .workloads
        .class(&of_root(b"/system.slice"))
        .expect("a class");
    let told = engine.classify(slice, other.workloads.epoch(), &class);
    told.expect("the programs are told");
    let again = root
        .make(b"/system.slice/b.service/c", false)
        .and_then(|(id, _)| engine.class(id));
    assert_eq!(again, None);
    std::fs::remove_dir(root.0.join("system.slice/b.service/c")).expect("it is empty");
    std::fs::remove_dir(root.0.join("system.slice/b.service")).expect("it is empty");
    let below = root
        .make(b"/system.slice/b.service", false)
        .expect("a cgroup")
        .0;
    let class = other
        .workloads
        .class(&of_root(b"/system.slice/b.service"))
        .expect("a class");
    assert_eq!(engine.class(below), Some((other.workloads.epoch(), class)));
    assert_ne!(class.unit, 0);
}
