//! Real programs and sockets as plugins.

use conf::plugins::{Format, Plugin, PluginKind};
use conf::{Config, OverflowAction, Plugins};
use journal::{OwnerAction, Runlevel};
use plugins::{Dispatcher, PluginState};
use privsep::spawn::Launcher;
use rustix::event::{poll, PollFd, Timespec};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn settings() -> Plugins {
    Config::unset().plugins
}

/// A plugin whose program is this shell script.
fn script(dir: &Path, name: &str, text: &str) -> Plugin {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).expect("its mode");
    Plugin {
        name: format!("{name}.conf"),
        kind: PluginKind::Program {
            path,
            args: Vec::new(),
        },
        format: Format::String,
    }
}

/// A plugin that writes what it gets to `NAME.out`.
fn writer(dir: &Path, name: &str) -> Plugin {
    let text = format!("exec cat >>{}", out(dir, name).display());
    script(dir, name, &text)
}

/// A plugin that never reads, and creates `NAME.out` when it runs.
fn sleeper(dir: &Path, name: &str) -> Plugin {
    let text = format!("echo >{}; exec sleep 1000", out(dir, name).display());
    script(dir, name, &text)
}

fn out(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.out"))
}

fn socket(dir: &Path, name: &str) -> (Plugin, PathBuf) {
    let path = dir.join(name);
    let plugin = Plugin {
        name: format!("{name}.conf"),
        kind: PluginKind::Socket {
            path: path.clone(),
            mode: Some(0o600),
        },
        format: Format::String,
    };
    (plugin, path)
}

/// `count` events, as RAW lines.
fn events(from: u32, count: u32) -> String {
    let event = |serial| {
        let stamp = format!("msg=audit(1.002:{serial}): ");
        format!("type=SYSCALL {stamp}syscall=39\ntype=PROCTITLE {stamp}proctitle=61\n")
    };
    (from..from + count).map(event).collect()
}

/// `count` events as plugins get them.
fn with_eoe(from: u32, count: u32) -> String {
    let event = |serial| events(serial, 1) + &format!("type=EOE msg=audit(1.002:{serial}):\n");
    (from..from + count).map(event).collect()
}

/// Runs the dispatcher as the daemon does, until `is_so` returns true.
fn run_until(dispatcher: &mut Dispatcher, what: &str, mut is_so: impl FnMut(&Dispatcher) -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        dispatcher.child_ended();
        if is_so(dispatcher) {
            return;
        }
        assert!(
            Instant::now() < end,
            "{what} did not happen: {:?}",
            dispatcher.states()
        );
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        dispatcher.poll_fds(&mut fds);
        // Tests get no SIGCHLD to wake them.
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 10_000_000,
        };
        poll(&mut fds, Some(&timeout)).expect("poll");
    }
}

fn state(dispatcher: &Dispatcher, name: &str) -> PluginState {
    let name = format!("{name}.conf");
    let mut states = dispatcher.states().into_iter();
    states
        .find(|state| state.name == name)
        .expect("a plugin of that name")
}

fn texts(actions: &[OwnerAction]) -> Vec<String> {
    actions.iter().map(ToString::to_string).collect()
}

#[test]
fn a_program_gets_every_event_and_the_end_of_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let plugins = vec![writer(dir.path(), "all")];
    let mut dispatcher = Dispatcher::start(Launcher::Here, plugins, &settings(), 0);
    dispatcher.push(events(1, 100).as_bytes(), 100);
    dispatcher.push(events(101, 1).as_bytes(), 101);
    dispatcher.release(None);
    let said = dispatcher.stop();
    assert_eq!(texts(&said), Vec::<String>::new());
    let got = std::fs::read_to_string(out(dir.path(), "all")).expect("its output");
    assert_eq!(got, with_eoe(1, 101));
}

#[test]
fn nothing_is_passed_on_before_it_is_durable() {
    let dir = tempfile::tempdir().expect("a directory");
    let plugins = vec![writer(dir.path(), "all")];
    let mut dispatcher = Dispatcher::start(Launcher::Here, plugins, &settings(), 0);
    dispatcher.push(events(1, 2).as_bytes(), 2);
    dispatcher.push(events(3, 2).as_bytes(), 4);
    for (durable, passed) in [(0, 0), (1, 0), (2, 6), (3, 6), (4, 12)] {
        dispatcher.release(Some(durable));
        assert_eq!(
            state(&dispatcher, "all").passed,
            passed,
            "{durable} durable"
        );
        assert_eq!(dispatcher.is_waiting(), durable < 4);
    }
    dispatcher.stop();
}

#[test]
fn a_program_that_does_not_read_delays_nobody_and_its_losses_are_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let plugins = vec![sleeper(dir.path(), "stuck"), writer(dir.path(), "well")];
    let mut dispatcher = Dispatcher::start(Launcher::Here, plugins, &settings(), 0);
    let mut made = 0;
    // More than socket buffers and queue can hold; the other plugin keeps up.
    while state(&dispatcher, "stuck").lost == 0 {
        dispatcher.push(events(made + 1, 100).as_bytes(), 0);
        made += 100;
        dispatcher.release(None);
        // Lines that are being sent are no longer queued.
        run_until(&mut dispatcher, "reading", |d| {
            state(d, "well").passed == u64::from(made) * 3
        });
    }
    assert_eq!(state(&dispatcher, "well").lost, 0);
    let stuck = state(&dispatcher, "stuck");
    assert!(stuck.is_running && stuck.queued <= 2000, "{stuck:?}");
    let said = texts(&dispatcher.take_actions());
    assert!(
        said.iter()
            .any(|text| text.contains("plugin stuck.conf: its queue of 2000")),
        "{said:?}"
    );
    let said = texts(&dispatcher.stop());
    assert!(
        said.iter()
            .any(|text| text.contains("were not taken before the end")),
        "{said:?}"
    );
    let got = std::fs::read_to_string(out(dir.path(), "well")).expect("its output");
    assert!(
        got == with_eoe(1, made),
        "not every event once and in order"
    );
}

/// Overflows a plugin's queue twice. Returns the actions and the states before and after the
/// resumption.
fn overflow(action: OverflowAction) -> (Vec<OwnerAction>, PluginState, PluginState) {
    let dir = tempfile::tempdir().expect("a directory");
    let settings = Plugins {
        overflow_action: action,
        q_depth: 30,
        ..settings()
    };
    let mut dispatcher = Dispatcher::start(
        Launcher::Here,
        vec![sleeper(dir.path(), "stuck")],
        &settings,
        0,
    );
    let full = state(&dispatcher, "stuck");
    assert_eq!(full.lost, 0);
    for _ in 0..20 {
        dispatcher.push(events(1, 5000).as_bytes(), 0);
        dispatcher.release(None);
    }
    let before = state(&dispatcher, "stuck");
    dispatcher.resume();
    dispatcher.push(events(1, 5000).as_bytes(), 0);
    dispatcher.release(None);
    let after = state(&dispatcher, "stuck");
    let actions = dispatcher.take_actions();
    dispatcher.stop();
    (actions, before, after)
}

#[test]
fn overflow_action_does_what_auditd_conf_says() {
    let (actions, ..) = overflow(OverflowAction::Ignore);
    assert_eq!(actions, []);
    let (actions, ..) = overflow(OverflowAction::Syslog);
    assert_eq!(actions.len(), 5, "{actions:?}");
    let (actions, before, after) = overflow(OverflowAction::Suspend);
    assert!(
        texts(&actions)[0].contains("no more events before SIGUSR2"),
        "{actions:?}"
    );
    // Suspended again after the resumption: the first batch overflowed; the next one would have
    // fitted.
    assert_eq!(before.lost, 20 * 15_000 - 30);
    assert_eq!((actions.len(), after.lost), (2, before.lost + 15_000 - 30));
    for (action, level) in [
        (OverflowAction::Single, Runlevel::Single),
        (OverflowAction::Halt, Runlevel::Halt),
    ] {
        let (actions, ..) = overflow(action);
        let asked = matches!(&actions[..], [OwnerAction::ChangeRunlevel { runlevel, .. }] if *runlevel == level);
        assert!(asked, "{actions:?}");
    }
}

#[test]
fn a_program_that_ends_is_started_again_max_restarts_times() {
    let dir = tempfile::tempdir().expect("a directory");
    let settings = Plugins {
        max_restarts: 3,
        ..settings()
    };
    let out = out(dir.path(), "short");
    let text = format!("echo >>{}", out.display());
    let mut dispatcher = Dispatcher::start(
        Launcher::Here,
        vec![script(dir.path(), "short", &text)],
        &settings,
        0,
    );
    run_until(&mut dispatcher, "the last end", |d| !d.is_wanted());
    let starts = std::fs::read_to_string(&out)
        .expect("its output")
        .lines()
        .count();
    assert_eq!(starts, 4);
    let said = texts(&dispatcher.take_actions());
    assert!(
        said.last()
            .is_some_and(|text| text.contains("max_restarts = 3")),
        "{said:?}"
    );
    // A reload tries again.
    dispatcher.reload(
        vec![script(dir.path(), "short", "exec cat >/dev/null")],
        &settings,
        0,
    );
    dispatcher.push(events(1, 1).as_bytes(), 1);
    dispatcher.release(None);
    assert_eq!(state(&dispatcher, "short").passed, 3);
    dispatcher.stop();
}

#[test]
fn a_restarted_program_gets_what_its_predecessor_was_not_sent() {
    let dir = tempfile::tempdir().expect("a directory");
    let (go_on, first) = (dir.path().join("go-on"), dir.path().join("first"));
    // The first program reads nothing, and ends when asked to; the second reads everything.
    let text = format!(
        "[ -e {first} ] && exec cat >{out}\n: >{first}\nwhile [ ! -e {go_on} ]; do sleep 0.01; done",
        first = first.display(),
        out = out(dir.path(), "again").display(),
        go_on = go_on.display()
    );
    let settings = Plugins {
        q_depth: 99_999,
        ..settings()
    };
    let mut dispatcher = Dispatcher::start(
        Launcher::Here,
        vec![script(dir.path(), "again", &text)],
        &settings,
        0,
    );
    run_until(&mut dispatcher, "the start", |_| first.exists());
    dispatcher.push(events(1, 10_000).as_bytes(), 0);
    dispatcher.release(None);
    let sent = state(&dispatcher, "again").passed;
    assert!(sent < 30_000);
    std::fs::write(&go_on, "").expect("written");
    run_until(&mut dispatcher, "reading", |d| {
        state(d, "again").passed == 30_000
    });
    assert_eq!(state(&dispatcher, "again").restarts, 1);
    dispatcher.stop();
    let got = std::fs::read_to_string(out(dir.path(), "again")).expect("its output");
    let all = with_eoe(1, 10_000);
    assert!(
        all.ends_with(&got),
        "it starts with {:?}",
        got.lines().next()
    );
    assert_eq!(got.lines().count() as u64, 30_000 - sent);
}

#[test]
fn a_reload_tells_unchanged_programs_and_replaces_changed_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    let (same_out, changed_out) = (out(dir.path(), "same"), out(dir.path(), "changed"));
    // Does not wait in `read`: a signal just before that call would not end it.
    let on_hup = |out: &Path| {
        let out = out.display();
        format!("trap 'echo hup >>{out}' HUP; trap 'echo term >>{out}; exit' TERM; echo start >>{out}\nwhile :; do sleep 0.05; done")
    };
    let same = script(dir.path(), "same", &on_hup(&same_out));
    let changed = script(dir.path(), "changed", &on_hup(&changed_out));
    let plugins = vec![same.clone(), changed.clone()];
    let mut dispatcher = Dispatcher::start(Launcher::Here, plugins, &settings(), 0);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    run_until(&mut dispatcher, "the start", |_| {
        read(&same_out) == "start\n" && read(&changed_out) == "start\n"
    });
    let other = Plugin {
        format: Format::Binary,
        ..changed
    };
    dispatcher.reload(vec![other, same], &settings(), 0);
    run_until(&mut dispatcher, "SIGHUP", |_| {
        read(&same_out) == "start\nhup\n"
    });
    // Never two at the same time: the second starts after the first has ended.
    run_until(&mut dispatcher, "the second", |_| {
        read(&changed_out) == "start\nterm\nstart\n"
    });
    dispatcher.reload(Vec::new(), &settings(), 0);
    run_until(&mut dispatcher, "the end", |_| {
        read(&same_out).ends_with("term\n") && read(&changed_out).ends_with("term\n")
    });
    dispatcher.stop();
}

fn read_lines(dispatcher: &mut Dispatcher, reader: &mut UnixStream, bytes: usize) -> String {
    reader.set_nonblocking(true).expect("non-blocking");
    let mut got = Vec::new();
    run_until(dispatcher, "reading", |_| {
        let mut buffer = [0; 65536];
        match reader.read(&mut buffer) {
            Ok(count) => got.extend_from_slice(&buffer[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        got.len() >= bytes
    });
    String::from_utf8(got).expect("text")
}

#[test]
fn the_socket_serves_one_reader_after_the_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let (plugin, path) = socket(dir.path(), "events");
    let mut dispatcher = Dispatcher::start(Launcher::Here, vec![plugin], &settings(), 0);
    let mode = std::fs::metadata(&path)
        .expect("the socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // Without a reader, nothing is missed, as under auditd.
    dispatcher.push(events(1, 1).as_bytes(), 1);
    dispatcher.release(None);
    for round in 1..=2 {
        let mut reader = UnixStream::connect(&path).expect("a connection");
        dispatcher.pump();
        dispatcher.push(events(round * 10, 5).as_bytes(), 0);
        dispatcher.release(None);
        let expected = with_eoe(round * 10, 5);
        let got = read_lines(&mut dispatcher, &mut reader, expected.len());
        assert_eq!(got, expected);
    }
    // Nobody waits for a reader that does not read.
    let _idle = UnixStream::connect(&path).expect("a connection");
    dispatcher.pump();
    while state(&dispatcher, "events").lost == 0 {
        dispatcher.push(events(1, 100).as_bytes(), 0);
        dispatcher.release(None);
    }
    dispatcher.stop();
    assert!(!path.exists());
}

#[test]
fn only_a_socket_that_nobody_serves_is_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let (plugin, path) = socket(dir.path(), "events");
    std::fs::write(&path, "precious").expect("written");
    let mut dispatcher = Dispatcher::start(Launcher::Here, vec![plugin], &settings(), 0);
    let said = texts(&dispatcher.take_actions());
    assert!(
        said[0].contains("a file that is not a socket is in its place"),
        "{said:?}"
    );
    assert!(!dispatcher.is_wanted());
    dispatcher.stop();

    let (plugin, served) = socket(dir.path(), "served");
    let listener = std::os::unix::net::UnixListener::bind(&served).expect("a listener");
    let mut dispatcher = Dispatcher::start(Launcher::Here, vec![plugin.clone()], &settings(), 0);
    let said = texts(&dispatcher.take_actions());
    assert!(
        said[0].contains("another program serves this socket"),
        "{said:?}"
    );
    dispatcher.stop();
    drop(listener);
    let dispatcher = Dispatcher::start(Launcher::Here, vec![plugin], &settings(), 0);
    assert!(dispatcher.is_wanted() && served.exists());
    dispatcher.stop();

    assert_eq!(
        std::fs::read_to_string(&path).expect("the file"),
        "precious"
    );
}

#[test]
fn a_program_that_ignores_its_end_is_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let pid = out(dir.path(), "stubborn");
    let text = format!("trap '' TERM\necho $$ >{}\nexec sleep 1000", pid.display());
    let mut dispatcher = Dispatcher::start(
        Launcher::Here,
        vec![script(dir.path(), "stubborn", &text)],
        &settings(),
        0,
    );
    let mut number = 0;
    run_until(&mut dispatcher, "the start", |_| {
        let text = std::fs::read_to_string(&pid).unwrap_or_default();
        text.trim().parse().map(|found: i32| number = found).is_ok()
    });
    dispatcher.stop();
    assert!(!Path::new(&format!("/proc/{number}")).exists());
}
