//! Questions, each as the options of a search and as a condition on what the records of an event say.

use super::Told;

/// A question.
pub(super) struct Question {
    pub(super) words: Vec<String>,
    pub(super) is_asked_for: Box<dyn Fn(&Told) -> bool>,
}

fn question(words: &str, is_asked_for: impl Fn(&Told) -> bool + 'static) -> Question {
    Question {
        words: words
            .split(' ')
            .map(|word| word.replace('~', " "))
            .collect(),
        is_asked_for: Box::new(is_asked_for),
    }
}

/// A condition on any field of these names.
fn field(
    words: String,
    names: &'static [&'static str],
    is_it: impl Fn(&str) -> bool + 'static,
) -> Question {
    question(&words, move |event| event.has(names, &is_it))
}

const USERS: [&str; 3] = ["uid", "euid", "auid"];

pub(super) fn all() -> Vec<Question> {
    [texts(), numbers(), calls(), kinds_and_times(), together()]
        .into_iter()
        .flatten()
        .collect()
}

fn texts() -> Vec<Question> {
    let mut all = Vec::new();
    for (option, names, values) in [
        (
            "-k",
            &["key"][..],
            &["identity", "pass", "exec", "none"][..],
        ),
        ("-c", &["comm"], &["cat", "cron~job", "sh", "none"]),
        ("-x", &["exe"], &["/usr/bin/cat", "sbin", "cron", "systemd"]),
        (
            "-f",
            &["name", "cwd"],
            &["/etc/passwd", "a~b", "notes", "/home"],
        ),
        (
            "-hn",
            &["hostname", "addr"],
            &["far.example", "203.0.113.9", "far"],
        ),
        ("-tm", &["tty", "terminal"], &["pts1", "ssh", "pts"]),
    ] {
        for value in values {
            let text = value.replace('~', " ");
            let is_file = option == "-f";
            all.push(question(&format!("{option} {value}"), move |event| {
                // What AVC names is no path, but a file all the same.
                let is_of = |names: &[&str]| event.has(names, |value| value.contains(&text));
                if is_file {
                    is_of(&["name", "cwd"])
                } else {
                    is_of(names)
                }
            }));
        }
    }
    for (option, name, value) in [
        ("-k", "key", "exec"),
        ("-c", "comm", "cat"),
        ("-x", "exe", "/bin/bash"),
    ] {
        let names: &'static [&'static str] = match name {
            "key" => &["key"],
            "comm" => &["comm"],
            _ => &["exe"],
        };
        all.push(field(format!("-w {option} {value}"), names, move |own| {
            own == value
        }));
    }
    all
}

fn numbers() -> Vec<Question> {
    let mut all = Vec::new();
    let mut add = |option: &str, names: &'static [&'static str], value: &'static str| {
        all.push(field(format!("{option} {value}"), names, move |own| {
            own == value
        }));
    };
    for pid in ["300", "303", "1", "999"] {
        add("-p", &["pid"], pid);
    }
    add("-pp", &["ppid"], "2");
    add("-pp", &["ppid"], "4");
    add("-ui", &["uid"], "0");
    add("-ui", &["uid"], "33");
    add("-ue", &["euid"], "1000");
    add("-ul", &["auid"], "1001");
    add("-ul", &["auid"], "4294967295");
    add("-ua", &USERS, "1000");
    add("-ua", &USERS, "33");
    add("-gi", &["gid"], "1000");
    add("-ge", &["egid"], "33");
    add("-ga", &["gid", "egid"], "0");
    add("--session", &["ses"], "2");
    add("--session", &["ses"], "3");
    all
}

fn calls() -> Vec<Question> {
    let of_call = |words: &str, name: &'static str, value: &'static str| {
        question(words, move |event| event.of("SYSCALL", name) == Some(value))
    };
    let succeeds = |event: &Told| {
        let call = event
            .of("SYSCALL", "success")
            .map(|success| success == "yes");
        let said = || {
            let mut fields = event.records.iter().flatten();
            let field = fields.find(|(name, _)| name == "res")?;
            Some(["1", "success", "yes"].contains(&field.1.as_str()))
        };
        call.or_else(said)
    };
    vec![
        of_call("--arch x86_64 -sc openat", "syscall", "257"),
        of_call("--arch x86_64 -sc execve", "syscall", "59"),
        of_call("-sc 87", "syscall", "87"),
        of_call("-e -13", "exit", "-13"),
        of_call("-e -ENOENT", "exit", "-2"),
        of_call("-e 3", "exit", "3"),
        question("-sv yes", move |event| succeeds(event) == Some(true)),
        question("-sv no", move |event| succeeds(event) == Some(false)),
    ]
}

fn kinds_and_times() -> Vec<Question> {
    let mut all = Vec::new();
    for kind in ["SYSCALL", "USER_LOGIN", "AVC", "CONFIG_CHANGE", "PATH"] {
        all.push(question(&format!("-m {kind}"), move |event| {
            event.kinds.contains(&kind)
        }));
    }
    all.push(question("-m USER_LOGIN,USER_AUTH", |event| {
        event
            .kinds
            .iter()
            .any(|kind| ["USER_LOGIN", "USER_AUTH"].contains(kind))
    }));
    for host in ["web1", "db1"] {
        all.push(question(&format!("-n {host}"), move |event| {
            event.id.0 == host
        }));
    }
    all.push(question("-a 120", |event| event.id.2 == 120));
    all.push(question("-ts 1700000010", |event| {
        event.id.1 / 1000 >= 1_700_000_010
    }));
    all.push(question("-te 1700000015", |event| {
        event.id.1 / 1000 <= 1_700_000_015
    }));
    all.push(question(
        "--since 2023-11-14T22:13:30Z --until 1700000020",
        |event| (1_700_000_010..=1_700_000_020).contains(&(event.id.1 / 1000)),
    ));
    all
}

fn together() -> Vec<Question> {
    vec![
        question("-ui 0 -p 303", |event| {
            event.has(&["uid"], |uid| uid == "0") && event.has(&["pid"], |pid| pid == "303")
        }),
        question("-k exec -sv no -sc 257", |event| {
            event.has(&["key"], |key| key.contains("exec"))
                && event.of("SYSCALL", "success") == Some("no")
                && event.of("SYSCALL", "syscall") == Some("257")
        }),
        question("-n web1 -m SYSCALL -x cat", |event| {
            event.id.0 == "web1"
                && event.kinds.contains(&"SYSCALL")
                && event.has(&["exe"], |exe| exe.contains("cat"))
        }),
        question("-f shadow -ul 0", |event| {
            event.has(&["name", "cwd"], |name| name.contains("shadow"))
                && event.has(&["auid"], |auid| auid == "0")
        }),
    ]
}
