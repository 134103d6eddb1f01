//! Gives one test at a time the whole machine, and checks that it is left as it was found.

use crate::daemon::Setup;
pub(crate) use capture::{link_ids as bpf_links, map_ids as bpf_maps, program_ids as bpf_programs};
use netlink::{AuditSocket, Status};
use std::collections::BTreeSet;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Time that the kernel may take to free programs whose last descriptor was closed.
const FREEING_MAX: Duration = Duration::from_secs(120);

/// Runs `body` with the machine for itself, then checks that audit, BPF programs, processes and
/// mounts are as before. Prints `skipped:` if such a test is not possible here.
pub(crate) fn test(name: &str, body: impl FnOnce(&Setup)) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !rustix::process::geteuid().is_root() {
        println!("skipped: {name}: needs root");
        return;
    }
    let lock = testkit::machine_lock();
    let before = match State::now() {
        Ok(state) => state,
        Err(error) => {
            println!("skipped: {name}: no audit socket: {error}");
            return;
        }
    };
    if let Some(use_) = before.in_use() {
        println!("skipped: {name}: audit is in use: {use_}");
        return;
    }
    enable_audit_once();
    adopt_orphans();
    let setup = Setup::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&setup)));
    let left = before.differences_when_settled();
    if !left.is_empty() {
        tidy_up(&before.audit);
    }
    drop((setup, lock));
    if let Err(panic) = outcome {
        if !left.is_empty() {
            eprintln!("and after {name} the machine is not as before: {left:?}");
        }
        resume_unwind(panic);
    }
    assert!(
        left.is_empty(),
        "after {name} the machine is not as before: {left:#?}"
    );
}

/// Enables audit and disables it again, unless this process has done so: where it was never enabled, Tarsier leaves a
/// rule at its end.
fn enable_audit_once() {
    static ENABLED: Once = Once::new();
    ENABLED.call_once(|| {
        let mut socket = AuditSocket::open().expect("an audit socket");
        for enabled in [1, 0] {
            socket.set_enabled(enabled).expect("audit is not in use");
        }
    });
}

/// Makes processes that a killed daemon leaves behind children of this process, so that they are
/// found.
fn adopt_orphans() {
    let this = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(this)).expect("this process adopts orphans");
}

/// The state that a test must not change.
struct State {
    audit: Status,
    audit_rules: usize,
    bpf_programs: BTreeSet<u32>,
    bpf_maps: BTreeSet<u32>,
    bpf_links: BTreeSet<u32>,
    mounts: BTreeSet<String>,
}

impl State {
    fn now() -> Result<State, netlink::NetlinkError> {
        let mut socket = AuditSocket::open()?;
        // Counters that the kernel changes by itself.
        let audit = Status {
            lost: 0,
            backlog: 0,
            backlog_wait_time_actual: 0,
            ..socket.status()?
        };
        Ok(State {
            audit,
            audit_rules: socket.list_rules()?.len(),
            bpf_programs: bpf_programs(),
            bpf_maps: bpf_maps(),
            bpf_links: bpf_links(),
            mounts: mounts(),
        })
    }

    fn in_use(&self) -> Option<String> {
        let Status { enabled, pid, .. } = self.audit;
        let is_used = enabled != 0 || pid != 0 || self.audit_rules != 0;
        is_used.then(|| format!("enabled {enabled}, pid {pid}, {} rules", self.audit_rules))
    }

    /// Differences from the state before; the kernel gets some time to free what was closed.
    fn differences_when_settled(&self) -> Vec<String> {
        let deadline = Instant::now() + FREEING_MAX;
        loop {
            let found = self.differences();
            if found.is_empty() || Instant::now() > deadline {
                return found;
            }
            // Freeing BPF programs ends with an RCU grace period, for which there is no
            // notification.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn differences(&self) -> Vec<String> {
        let mut found = Vec::new();
        match State::now() {
            Err(error) => found.push(format!("audit socket: {error}")),
            Ok(now) => {
                if now.audit != self.audit {
                    found.push(format!("audit: {:?}, was {:?}", now.audit, self.audit));
                }
                if now.audit_rules != self.audit_rules {
                    found.push(format!("{} kernel audit rules", now.audit_rules));
                }
                let programs: Vec<_> = now.bpf_programs.difference(&self.bpf_programs).collect();
                if !programs.is_empty() {
                    found.push(format!("BPF programs {programs:?}"));
                }
                let maps: Vec<_> = now.bpf_maps.difference(&self.bpf_maps).collect();
                if !maps.is_empty() {
                    found.push(format!("BPF maps {maps:?}"));
                }
                let links: Vec<_> = now.bpf_links.difference(&self.bpf_links).collect();
                if !links.is_empty() {
                    found.push(format!("BPF links {links:?}"));
                }
                let mounts: Vec<_> = now.mounts.difference(&self.mounts).collect();
                if !mounts.is_empty() {
                    found.push(format!("mounts {mounts:?}"));
                }
            }
        }
        let children = children();
        if !children.is_empty() {
            found.push(format!("processes {children:?}"));
        }
        found
    }
}

/// Waits until one of these programs is gone.
pub(crate) fn await_fewer_programs(before: &BTreeSet<u32>) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while before.is_subset(&bpf_programs()) {
        assert!(Instant::now() < deadline, "BPF programs stay loaded");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Lines of the table of mounts. Other test programs may unmount theirs meanwhile.
fn mounts() -> BTreeSet<String> {
    let table = std::fs::read_to_string("/proc/self/mounts").expect("mounts are readable");
    table.lines().map(str::to_owned).collect()
}

/// Living children of this process; those that have ended are reaped.
fn children() -> Vec<String> {
    use rustix::process::{wait, WaitOptions};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    let tasks = std::fs::read_dir("/proc/self/task").expect("own threads are readable");
    let lists = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .map(|pid| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("{pid} {}", comm.trim())
        })
        .collect()
}

/// Cleans up after a failure, so that the next test starts from a clean state.
fn tidy_up(audit: &Status) {
    for child in children() {
        let pid = child
            .split(' ')
            .next()
            .and_then(|pid| pid.parse().ok())
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }
    let Ok(mut socket) = AuditSocket::open() else {
        return;
    };
    let _ = socket.set_enabled(0);
    let _ = socket.set_failure(audit.failure);
    let _ = socket.set_rate_limit(audit.rate_limit);
    let _ = socket.set_backlog_limit(audit.backlog_limit);
    let _ = socket.set_backlog_wait_time(audit.backlog_wait_time);
    for rule in socket.list_rules().unwrap_or_default() {
        let _ = socket.delete_rule(&rule);
    }
    let _ = socket.unregister();
}
