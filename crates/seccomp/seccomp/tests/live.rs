//! Filters of running processes: threads that start and end, signals, ends of processes. Needs
//! root, for PTRACE_SECCOMP_GET_FILTER, and python3 for the processes.

use seccomp::live::{dump, DumpError, ThreadFilters};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Common part of the scripts: `take(nr)` installs a filter that makes `nr` fail with EPERM.
const PRELUDE: &str = r#"
import ctypes, os, signal, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
class Prog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("insns", ctypes.c_char_p)]
def take(nr):
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, nr), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
    prog = Prog(4, b"".join(struct.pack("<HBBI", *row) for row in rows))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(prog), 0, 0) == 0, ctypes.get_errno()
def say(text):
    print(text, flush=True)
"#;

/// A process that runs a script and has printed its first line.
struct Script {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Script {
    /// `None`, with the reason printed, if this machine cannot run such tests.
    fn start(what: &str, body: &str) -> Option<Script> {
        // SAFETY: takes and changes nothing.
        if unsafe { libc::geteuid() } != 0 {
            println!("skipped: {what}: not root");
            return None;
        }
        let child = Command::new("python3")
            .args(["-c", &format!("{PRELUDE}\n{body}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            println!("skipped: {what}: no python3");
            return None;
        };
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut script = Script {
            child,
            input,
            output,
        };
        assert_eq!(script.line(), "ready");
        Some(script)
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn dump(&self) -> Result<Vec<ThreadFilters>, DumpError> {
        dump(self.pid())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // The child may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_thread_is_read_with_its_own_filters_in_order() {
    let body = r#"
take(600)
def other():
    take(601)
    say("ready")
    threading.Event().wait()
threading.Thread(target=other, daemon=True).start()
sys.stdin.readline()
"#;
    let Some(script) = Script::start("filters of threads", body) else {
        return;
    };
    let threads = script.dump().expect("two threads");
    let mut denied: Vec<Vec<u32>> = threads
        .iter()
        .map(|thread| {
            let filters = thread.chain.filters().iter();
            filters.map(|filter| filter.insns()[1].k).collect()
        })
        .collect();
    denied.sort();
    assert_eq!(denied, [vec![600], vec![600, 601]]);
}

#[test]
fn threads_that_end_while_a_process_is_read_do_not_matter() {
    let body = r#"
take(600)
def brief():
    pass
def churn():
    while True:
        thread = threading.Thread(target=brief)
        thread.start()
        thread.join()
for _ in range(3):
    threading.Thread(target=churn, daemon=True).start()
say("ready")
sys.stdin.readline()
"#;
    let Some(script) = Script::start("threads that end", body) else {
        return;
    };
    for _ in 0..100 {
        let threads = script.dump().expect("a process that lives");
        assert!(threads.len() >= 4, "{threads:?}");
        assert!(threads
            .iter()
            .all(|thread| thread.chain.filters().len() == 1));
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_is_read() {
    let body = r#"
take(600)
def other():
    main = threading.main_thread()
    while open(f"/proc/self/task/{os.getpid()}/stat").read().split()[2] != "Z":
        pass
    say("ready")
    threading.Event().wait()
threading.Thread(target=other).start()
libc.pthread_exit(None)
"#;
    let Some(script) = Script::start("a first thread that ended", body) else {
        return;
    };
    let threads = script.dump().expect("the other thread");
    assert_eq!(threads.len(), 1);
    assert_ne!(threads[0].tid, script.pid());
}

#[test]
fn no_signal_is_lost_on_a_process_that_is_read() {
    let signals = testkit::times(10_000, 60_000);
    let body = r#"
take(600)
# The handler of C writes a byte per signal; Python's own may stand for several.
taken, told = os.pipe()
os.set_blocking(told, False)
signal.set_wakeup_fd(told)
signal.signal(signal.SIGRTMIN + 1, lambda number, frame: None)
say("ready")
sys.stdin.readline()
say(len(os.read(taken, 65536)))
"#;
    let Some(mut script) = Script::start("signals", body) else {
        return;
    };
    let pid = script.pid();
    let sender = std::thread::spawn(move || {
        for _ in 0..signals {
            // SAFETY: our own child. Real-time signals are queued: each is taken once.
            while unsafe { libc::kill(pid, libc::SIGRTMIN() + 1) } != 0 {
                std::thread::yield_now();
            }
        }
    });
    while !sender.is_finished() {
        assert_eq!(script.dump().expect("a process that lives").len(), 1);
    }
    sender.join().expect("every signal is sent");
    script.input.write_all(b"\n").expect("written");
    assert_eq!(script.line(), signals.to_string());
}

#[test]
fn a_process_that_ends_while_it_is_read_is_said_to_be_gone() {
    let body = "
take(600)
say('ready')
";
    let mut outcomes = [0, 0];
    for _ in 0..15 {
        let Some(script) = Script::start("a process that ends", body) else {
            return;
        };
        loop {
            match script.dump() {
                Ok(threads) => {
                    outcomes[0] += 1;
                    assert_eq!(threads[0].chain.filters().len(), 1);
                }
                Err(error @ DumpError::Gone { .. }) => {
                    outcomes[1] += 1;
                    let text = error.to_string();
                    assert!(
                        text.contains("does not exist, or ended while it was read"),
                        "{text}"
                    );
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(outcomes[0] > 0 && outcomes[1] == 15, "{outcomes:?}");
}
