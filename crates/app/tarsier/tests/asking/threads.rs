//! Answers do not depend on threads, nor on the form of the log. They are those of a slow reader that is written here.

use crate::made::{output, report, search};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Pseudo-random numbers of a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// An event: second, milliseconds, serial number and the lines of its records.
struct Made {
    order: (u64, u64, u64),
    pid: u64,
    has_key: bool,
    is_failed: bool,
    exe: &'static str,
    lines: Vec<String>,
}

/// Events of a log.
const EVENTS: u64 = 1_500;
const EXES: [&str; 4] = ["/usr/bin/cat", "/usr/bin/ls", "/usr/sbin/sshd", "/bin/sh"];

/// Events whose times go up, each on one of two nodes.
fn events(numbers: &mut Numbers, count: u64) -> Vec<Made> {
    let mut ms = 1_700_000_000_000;
    let event = |serial: u64| {
        ms += numbers.below(40);
        let node = ["web1", "db1"][numbers.below(2) as usize];
        let (pid, exe) = (300 + numbers.below(50), EXES[numbers.below(4) as usize]);
        let (has_key, is_failed) = (numbers.below(20) == 0, numbers.below(5) == 0);
        let stamp = format!("msg=audit({}.{:03}:{serial})", ms / 1000, ms % 1000);
        let head = |kind: &str| format!("node={node} type={kind} {stamp}: ");
        let key = if has_key { "\"needle\"" } else { "(null)" };
        let (success, exit) = if is_failed { ("no", -13) } else { ("yes", 0) };
        let mut lines = vec![format!(
            "{}arch=c000003e syscall=257 success={success} exit={exit} a0=1 a1=2 a2=0 a3=0 items=1 ppid=1 pid={pid} \
             auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses=3 comm=\"x\" \
             exe=\"{exe}\" key={key}\n",
            head("SYSCALL")
        )];
        if numbers.below(2) == 0 {
            lines.push(format!("{}cwd=\"/srv\"\n", head("CWD")));
            let inode = numbers.below(1000);
            lines.push(format!(
                "{}item=0 name=\"f{inode}\" inode={inode} nametype=NORMAL\n",
                head("PATH")
            ));
        }
        lines.push(format!("{}proctitle=\"x\"\n", head("PROCTITLE")));
        Made {
            order: (ms / 1000, ms % 1000, serial),
            pid,
            has_key,
            is_failed,
            exe,
            lines,
        }
    };
    (1..=count).map(event).collect()
}

/// The events in another order: each comes up to `late_ms` later than its time says.
fn shuffled(numbers: &mut Numbers, events: &[Made], late_ms: u64) -> Vec<usize> {
    let mut order: Vec<(u64, usize)> = events
        .iter()
        .enumerate()
        .map(|(at, event)| {
            let ms = event.order.0 * 1000 + event.order.1;
            (
                ms + if late_ms > 0 {
                    numbers.below(late_ms)
                } else {
                    0
                },
                at,
            )
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

fn compressed(program: &str, path: &Path, into: &Path) -> bool {
    let Ok(file) = fs::File::create(into) else {
        return false;
    };
    let made = Command::new(program)
        .arg("-c")
        .arg(path)
        .stdout(file)
        .stderr(Stdio::null())
        .status();
    made.is_ok_and(|status| status.success())
}

/// Serial numbers of raw output, each once, sorted.
fn serials(raw: &[u8]) -> Vec<u64> {
    let raw = String::from_utf8_lossy(raw);
    let serial = |line: &str| line.split_once("):")?.0.rsplit_once(':')?.1.parse().ok();
    let mut serials: Vec<u64> = raw.lines().filter_map(serial).collect();
    serials.dedup();
    serials.sort_unstable();
    serials
}

/// The forms of a log in a directory of their own: each path is the whole log.
fn forms(dir: &Path, text: &[String]) -> Vec<String> {
    let whole = dir.join("whole.log");
    fs::write(&whole, text.concat()).expect("written");
    let mut forms = vec![whole.clone()];
    for (program, name) in [("gzip", "log.gz"), ("zstd", "log.zst"), ("xz", "log.xz")] {
        let path = dir.join(name);
        if compressed(program, &whole, &path) {
            forms.push(path)
        } else {
            println!("skipped: logs of {program}: no {program}(1)")
        }
    }
    let set = dir.join("set");
    fs::create_dir(&set).expect("made");
    let third = text.len() / 3 + 1;
    for (part, name) in text
        .chunks(third)
        .zip(["audit.log.2", "audit.log.1", "audit.log"])
    {
        fs::write(set.join(name), part.concat()).expect("written");
    }
    forms.push(set);
    forms
        .iter()
        .map(|path| path.display().to_string())
        .collect()
}

/// A log in all forms, and its events.
struct Case {
    _dir: TempDir,
    forms: Vec<String>,
    events: Vec<Made>,
    name: String,
}

fn case(seed: u64, late_ms: u64) -> Case {
    let mut numbers = Numbers(seed * 0x9e37_79b9);
    let events = events(&mut numbers, EVENTS);
    let order = shuffled(&mut numbers, &events, late_ms);
    let text: Vec<String> = order.iter().map(|at| events[*at].lines.concat()).collect();
    let dir = TempDir::new().expect("a directory");
    Case {
        forms: forms(dir.path(), &text),
        _dir: dir,
        events,
        name: format!("seed {seed}, {late_ms} ms late"),
    }
}

fn cases() -> Vec<Case> {
    let is_long = std::env::var_os("TARSIER_LONG_TESTS").is_some();
    let seeds = 1..=if is_long { 20 } else { 1 };
    seeds
        .flat_map(|seed| [0, 1_000, 10_000].map(|late_ms| case(seed, late_ms)))
        .collect()
}

impl Case {
    /// The output of `make` with each form of the log and with few and many threads, which is the same for all.
    fn output(&self, make: impl Fn(&str) -> Command) -> Vec<u8> {
        let mut first: Option<Vec<u8>> = None;
        for form in &self.forms {
            for threads in ["1", "16"] {
                let mut command = make(form);
                let text = output(command.env("TARSIER_THREADS", threads)).stdout;
                let first = first.get_or_insert_with(|| text.clone());
                assert!(*first == text, "{}: {command:?}", self.name);
            }
        }
        first.unwrap_or_default()
    }

    fn serials(&self, is_it: impl Fn(&Made) -> bool) -> Vec<u64> {
        let its = self.events.iter().filter(|event| is_it(event));
        let mut serials: Vec<u64> = its.map(|event| event.order.2).collect();
        serials.sort_unstable();
        serials
    }
}

/// Whether an event is the answer to a question.
type IsIt = fn(&Made) -> bool;

#[test]
fn a_slow_reader_finds_the_same_whatever_the_form_and_the_threads() {
    let questions: [(&str, IsIt); 7] = [
        ("-k needle", |event| event.has_key),
        ("-k nothing-has-this", |_| false),
        ("-p 321", |event| event.pid == 321),
        ("-sv no", |event| event.is_failed),
        ("-x /usr/bin/ls -sv yes", |event| {
            event.exe == EXES[1] && !event.is_failed
        }),
        ("-n web1", |event| event.lines[0].starts_with("node=web1")),
        ("-f f7", |event| event.lines.concat().contains("name=\"f7")),
    ];
    for case in cases() {
        for (question, is_it) in questions {
            let words: Vec<&str> = question.split_whitespace().collect();
            let raw = case.output(|form| search(&[&["-if", form, "-r"], &words[..]].concat()));
            assert_eq!(
                serials(&raw),
                case.serials(is_it),
                "{question}, {}",
                case.name
            );
        }
    }
}

#[test]
fn reports_and_formats_are_the_same_whatever_the_form_and_the_threads() {
    for case in cases() {
        let of = |question: &str| {
            let words: Vec<&str> = question.split_whitespace().collect();
            let text = case.output(|form| report(&[&["-if", form], &words[..]].concat()));
            String::from_utf8(text).expect("text")
        };
        let main = of("");
        assert!(
            main.contains(&format!("Number of events: {EVENTS}\n")),
            "{main}"
        );
        let mut by_exe: BTreeMap<&str, u64> = BTreeMap::new();
        case.events
            .iter()
            .for_each(|event| *by_exe.entry(event.exe).or_default() += 1);
        let counted = of("-x --summary");
        for (exe, hits) in by_exe {
            assert!(counted.contains(&format!("{hits}  {exe}\n")), "{counted}");
        }
        for question in [
            "-f --summary",
            "-p",
            "-e",
            "-k",
            "--top exe --by pid",
            "--changes",
        ] {
            of(question);
        }
        for format in ["csv", "text", "jsonl", "interpret"] {
            case.output(|form| search(&["-if", form, "--format", format, "-sv", "no"]));
        }
    }
}
