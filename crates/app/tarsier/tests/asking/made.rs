//! Synthetic logs, and searches in them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) const BASE_S: u64 = 1_700_000_000;

fn tarsier(command: &str, words: &[&str]) -> Command {
    let mut tarsier = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    tarsier
        .arg(command)
        .args(words)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .stdin(Stdio::null());
    tarsier
}

pub(crate) fn search(words: &[&str]) -> Command {
    tarsier("search", words)
}

pub(crate) fn report(words: &[&str]) -> Command {
    tarsier("report", words)
}

/// Standard output of a search, whether it finds something or not.
pub(crate) fn printed(words: &[&str]) -> String {
    let output = output(&mut search(words));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn output(command: &mut Command) -> Output {
    command.output().expect("it runs")
}

/// Standard output of a search that finds something.
pub(crate) fn found(words: &[&str]) -> String {
    let output = output(&mut search(words));
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{words:?}: {error}{out}");
    out.into_owned()
}

/// A SYSCALL record of second `at` with further records.
pub(crate) fn call(
    at: u64,
    serial: u64,
    call: u32,
    exit: i64,
    task: &str,
    others: &[&str],
) -> String {
    let stamp = format!("msg=audit({}.000:{serial}):", BASE_S + at);
    let success = if exit < 0 { "no" } else { "yes" };
    let (task, names) = task.split_once('\x1d').unwrap_or((task, ""));
    let mut text = format!(
        "type=SYSCALL {stamp} arch=c000003e syscall={call} success={success} exit={exit} a0=7ffd1 a1=2 a2=0 a3=0 \
         items={} {task} exe=\"/usr/bin/x\" key=\"watched\"",
        others.len()
    );
    if !names.is_empty() {
        let _ = write!(text, "\x1d{names}");
    }
    text.push('\n');
    for other in others {
        let (kind, rest) = other.split_once(' ').expect("type and fields");
        let _ = writeln!(text, "type={kind} {stamp} {rest}");
    }
    text
}

pub(crate) fn task(pid: u32, ppid: u32, comm: &str) -> String {
    format!(
        "ppid={ppid} pid={pid} auid=0 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses={} \
         comm=\"{comm}\"",
        pid / 100
    )
}

pub(crate) fn write(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a written log");
    path
}
