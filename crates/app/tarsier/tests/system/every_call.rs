//! Rules of every kind select the calls that they select under the kernel's audit.

use crate::daemon::Setup;
use crate::{machine, programs};
use abi::Arch;
use std::fs::read_to_string;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testkit::calls::Comparison;

/// The page with the table of differences, which `TARSIER_WRITE_CALLS=1` writes.
const PAGE: &str = "docs/reference/calls.md";
const BEGIN: &str = "<!-- begin of the table -->\n";
const END: &str = "<!-- end of the table -->\n";

/// The program of tests/calls.
fn program() -> PathBuf {
    let mut build = Command::new(programs::checkout().join("scripts/build-calls"));
    let (path, _) = programs::output_of(&mut build);
    path.trim().into()
}

/// Lines `ENTRY NAME NUMBER` of all calls of this machine, and of io_uring's operations.
fn numbers() -> String {
    let of = |arch, entry| {
        abi::syscalls(arch).map(move |(number, name)| format!("{entry} {name} {number}\n"))
    };
    let native = of(Arch::X86_64, "b64");
    let operations = abi::uring_ops().map(|(number, name)| format!("uring {name} {number}\n"));
    let calls = native.chain(of(Arch::I386, "b32"));
    calls.chain(operations).collect()
}

/// Makes all calls under an engine. Returns those that are selected.
fn make(setup: &Setup, engine: &str) -> String {
    let bin = setup.path("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).expect("a directory");
        std::fs::write(setup.path("numbers"), numbers()).expect("a file");
        for (program, name) in [(program(), "calls"), (programs::tarsier(), "tarsier")] {
            symlink(program, bin.join(name)).expect("a link");
        }
    }
    let suite = programs::checkout().join("tests/calls");
    let path = std::env::var("PATH").expect("a path");
    let output = Command::new(suite.join("run"))
        .arg(&suite)
        .arg(setup.path("objects"))
        .arg(engine)
        .env("PATH", format!("{}:{path}", bin.display()))
        .current_dir(setup.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("tests/calls/run starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    read_to_string(setup.path(&format!("{engine}.selected"))).expect("the selected calls")
}

/// Lines `KIND ENTRY NAME` of `ours` and `kernel`, in which an operation of io_uring is compared with the call that does
/// the same: under the kernel's audit, names of operations are in the event of another call. Rules without names are
/// compared with the kernel's, which never audits some operations.
fn operations_like_calls(ours: &str, kernel: &str) -> (String, String) {
    const WITHOUT_NAMES: [&str; 2] = ["exe", "uid"];
    const OF_OBJECTS: [&str; 11] = [
        "path",
        "dir",
        "read",
        "write",
        "execute",
        "attribute",
        "watch",
        "inode",
        "devmajor",
        "obj_uid",
        "saddr_fam",
    ];
    let parts = |line: &str| -> [String; 3] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        words.try_into().expect("KIND ENTRY NAME")
    };
    let is_audited = |name: &str| abi::uring_op_number(name).is_some_and(abi::uring_op_is_audited);

    let mut wanted: Vec<String> = Vec::new();
    for line in kernel.lines() {
        let [kind, entry, name] = parts(line);
        if entry != "uring" || WITHOUT_NAMES.contains(&kind.as_str()) && is_audited(&name) {
            wanted.push(line.to_owned());
        }
    }
    for (number, name) in abi::uring_ops() {
        let Some(call) = abi::uring_op_calls(number).first() else {
            continue;
        };
        let like = ours.lines().map(parts).filter(|[kind, entry, twin]| {
            entry == "b64" && twin == call && OF_OBJECTS.contains(&kind.as_str())
        });
        wanted.extend(like.map(|[kind, ..]| format!("{kind} uring {name}")));
    }

    let is_compared = |line: &&str| {
        let [kind, entry, name] = parts(line);
        let is_more = !WITHOUT_NAMES.contains(&kind.as_str()) || !is_audited(&name);
        entry != "uring" || !is_more || wanted.iter().any(|other| other == line)
    };
    let ours: Vec<&str> = ours.lines().filter(is_compared).collect();
    (ours.join("\n"), wanted.join("\n"))
}

#[test]
fn each_kind_of_rule_selects_the_calls_that_it_selects_in_the_kernel() {
    machine::test("every call", |setup| {
        let (kernel, ours) = (make(setup, "kernel"), make(setup, "tracepoint"));
        let (ours, kernel) = operations_like_calls(&ours, &kernel);
        let listed = programs::checkout().join("tests/calls/differences");
        let listed = read_to_string(listed).expect("the differences");
        let comparison =
            Comparison::of("tracepoint", &ours, &kernel, &listed).expect("texts of their form");
        println!("every call: {} pairs selected", comparison.selected);
        // Most calls of both entries, by the kinds of rules that ask for no object.
        assert!(comparison.selected > 3000, "{}", comparison.selected);
        assert_eq!(comparison.unlisted, [""; 0]);

        let page = programs::checkout().join(PAGE);
        let text = read_to_string(&page).expect("the page");
        let (before, rest) = text.split_once(BEGIN).expect("a table");
        let (_, after) = rest.split_once(END).expect("the end of the table");
        let table = comparison.table();
        if std::env::var_os("TARSIER_WRITE_CALLS").is_some() {
            let text = format!("{before}{BEGIN}{table}{END}{after}");
            std::fs::write(page, text).expect("the page is written");
        }
    });
}
