//! `tarsier status --memory` beside the kernel's account of the daemon's memory cgroup.

use crate::{machine, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61248 -k mine\n";
const TOP: &str = "/sys/fs/cgroup/memory";

/// A memory cgroup of the first version; only there a thread can go in before it starts the daemon.
struct Account(PathBuf);

impl Account {
    fn new() -> Option<Account> {
        let path = Path::new(TOP).join("tarsier-memory-test");
        // One may be left from a test that was killed.
        let _ = fs::remove_dir(&path);
        match fs::create_dir(&path) {
            Ok(()) => Some(Account(path)),
            Err(error) => {
                println!("skipped: the kernel's account of memory: {TOP}: {error}");
                None
            }
        }
    }

    /// Makes what this thread starts from now on count here, or elsewhere.
    fn enter(directory: &Path) {
        let tid = rustix::thread::gettid().as_raw_nonzero().to_string();
        fs::write(directory.join("tasks"), tid).expect("the thread is moved");
    }

    /// Bytes of the kernel's memory that count here.
    fn kernel_bytes(&self) -> f64 {
        let text = fs::read_to_string(self.0.join("memory.kmem.usage_in_bytes"));
        let text = text.expect("the account is read");
        text.trim().parse().expect("a number")
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn memory_of_rings_maps_and_programs_adds_up_to_the_kernels_account() {
    machine::test("memory", |setup| {
        let Some(account) = Account::new() else {
            return;
        };
        Account::enter(&account.0);
        let daemon = setup.tarsier(RULE).format("raw").ring_kib(8192).start();
        Account::enter(Path::new(TOP));
        let mut status = Command::new(programs::tarsier());
        status.args(["status", "--memory", "--json", "--run-dir"]);
        let output = status
            .arg(setup.path("run"))
            .output()
            .expect("tarsier runs");
        assert!(output.status.success(), "{output:?}");
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let of = |name: &str| told[name].as_f64().expect("a number");
        let (told_bytes, kernel) = (
            of("rings") + of("tables") + of("maps") + of("programs"),
            account.kernel_bytes(),
        );
        println!("{told_bytes} bytes told, {kernel} in the kernel's account");
        assert!(
            (told_bytes / kernel - 1.0).abs() < 0.1,
            "{told_bytes} of {kernel}: {told}"
        );
        assert!(of("daemon") > 1e6 && of("helpers") > 0.0, "{told}");
        daemon.stop();
    });
}

/// Bytes in the kernel by an account as JSON.
fn kernel_bytes(output: &std::process::Output) -> f64 {
    assert!(output.status.success(), "{output:?}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let parts = ["rings", "tables", "maps", "programs"];
    parts
        .iter()
        .map(|name| told[name].as_f64().expect("a number"))
        .sum()
}

#[test]
fn what_the_plan_says_of_memory_is_what_the_daemon_has() {
    machine::test("memory-of-the-plan", |setup| {
        // Rings of the default size.
        let daemon = setup.tarsier(RULE).format("raw").ring_kib(4096).start();
        let told = daemon.asked(&["--memory", "--json"]);
        let engine = daemon.status()["engine"].to_string();
        daemon.stop();
        let mut plan = Command::new(programs::tarsier());
        plan.args([
            "plan",
            "--memory",
            "--json",
            "--engine",
            engine.trim_matches('"'),
        ]);
        plan.arg("--rules").arg(setup.path("test.rules"));
        let planned = plan.output().expect("tarsier runs");
        let (told, planned) = (kernel_bytes(&told), kernel_bytes(&planned));
        println!("{planned} bytes planned, {told} taken");
        assert!((planned / told - 1.0).abs() < 0.1, "{planned} of {told}");
    });
}
