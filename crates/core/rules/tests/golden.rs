//! Every call of auditctl 3.0.9 in `data/cli.golden`, recorded on Debian 12 (kernel 6.1): what it
//! accepts, what it prints, and what it lists afterwards.

use std::collections::BTreeMap;

use abi::Arch;
use rules::{
    parse_args, parse_text, Command, Dialect, ListStyle, PathKind, RuleSet, Source, StaticHost,
};

const GOLDEN: &str = include_str!("data/cli.golden");

/// Calls whose outcome does not depend on the rules, with the reason.
const NOT_DECIDED_HERE: [(&str, &str); 11] = [
    ("auditctl", "usage text"),
    ("auditctl -h", "usage text"),
    ("auditctl -v", "version text"),
    ("auditctl -s", "kernel status"),
    ("auditctl -s -i", "kernel status"),
    (
        "auditctl foo",
        "auditctl says nothing at all, this says what is wrong",
    ),
    ("auditctl -q /watch,/nodir", "the kernel looks the paths up"),
    ("auditctl -R /nonexist", "reading the file fails"),
    ("auditctl -R /watch", "reading the file fails"),
    ("auditctl -R /tmp/ww.rules", "reading the file is refused"),
    (
        "auditctl -a always,exit -S openat -F subj_user=root -F subj_role=x -F subj_sen=s0 \
         -F subj_clr=s0 -k subj",
        "the security module refuses the labels",
    ),
];

/// The virtual machine that the recording was made on.
fn host() -> StaticHost {
    let mut host = StaticHost::new(Arch::X86_64)
        .user("alice", 1000)
        .group("sudo", 27);
    host.other_paths = PathKind::Missing;
    let dirs = [
        "/",
        "/watch",
        "/watch/",
        "/watch/sub",
        "/bin",
        "/etc",
        "/watch/..",
        "/watch/../etc",
    ];
    let files = [
        "/watch/f1",
        "/watch/sp ace",
        "/bin/acts",
        "/bin/true",
        "/etc/passwd",
    ];
    for dir in dirs {
        host = host.path(dir, PathKind::Dir);
    }
    for file in files {
        host = host.path(file, PathKind::Other);
    }
    host
}

fn rules_files() -> BTreeMap<&'static str, String> {
    let bad =
        "## comment\n\n   # indented comment\n-D\n-a always,exit -F arch=b64 -S unlink -k one\n\
               -a bogus\n-a always,exit -F arch=b64 -S rmdir -k two\n";
    let escaped = "-w /watch/sp\\ ace -p wa -k sp\\ key\n\
                   -a always,exit -F arch=b64 -S rename   -F   key=tabs\n\
                   -w /watch/f1 -p wa # trailing comment\n";
    BTreeMap::from([
        ("/tmp/bad.rules", bad.to_owned()),
        ("/tmp/badc.rules", format!("-c\n{bad}")),
        ("/tmp/badi.rules", format!("-i\n{bad}")),
        ("/tmp/esc.rules", escaped.to_owned()),
    ])
}

/// One recorded call.
struct Call {
    text: String,
    output: String,
    status: u32,
}

fn calls() -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in GOLDEN.lines() {
        if let Some(text) = line.strip_prefix("$ ") {
            calls.push(Call {
                text: text.to_owned(),
                output: String::new(),
                status: 0,
            });
        } else if let Some(status) = line.strip_prefix("rc=") {
            calls.last_mut().unwrap().status = status.parse().unwrap();
        } else {
            let call = calls.last_mut().unwrap();
            call.output.push_str(line);
            call.output.push('\n');
        }
    }
    calls
}

/// Words after `auditctl`, double quotes resolved.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words.remove(0);
    words
}

/// A simulation of auditctl and the kernel.
struct Machine {
    host: StaticHost,
    set: RuleSet,
    output: String,
    status: u32,
}

impl Machine {
    fn call(&mut self, args: &[String]) {
        self.output.clear();
        self.status = 0;
        let source = Source {
            file: "command line".to_owned(),
            line: 0,
        };
        let parsed = parse_args(Dialect::V3, args, &source, &self.host);
        for warning in &parsed.warnings {
            self.say(&warning.message);
        }
        if let Some(error) = &parsed.error {
            self.say(&error.message);
            self.status = 255;
        }
        for command in parsed.commands {
            if let Err(error) = self.run(&source, command) {
                self.say(&error);
                self.status = 255;
            }
        }
    }

    fn run(&mut self, source: &Source, command: Command) -> Result<(), String> {
        match &command {
            Command::List {
                is_interpreted,
                key,
            } => {
                let style = ListStyle {
                    is_interpreted: *is_interpreted,
                    host: Arch::X86_64,
                    ..ListStyle::default()
                };
                self.output.push_str(&self.set.list(&style, key.as_deref()));
                return Ok(());
            }
            Command::ReadFile(path) => {
                let path = String::from_utf8(path.clone()).unwrap();
                self.read_file(&path);
                return Ok(());
            }
            _ => {}
        }
        let is_delete_all = matches!(command, Command::DeleteAll { .. });
        self.set
            .run(source, command)
            .map_err(|error| error.message)?;
        if is_delete_all && self.set.rules.is_empty() {
            self.say("No rules");
        }
        Ok(())
    }

    /// Reads a rules file. Like auditctl, and unlike [`RuleSet::build`], stops at the first error and
    /// keeps what came before it. Messages before the first rule is sent go to syslog.
    fn read_file(&mut self, path: &str) {
        let parsed = parse_text(Dialect::V3, path, &rules_files()[path], &self.host);
        let fatal = parsed.errors.iter().find(|error| !error.is_tolerated);
        let end = fatal.map_or(u32::MAX, |error| error.line());
        for (source, command) in parsed.commands {
            if source.line < end {
                self.run(&source, command).unwrap();
            }
        }
        let said: Vec<String> = parsed
            .errors
            .iter()
            .flat_map(|e| {
                [
                    e.message.clone(),
                    format!("There was an error in line {} of {path}", e.line()),
                ]
            })
            .collect();
        // In the recording, standard error comes before standard output.
        let listed = std::mem::take(&mut self.output);
        said.iter().for_each(|text| self.say(text));
        self.output.push_str(&listed);
        let is_failed = fatal.is_some() || (self.set.continues_on_error && !said.is_empty());
        self.status = u32::from(is_failed);
        self.set.ignores_errors = false;
        self.set.continues_on_error = false;
    }

    fn say(&mut self, text: &str) {
        self.output.push_str(text);
        self.output.push('\n');
    }
}

#[test]
fn every_recorded_call_of_auditctl_has_the_same_outcome() {
    let mut machine = Machine {
        host: host(),
        set: RuleSet::default(),
        output: String::new(),
        status: 0,
    };
    let mut differences = Vec::new();
    let (mut compared, mut skipped) = (0, 0);
    for call in calls() {
        if let Some((_, reason)) = NOT_DECIDED_HERE.iter().find(|row| row.0 == call.text) {
            println!("not compared: {}: {reason}", call.text);
            skipped += 1;
            continue;
        }
        machine.call(&shell_words(&call.text));
        compared += 1;
        if machine.output != call.output || machine.status != call.status {
            differences.push(format!(
                "$ {}\nauditctl, {}:\n{}here, {}:\n{}",
                call.text, call.status, call.output, machine.status, machine.output
            ));
        }
    }
    println!("{compared} calls compared, {skipped} not");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!((compared, skipped), (192, NOT_DECIDED_HERE.len()));
}
