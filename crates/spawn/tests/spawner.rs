//! A real spawner starts real programs. This program has no test harness, since the spawner is this program with the
//! hidden command.

use rustix::process::{kill_process, Pid, Signal};
use spawn::{Child, Launcher, Request, State, COMMAND};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() == Some(COMMAND.as_ref()) {
        std::process::exit(i32::from(
            spawn::serve_as(args, || println!("tidied")).is_err(),
        ));
    }
    let top = tempfile::tempdir().expect("a directory");
    let top = top.path();
    configure(top);
    let command = ["sh", "-c", "echo command $PPID; exit 7"].map(Into::into);
    let launcher = Launcher::start(&top.join("auditd.conf"), &command).expect("a spawner");
    a_plugin_is_a_child_of_the_daemon_and_reads_what_it_was_given(&launcher, top);
    what_no_file_names_is_refused(&launcher, top);
    what_cannot_be_executed_is_told_and_leaves_no_zombie(&launcher, top);
    the_command_has_its_own_exit_status(&launcher);
    a_dead_spawner_is_named_and_its_programs_live_on(&launcher, top);
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
    let text = format!("plugin_dir = {}\n", plugins.display());
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
    let children =
        std::fs::read_to_string(format!("/proc/self/task/{}/children", std::process::id()));
    if let (Ok(children), Some(State::Runs(pid))) = (children, launcher.state()) {
        assert_eq!(children.trim(), pid.to_string());
    }
}

fn the_command_has_its_own_exit_status(launcher: &Launcher) {
    let mut child: Child = launcher.launch(&Request::Command, None).expect("COMMAND");
    let status = child.wait().expect("a child of this process");
    assert_eq!(status.code(), Some(7));
}

fn a_dead_spawner_is_named_and_its_programs_live_on(launcher: &Launcher, top: &Path) {
    let (read, mut write) = pipe();
    std::fs::remove_file(top.join("one.out")).expect("there was one");
    let mut child = launcher
        .launch(&plugin(top, "one"), Some(read))
        .expect("the plugin");
    until("its first line", || {
        text_of(top, "one").contains("a b").then_some(())
    });
    let Some(State::Runs(pid)) = launcher.state() else {
        panic!("no spawner");
    };
    let pid_of = Pid::from_raw(pid as i32).expect("a process id");
    // SIGTERM is for the daemon, which still needs the spawner.
    kill_process(pid_of, Signal::TERM).expect("a signal");
    launcher
        .launch(&Request::Command, None)
        .expect("COMMAND")
        .wait()
        .expect("its end");
    kill_process(pid_of, Signal::KILL).expect("a signal");
    let state = until("its end", || match launcher.state() {
        Some(State::Failed(pid, Some(status))) => Some((pid, status.to_string())),
        _ => None,
    });
    assert_eq!(state.0, pid);
    assert!(state.1.contains("signal: 9"), "{}", state.1);
    let error = launcher
        .launch(&Request::Command, None)
        .expect_err("none is left");
    assert!(
        error.to_string().contains(&format!("(pid {pid})")),
        "{error}"
    );
    write.write_all(b"after\n").expect("it still reads");
    drop(write);
    assert!(child.wait().expect("still a child").success());
    let mut text = String::new();
    File::open(top.join("one.out"))
        .expect("a file")
        .read_to_string(&mut text)
        .expect("text");
    assert!(text.ends_with("after\n"), "{text}");
}
