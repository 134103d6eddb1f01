//! Paths that callers named are looked up by a helper, never by the daemon.

use crate::calls::{call, Caller};
use crate::daemon::{Daemon, Setup};
use crate::{log, machine, programs, workload};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const GID: u32 = 61241;
/// Text that every path named by the caller contains, and no other path.
const NAMED: &str = "named-by-a-caller";
const CALLS: &str =
    "mkdir,openat,chmod,rename,link,symlink,unlink,execve,stat,truncate,setxattr,rmdir";

/// Calls of the daemon that take a path, as strace prints them.
struct Traced {
    strace: Child,
    output: PathBuf,
}

impl Traced {
    /// Traces every thread of the daemon; `None` if there is no strace. Its helpers are processes of their own.
    fn start(daemon: &Daemon, setup: &Setup) -> Option<Traced> {
        let output = setup.path("strace");
        let mut command = Command::new("strace");
        command.args(["-e", "trace=%file", "-o"]).arg(&output);
        let tasks = format!("/proc/{}/task", daemon.pid());
        for task in std::fs::read_dir(tasks).expect("its threads") {
            let id = task.expect("a thread").file_name();
            command.arg("-p").arg(id);
        }
        let mut strace = command.stderr(Stdio::piped()).spawn().ok()?;
        let said = strace.stderr.take().expect("a pipe");
        let first = BufReader::new(said).lines().next();
        let first = first.and_then(Result::ok).unwrap_or_default();
        assert!(first.contains("attached"), "strace says: {first}");
        Some(Traced { strace, output })
    }

    fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.strace);
        rustix::process::kill_process(pid, Signal::INT).expect("the signal is sent");
        self.strace.wait().expect("its status");
        std::fs::read_to_string(&self.output).expect("what it saw")
    }
}

/// Makes every call of the workload, in the directory `top`.
fn make_all_calls(top: &Path) {
    std::fs::create_dir(top).expect("a directory");
    let mut workload = Command::new(programs::workload());
    let workload = workload.arg(top).stdout(Stdio::null());
    assert!(workload.status().expect("the workload").success());
}

/// Makes calls on paths below `top` that exist, that do not exist, and that go through links.
fn make_calls(top: &Path) -> Vec<i64> {
    let path = |name: &str| top.join(name);
    let script = path("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").expect("a script");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, mode).expect("its mode");
    let (dir, file, other, link) = (path("dir"), path("dir/file"), path("other"), path("link"));
    let (dir, file, other, link) = (&*dir, &*file, &*other, &*link);
    let below_link = path("link/missing");
    let made = Caller::gid(GID).make(&[
        call!(mkdir, dir, 0o755),
        call!(openat, -100, file, libc::O_CREAT | libc::O_WRONLY, 0o600),
        call!(chmod, file, 0o640),
        call!(symlink, "dir", link),
        call!(truncate, file, 0),
        call!(setxattr, file, "user.x", "y", 1, 0),
        call!(link, file, other),
        call!(rename, other, path("dir/renamed").as_path()),
        call!(stat, below_link.as_path(), vec![0u8; 256]),
        call!(execve, script.as_path(), 0, 0),
        call!(unlink, path("dir/renamed").as_path()),
        call!(chmod, path("link/file").as_path(), 0o600),
        call!(rmdir, dir),
    ]);
    made.results
}

#[test]
fn the_daemon_touches_no_path_that_a_caller_named() {
    machine::test("paths that callers named", |setup| {
        let top = setup.path(NAMED);
        std::fs::create_dir(&top).expect("a directory");
        let rules = format!(
            "-a always,exit -F arch=b64 -S {CALLS} -F gid={GID} -k named\n\
             -a always,exit -F arch=b64 -S openat -F gid={GID} -F dir=/srv -k undecided\n{}",
            workload::rules(&programs::workload())
        );
        let options = ["--engine", "tracepoint"];
        let run = setup.tarsier(&rules).format("enriched").ring_kib(65536);
        let daemon = options
            .iter()
            .fold(run, |run, option| run.option(option))
            .start();
        let Some(traced) = Traced::start(&daemon, setup) else {
            println!("skipped: paths that callers named: no strace");
            return drop(daemon.stop());
        };
        make_all_calls(&top.join("workload"));
        let results = make_calls(&top);
        assert_eq!(results[9], -2, "{results:?}");
        let last = abi::syscall_number(abi::Arch::native(), "rmdir").expect("rmdir");
        daemon.wait_for_record(&format!(" syscall={last} "));
        // It reads its rules, so that something is seen at all.
        daemon.signal(Signal::HUP);
        daemon.wait_for_record("op=reconfigure");
        let seen = traced.stop();
        let is_named = |line: &&str| {
            let of_process = ["/cwd", "/root", "/fd/", "/exe"].map(|name| line.contains(name));
            line.contains(NAMED) || line.contains("/proc/") && of_process.contains(&true)
        };
        let (named, own): (Vec<&str>, Vec<&str>) = seen.lines().partition(is_named);
        assert!(own.iter().any(|line| line.contains("test.rules")), "{seen}");
        assert_eq!(named, Vec::<&str>::new());
        let status = daemon.status();
        for count in ["objects_unanswered", "helpers_replaced", "helpers_stuck"] {
            assert_eq!(status[count], 0, "{count}");
        }
        let ended = daemon.stop();
        found(&log::events(&ended.log), &top);
    });
}

/// Checks that the helper found what the kernel's programs do not tell under this engine.
fn found(events: &[log::Event], top: &Path) {
    let dir = std::fs::metadata(top).expect("the directory");
    let of_call = |name: &str| {
        let brief = format!("{name} named");
        let event = events
            .iter()
            .find(|event| event.brief() == Some(brief.clone()));
        event.unwrap_or_else(|| panic!("no {name}"))
    };
    for name in ["mkdir", "symlink"] {
        let path = of_call(name)
            .records
            .iter()
            .find(|record| record.kind == "PATH" && record.field("nametype") == Some("PARENT"));
        let path = path.expect("its directory");
        assert_eq!(path.number("inode"), Some(dir.ino() as i64), "{name}");
    }
    let script = of_call("execve").record("PATH").expect("the script");
    let ino = std::fs::metadata(top.join("script"))
        .expect("the script")
        .ino();
    assert_eq!(script.number("inode"), Some(ino as i64));
    let paths = &of_call("execve").records;
    let interpreter = paths.iter().filter(|record| record.kind == "PATH").nth(1);
    let name = interpreter.and_then(|record| record.field("name"));
    assert_eq!(name, Some("/no/such/interpreter"));
}

/// A file system that answers only processes of group [`GID`]; unmounted when dropped.
struct DeadFilesystem {
    server: Child,
    dir: PathBuf,
}

impl DeadFilesystem {
    /// `None`, having said what is skipped, where FUSE is missing.
    fn mount(dir: PathBuf) -> Option<DeadFilesystem> {
        if !Path::new("/dev/fuse").exists() {
            println!("skipped: a file system that does not answer: no /dev/fuse");
            return None;
        }
        std::fs::create_dir(&dir).expect("a directory");
        let mut server = workload(&["serve"], &dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = server.stdout.take().expect("a pipe");
        let first = BufReader::new(said).lines().next();
        assert_eq!(first.and_then(Result::ok).as_deref(), Some("mounted"));
        Some(DeadFilesystem { server, dir })
    }

    /// Has a process make calls. Returns the number of chmod and of execve calls.
    fn call(&self, rounds: u32) -> [u64; 2] {
        let mut command = workload(&["call"], &self.dir);
        let (made, _) = programs::output_of(command.arg(rounds.to_string()));
        let mut counts = made
            .split_whitespace()
            .map(|count| count.parse().expect("a count"));
        std::array::from_fn(|_| counts.next().expect("two counts"))
    }
}

impl Drop for DeadFilesystem {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = rustix::mount::unmount(&self.dir, rustix::mount::UnmountFlags::DETACH);
    }
}

fn workload(what: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(programs::workload());
    command
        .arg("--dead")
        .args(what)
        .arg(dir)
        .arg(GID.to_string());
    command
}

#[test]
fn a_file_system_that_does_not_answer_costs_one_deadline_and_no_event() {
    machine::test("a file system that does not answer", |setup| {
        let Some(dead) = DeadFilesystem::mount(setup.path("dead")) else {
            return;
        };
        let rule = format!("-a always,exit -F arch=b64 -S chmod,execve -F gid={GID} -k dead\n");
        // Once audit has been enabled, tasks get an audit context unless a rule forbids it.
        drop(setup.tarsier(&rule).format("raw").start().stop());
        let daemon = setup.tarsier(&rule).format("raw").start();
        let [changed, executed] = dead.call(500);
        let alive = setup.write("alive", "");
        Caller::gid(GID).make(&[call!(chmod, alive.as_path(), 0o640)]);
        daemon.wait_for_record("/alive\"");
        let status = daemon.status();
        assert_eq!(status["events_recorded"], changed + executed + 1);
        // It waited at most once, until it killed the helper, which hangs in the kernel.
        for count in ["helpers_replaced", "helpers_stuck"] {
            assert!(status[count].as_u64() <= Some(1), "{count}: {status}");
        }
        let ended = daemon.stop();
        assert!(ended.said.contains(", 0 lost; "), "{}", ended.said);
        let events = log::events(&ended.log);
        let count = |brief: &str| {
            let calls = events.iter().filter_map(log::Event::brief);
            calls.filter(|call| call == brief).count() as u64
        };
        assert_eq!(
            [count("chmod dead") - 1, count("execve dead")],
            [changed, executed]
        );
        // Other file systems are still looked up.
        let ino = std::fs::metadata(&alive).expect("a file").ino();
        let paths = log::records(&events, "PATH");
        let found = paths
            .iter()
            .find(|path| path.number("inode") == Some(ino as i64));
        assert!(found.is_some_and(|path| path.field("nametype") == Some("NORMAL")));
    });
}

#[test]
fn a_file_system_that_does_not_answer_costs_its_digests_and_one_deadline_more() {
    machine::test("digests on a file system that does not answer", |setup| {
        let Some(dead) = DeadFilesystem::mount(setup.path("dead")) else {
            return;
        };
        let rule = format!("-a always,exit -F arch=b64 -S chmod,execve -F gid={GID} -k dead\n");
        drop(setup.tarsier(&rule).format("raw").start().stop());
        let run = setup.tarsier(&rule).format("json");
        setup.configure("flush = NONE\nmax_log_file_action = IGNORE\nexe_hash = sha256\n");
        let daemon = run.start();
        let [changed, executed] = dead.call(200);
        let alive = setup.write("alive", "");
        Caller::gid(GID).make(&[call!(chmod, alive.as_path(), 0o640)]);
        daemon.wait_for_record("/alive\"");
        let status = daemon.status();
        assert_eq!(status["events_recorded"], changed + executed + 1);
        let replaced = status["helpers_replaced"].as_u64().expect("a number");
        assert!(replaced <= 2, "{status}");
        let ended = daemon.stop();
        assert!(ended.said.contains(", 0 lost; "), "{}", ended.said);
        let text = std::fs::read_to_string(&ended.log).expect("the log");
        // Scripts there have no digest; their interpreter, which is elsewhere, may.
        let scripts = text.split("\"file\":\"script\"").skip(1);
        let scripts: Vec<&str> = scripts.filter_map(|rest| rest.split('}').next()).collect();
        assert!(!scripts.is_empty(), "{text}");
        let is_missing = |script: &&str| script.contains("\"sha256\":null");
        assert!(scripts.iter().all(is_missing), "{scripts:?}");
    });
}

#[test]
fn a_helper_that_is_killed_is_replaced_and_keeps_few_rights() {
    machine::test("the helper", |setup| {
        let rule = format!("-a always,exit -F arch=b64 -S all -F gid={GID} -k all\n");
        let daemon = setup.tarsier(&rule).format("raw").start();
        // The programs do not follow so long a link, so that the helper has to.
        let linked = |name: &str| {
            setup.write(&format!("{name}.target"), "");
            let text = format!("{}{name}.target", "./".repeat(150));
            std::os::unix::fs::symlink(text, setup.path(name)).expect("a link");
            setup.path(name)
        };
        // A helper that has answered has given up its rights.
        let first = linked("first");
        Caller::gid(GID).make(&[call!(chmod, first.as_path(), 0o640)]);
        daemon.wait_for_record("/first\"");
        let helper = helper_of(&daemon);
        let status = std::fs::read_to_string(format!("/proc/{helper}/status")).expect("its status");
        let has = |line: &str| {
            status
                .lines()
                .any(|own| own.split_whitespace().eq(line.split(' ')))
        };
        // CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE.
        for line in [
            "CapPrm: 0000000000080004",
            "CapEff: 0000000000080004",
            "CapInh: 0000000000000000",
            "NoNewPrivs: 1",
        ] {
            assert!(has(line), "{line} in:\n{status}");
        }
        for id in [0, 65_534] {
            let ids = format!("{id} {id} {id} {id}");
            let has_them = has(&format!("Uid: {ids}")) || has(&format!("Gid: {ids}"));
            assert!(!has_them, "somebody else has its ids:\n{status}");
        }
        let helper = rustix::process::Pid::from_raw(helper).expect("a pid");
        rustix::process::kill_process(helper, Signal::KILL).expect("the signal is sent");
        let file = linked("file");
        Caller::gid(GID).make(&[call!(chmod, file.as_path(), 0o640)]);
        daemon.wait_for_record("/file\"");
        assert_ne!(helper_of(&daemon), helper.as_raw_nonzero().get());
        assert_eq!(daemon.status()["helpers_stuck"], 0);
        let ended = daemon.stop();
        let ino = std::fs::metadata(&file).expect("a file").ino();
        let events = log::events(&ended.log);
        let paths = log::records(&events, "PATH");
        assert!(paths
            .iter()
            .any(|path| path.number("inode") == Some(ino as i64)));
    });
}

/// The process that looks up paths for a daemon.
fn helper_of(daemon: &Daemon) -> i32 {
    let pid = daemon.pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("its children");
    let is_helper = |child: &&str| {
        let name = std::fs::read_to_string(format!("/proc/{child}/cmdline"));
        name.is_ok_and(|name| name.ends_with("lookup-helper\0files\0"))
    };
    let helper = children.split_whitespace().find(is_helper);
    helper.expect("a helper").parse().expect("a pid")
}
