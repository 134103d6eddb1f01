//! Runs an engine on a kernel that lacks something, in a separate process, since each process looks up only once
//! what the kernel has.

use capture::{CaptureOptions, EbpfEngine};
use plan::{Identities, Plan};
use rules::{Command, Rule, Source, StaticHost};
use std::path::Path;
use std::process::Stdio;

/// Environment variable with the file of the kernel's types.
const TYPES: &str = "TARSIER_TEST_TYPES";
const ENGINE: &str = "TARSIER_TEST_ENGINE";
/// First argument of the call to record; getppid(2) has no arguments, so it is free.
const MARK: u64 = 0x7a52;

/// Process that is not audited.
const INIT: u32 = 1;

/// No process has this login uid: the hooks are armed but select nothing.
const RULES: [&str; 7] = [
    "-a always,exit -F arch=b64 -S getppid -F a0=0x7a52 -k mark",
    "-a always,exit -F arch=b64 -S openat -F dir=/etc -F auid=77777 -k dir",
    "-a always,exit -F arch=b64 -S openat -F egid=77777 -F exe=/bin/true -k exe",
    "-a always,exit -F arch=b64 -S execve -F auid=77777 -k exec",
    "-a always,exit -F arch=b64 -S exit_group -F auid=77777 -k exit",
    "-a always,io_uring -S openat,connect -F auid=77777 -k uring",
    "-a never,task -F auid=77777",
];
/// Rules on calls whose objects have hooks, for the engine that has them; for the other it takes 70 ms to detach a
/// call's tracepoint.
const OBJECT_RULES: [&str; 3] = [
    "-a always,exit -F arch=b64 -S unlinkat,renameat2,mkdirat,setxattr -F auid=77777 -k files",
    "-a always,exit -F arch=b64 -S connect,sendto,accept4,kill,msgget,semget -F auid=77777 -k ipc",
    "-a always,exit -F arch=b64 -S clock_settime -F auid=77777 -k time",
];

/// The output of a child.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The gaps that the engine reports, and those without which it does not start, one line each.
    pub(crate) gaps: Vec<String>,
    pub(crate) essential: Vec<String>,
    /// Gaps that matter only to the other engine.
    pub(crate) others: Vec<String>,
    /// Reason why the engine does not start.
    pub(crate) refusal: Option<String>,
    /// Whether the marked call was recorded with its number and pid.
    pub(crate) is_recorded: bool,
    /// Number of the programs' links.
    pub(crate) links: usize,
    /// The complete output.
    pub(crate) text: String,
}

/// Starts an engine on a kernel with these types.
pub(crate) fn ask(types: &Path, engine: &str) -> Answer {
    let output = std::process::Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", "child_starts_an_engine", "--nocapture"])
        .env(TYPES, types)
        .env(ENGINE, engine)
        .stdin(Stdio::null())
        .output()
        .expect("this test runs again");
    let mut answer = Answer {
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        ..Answer::default()
    };
    answer.text += &String::from_utf8_lossy(&output.stderr);
    for line in answer.text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "gap" => answer.gaps.push(rest.to_owned()),
            "essential" => answer.essential.push(rest.to_owned()),
            "other" => answer.others.push(rest.to_owned()),
            "refused" => answer.refusal = Some(rest.to_owned()),
            "recorded" => answer.is_recorded = true,
            "links" => answer.links = rest.parse().unwrap_or_default(),
            _ => {}
        }
    }
    answer
}

/// The body of [`ask`]. Returns whether this process is such a child.
pub(crate) fn answer() -> bool {
    let (Some(types), Ok(engine)) = (std::env::var_os(TYPES), std::env::var(ENGINE)) else {
        return false;
    };
    println!();
    capture::kernel_btf::override_with(Path::new(&types));
    let is_trampoline = engine == "trampoline";
    let own = capture::probe::gaps(is_trampoline);
    for gap in capture::probe::gaps(true) {
        if !own.contains(&gap) {
            println!("other {gap}");
        }
    }
    let start = std::time::Instant::now();
    let plan = plan(is_trampoline);
    println!("planned in {:?}", start.elapsed());
    for gap in plan.platform.gaps.iter().filter(|gap| gap.essential) {
        println!("essential {gap}");
    }
    let start = std::time::Instant::now();
    let options = CaptureOptions::with_ring_bytes(1 << 20);
    match EbpfEngine::start(&plan, &options, INIT) {
        Err(error) => println!("refused {}", error.to_string().replace('\n', " ")),
        Ok(engine) => watch(engine),
    }
    println!("ended after {:?}", start.elapsed());
    true
}

fn watch(mut engine: EbpfEngine) {
    for gap in engine.gaps() {
        println!("gap {gap}");
    }
    println!("links {}", links());
    // SAFETY: getppid(2) looks at none of its arguments.
    unsafe { libc::syscall(libc::SYS_getppid, MARK, 0, 0, 0) };
    let mut is_recorded = false;
    engine.drain(u64::MAX, |_, frame| {
        if let Ok(event) = record::wire::Event::parse(frame) {
            let header = event.header();
            is_recorded |= i64::from(header.nr) == libc::SYS_getppid
                && header.args[0] == MARK
                && header.pid == std::process::id();
        }
        true
    });
    println!("{}", if is_recorded { "recorded" } else { "nothing" });
}

fn plan(trampoline: bool) -> Plan {
    let host = StaticHost::new(abi::Arch::native());
    let more = if trampoline { &OBJECT_RULES[..] } else { &[] };
    let rules: Vec<Rule> = RULES
        .iter()
        .chain(more)
        .map(
            |line| match rules::parse_line(line, &Source::default(), &host) {
                Ok(Some(Command::Append(rule))) => rule,
                other => panic!("{line}: {other:?}"),
            },
        )
        .collect();
    let capabilities = capture::probe::capabilities(trampoline);
    Plan::new(&rules, &capabilities, &Identities::default(), 1).expect("the rules fit")
}

/// Number of links that this process holds.
fn links() -> usize {
    let open = std::fs::read_dir("/proc/self/fdinfo").expect("/proc is there");
    let texts = open.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    texts.filter(|text| text.contains("link_id:")).count()
}
