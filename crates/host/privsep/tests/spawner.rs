//! A real spawner starts real programs. This program has no test harness, since the spawner is this program with the
//! hidden command.

use privsep::spawn::{Child, Launcher, LogChange, Request, COMMAND};
use rustix::process::{kill_process, Pid, Signal};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of times that a spawner is killed.
const KILLS: u32 = 20;

fn main() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() == Some(COMMAND.as_ref()) {
        std::process::exit(i32::from(
            privsep::spawn::serve_as(args, || println!("tidied")).is_err(),
        ));
    }
    let top = tempfile::tempdir().expect("a directory");
    let top = top.path();
    configure(top);
    let command = ["sh", "-c", "echo command $PPID; exit 7"].map(Into::into);
    let launcher = Launcher::start(&top.join("auditd.conf"), None, &command).expect("a spawner");
    a_plugin_is_a_child_of_the_daemon_and_reads_what_it_was_given(&launcher, top);
    what_no_file_names_is_refused(&launcher, top);
    what_cannot_be_executed_is_told_and_leaves_no_zombie(&launcher, top);
    the_command_has_its_own_exit_status(&launcher);
    files_of_the_log_are_changed_and_no_others(&launcher, top);
    what_is_another_users_is_ended_by_its_spawner(&launcher, top);
    a_killed_spawner_is_replaced_and_its_programs_live_on(&launcher, top);
    nothing_is_started_twice_or_left_out(&launcher, top);
    no_zombie_is_left(&launcher);
    both_killed_at_once_are_named(&launcher);
    a_service_starts_programs_that_are_its_own_children(top);
    println!("spawner: ok");
}

/// A script that prints its parent, then copies its input.
fn script(top: &Path, name: &str) -> PathBuf {
    let path = top.join(name);
    let out = top.join(format!("{name}.out"));
    let text = format!(
        "#!/bin/sh\nexec >{}.new\necho $PPID \"$@\"\nmv {0}.new {0}\ncat\n",
        out.display()
    );
    std::fs::write(&path, text).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).expect("its mode");
    path
}

fn configure(top: &Path) {
    let plugins = top.join("plugins.d");
    std::fs::create_dir(&plugins).expect("a directory");
    for name in ["one", "broken"] {
        let path = script(top, name);
        let text = format!("active = yes\npath = {}\nargs = a b\n", path.display());
        let conf = plugins.join(format!("{name}.conf"));
        std::fs::write(&conf, text).expect("a file");
        std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o640)).expect("its mode");
    }
    let path = top.join("counter");
    let text = format!(
        "#!/bin/sh\necho started >>{}\n",
        top.join("counter.out").display()
    );
    std::fs::write(&path, text).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).expect("its mode");
    let conf = plugins.join("counter.conf");
    let text = format!("active = yes\npath = {}\nargs = a b\n", path.display());
    std::fs::write(&conf, text).expect("a file");
    std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o640)).expect("its mode");
    let text = format!(
        "plugin_dir = {}\nlog_file = {}\n",
        plugins.display(),
        top.join("audit.log").display()
    );
    std::fs::write(top.join("auditd.conf"), text).expect("a configuration");
}

fn plugin(top: &Path, name: &str) -> Request {
    Request::Plugin {
        path: top.join(name),
        args: ["a", "b"].map(str::to_owned).to_vec(),
        nice: 0,
    }
}

fn pipe() -> (OwnedFd, File) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    (read, File::from(write))
}

/// Polls until an answer comes.
fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text_of(top: &Path, name: &str) -> String {
    std::fs::read_to_string(top.join(format!("{name}.out"))).unwrap_or_default()
}

fn a_plugin_is_a_child_of_the_daemon_and_reads_what_it_was_given(launcher: &Launcher, top: &Path) {
    let (read, mut write) = pipe();
    let started = launcher.launch(&plugin(top, "one"), Some(read));
    let mut child = started.expect("the plugin");
    write.write_all(b"event\n").expect("it reads");
    drop(write);
    let status = child.wait().expect("a child of this process");
    assert!(status.success(), "{status}");
    let own = std::process::id();
    assert_eq!(text_of(top, "one"), format!("{own} a b\nevent\n"));
}

fn what_no_file_names_is_refused(launcher: &Launcher, top: &Path) {
    let shell = Request::Plugin {
        path: "/bin/sh".into(),
        args: vec!["-c".to_owned(), "id".to_owned()],
        nice: 0,
    };
    for refused in [
        shell,
        Request::Exec {
            path: top.join("one"),
        },
    ] {
        let error = launcher.launch(&refused, None).expect_err("refused");
        assert!(error.to_string().contains("refused:"), "{error}");
    }
}

fn what_cannot_be_executed_is_told_and_leaves_no_zombie(launcher: &Launcher, top: &Path) {
    std::fs::write(top.join("broken"), "#!/nonexistent/shell\n").expect("written");
    let error = launcher
        .launch(&plugin(top, "broken"), None)
        .expect_err("no interpreter");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    std::fs::set_permissions(top.join("broken"), PermissionsExt::from_mode(0o777)).expect("a mode");
    let error = launcher
        .launch(&plugin(top, "broken"), None)
        .expect_err("not trusted");
    assert!(error.to_string().contains("writable"), "{error}");
    no_zombie_is_left(launcher);
}

fn the_command_has_its_own_exit_status(launcher: &Launcher) {
    let mut child: Child = launcher.launch(&Request::Command, None).expect("COMMAND");
    let status = child.wait().expect("a child of this process");
    assert_eq!(status.code(), Some(7));
}

/// The spawners, once both have said who they are.
fn both(launcher: &Launcher) -> (u32, u32) {
    until("two spawners", || {
        launcher.tend();
        let state = launcher.state().expect("spawners");
        Some((state.pid?, state.standby?))
    })
}

fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("a process id");
    kill_process(pid, signal).expect("a signal");
}

/// Number of lines that the program has written since its start.
fn starts(top: &Path) -> usize {
    let text = std::fs::read_to_string(top.join("counter.out")).unwrap_or_default();
    text.lines().count()
}

/// Starts the plugin `one` anew. Its standard input is the other end of the pipe.
fn start_one(launcher: &Launcher, top: &Path) -> (Child, File) {
    let (read, write) = pipe();
    std::fs::remove_file(top.join("one.out")).expect("there was one");
    let child = launcher.launch(&plugin(top, "one"), Some(read));
    (child.expect("the plugin"), write)
}

fn a_killed_spawner_is_replaced_and_its_programs_live_on(launcher: &Launcher, top: &Path) {
    let (mut child, mut write) = start_one(launcher, top);
    until("its first line", || {
        text_of(top, "one").contains("a b").then_some(())
    });
    let (first, standby) = both(launcher);
    // A polite end is for the daemon, which still needs it.
    kill(first, Signal::TERM);
    kill(first, Signal::KILL);
    // Nobody has noticed yet.
    let mut second = launcher
        .launch(&plugin(top, "counter"), None)
        .expect("the next");
    assert!(second.wait().expect("a child of this process").success());
    let ended = launcher.tend();
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0].pid, Some(first));
    if ended[0].status.is_some() {
        let status = ended[0].status.expect("its status").to_string();
        assert!(status.contains("signal: 9"), "{status}");
    }
    assert_eq!(both(launcher).0, standby);
    write.write_all(b"after\n").expect("it still reads");
    drop(write);
    child.wait().expect("its end");
    assert!(text_of(top, "one").ends_with("after\n"));
}

/// Kills one spawner after another at random times, while programs are started. Each program starts exactly once.
fn nothing_is_started_twice_or_left_out(launcher: &Launcher, top: &Path) {
    let before = starts(top);
    for round in 0..KILLS {
        let (first, standby) = both(launcher);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(u64::from(round) * 97 % 3000));
            kill(first, Signal::KILL);
        });
        let mut child = launcher
            .launch(&plugin(top, "counter"), None)
            .expect("the program");
        child.wait().expect("its end");
        killer.join().expect("the killer");
        until("the other in its place", || {
            (both(launcher).0 == standby).then_some(())
        });
    }
    assert_eq!(starts(top), before + KILLS as usize);
    // A spawner that hangs is ended, and its place is taken.
    let (first, standby) = both(launcher);
    kill(first, Signal::STOP);
    let mut child = launcher
        .launch(&plugin(top, "counter"), None)
        .expect("the program");
    child.wait().expect("its end");
    assert_eq!(starts(top), before + KILLS as usize + 1);
    assert_eq!(both(launcher).0, standby);
}

/// This process has no children but the spawners: nothing is left that nobody reaps.
fn no_zombie_is_left(launcher: &Launcher) {
    let (first, standby) = both(launcher);
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let Ok(children) = std::fs::read_to_string(path) else {
        println!("skipped: children of the test: no CONFIG_PROC_CHILDREN");
        return;
    };
    let mut pids: Vec<u32> = children
        .split_whitespace()
        .map(|pid| pid.parse().expect("a process id"))
        .collect();
    pids.sort_unstable();
    let mut expected = [first, standby];
    expected.sort_unstable();
    assert_eq!(pids, expected);
}

fn files_of_the_log_are_changed_and_no_others(launcher: &Launcher, top: &Path) {
    let open = |path: PathBuf| LogChange::Open {
        path,
        flags: rustix::fs::OFlags::CREATE.bits() | rustix::fs::OFlags::RDWR.bits(),
        mode: 0o600,
    };
    let file = launcher.change_log(open(top.join("audit.log")));
    let mut file = File::from(file.expect("it is the log").expect("a file"));
    file.write_all(b"line\n").expect("writable");
    let error = launcher.change_log(open(top.join("auditd.conf")));
    let error = error.expect_err("no file of the log").to_string();
    assert!(error.contains("refused:"), "{error}");
    let rename = LogChange::Rename {
        from: top.join("audit.log"),
        to: top.join("audit.log.1"),
    };
    assert!(launcher.change_log(rename).expect("both are").is_none());
    let text = std::fs::read_to_string(top.join("audit.log.1"));
    assert_eq!(text.expect("renamed"), "line\n");
}

fn both_killed_at_once_are_named(launcher: &Launcher) {
    let (first, standby) = both(launcher);
    kill(first, Signal::KILL);
    kill(standby, Signal::KILL);
    let mut ended = Vec::new();
    until("their end", || {
        ended.extend(launcher.tend());
        (ended.len() == 2).then_some(())
    });
    assert!(!launcher.state().expect("a state").running);
    let error = launcher
        .launch(&Request::Command, None)
        .expect_err("none is left");
    assert!(error.to_string().contains("restart tarsier"), "{error}");
}

/// Ends a program that has become another user's, as a daemon without CAP_KILL.
fn what_is_another_users_is_ended_by_its_spawner(launcher: &Launcher, top: &Path) {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: programs of other users: only root can start them");
        return;
    }
    let text = format!(
        "#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups sh -c 'echo $$ >&3; exec sleep 1000' 3>{}\n",
        top.join("one.out").display()
    );
    std::fs::write(top.join("one"), text).expect("written");
    let (mut child, _write) = start_one(launcher, top);
    until("its first line", || {
        (text_of(top, "one") == format!("{}\n", child.id())).then_some(())
    });
    let before = rustix::thread::capabilities(None).expect("capabilities");
    let mut fewer = before;
    fewer.effective -= rustix::thread::CapabilitySet::KILL;
    rustix::thread::set_capabilities(None, fewer).expect("fewer");
    let own = kill_process(child.pid(), Signal::KILL);
    child.signal(Signal::KILL);
    rustix::thread::set_capabilities(None, before).expect("as before");
    assert_eq!(own, Err(rustix::io::Errno::PERM));
    let ended = until("its end", || {
        child.try_wait().expect("it is known").map(Some)
    });
    assert!(ended.is_some());
    script(top, "one");
}

/// A service whose spawners are this program.
fn service(top: &Path) -> PathBuf {
    let path = top.join("spawner.sock");
    let config = top.join("auditd.conf");
    let own = std::env::current_exe().expect("its path");
    let args = [
        COMMAND.as_ref(),
        "3".as_ref(),
        "service".as_ref(),
        config.as_os_str(),
    ];
    testkit::serve_connections(&path, &own, &args);
    path
}

fn a_service_starts_programs_that_are_its_own_children(top: &Path) {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: spawners of a service: only root may ask them");
        return;
    }
    let path = service(top);
    let launcher = Launcher::connect(&path).expect("a connection");
    let (first, standby) = both(&launcher);
    let (mut child, mut write) = start_one(&launcher, top);
    until("its first line", || {
        (text_of(top, "one") == format!("{first} a b\n")).then_some(())
    });
    assert!(child.try_wait().expect("it is known").is_none());
    kill(first, Signal::KILL);
    let mut second = launcher
        .launch(&plugin(top, "counter"), None)
        .expect("the next");
    second.wait().expect("its end");
    until("the other in its place", || {
        (both(&launcher).0 == standby).then_some(())
    });
    write.write_all(b"after\n").expect("it lives on");
    drop(write);
    child.wait().expect("its end");
    assert!(text_of(top, "one").ends_with("after\n"));
    let refused = launcher.launch(
        &Request::Exec {
            path: "/bin/sh".into(),
        },
        None,
    );
    let error = refused.expect_err("refused").to_string();
    assert!(error.contains("refused:"), "{error}");
    // Both at once: the next request connects again.
    let (first, standby) = both(&launcher);
    kill(first, Signal::KILL);
    kill(standby, Signal::KILL);
    let count = starts(top);
    let mut third = launcher
        .launch(&plugin(top, "counter"), None)
        .expect("a new connection");
    third.wait().expect("its end");
    assert_eq!(starts(top), count + 1);
    what_is_another_users_is_ended_by_its_spawner(&launcher, top);
    // A plugin ends with the connection.
    let (read, _write) = pipe();
    let mut child = launcher
        .launch(&plugin(top, "one"), Some(read))
        .expect("the plugin");
    drop(launcher);
    child.wait().expect("its end");
}
