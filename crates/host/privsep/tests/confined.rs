//! A process confines itself, and then tries. This program has no test harness: it starts itself, and each process has
//! one thread.

use privsep::confine::{InForce, Wanted, Writable};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [how, dir] = &args[..] {
        return confined(how, Path::new(dir));
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: confinement: only root has something to give up");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["inside", "outside"] {
        std::fs::create_dir(dir.path().join(name)).expect("a directory");
    }
    let run = |how: &str| -> Output {
        let mut own = Command::new("/proc/self/exe");
        own.arg(how).arg(dir.path()).output().expect("it runs")
    };
    let output = run("errors");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}{text}", output.status);
    assert!(said.ends_with("all tried\n"), "{said}");
    print!("{said}");
    let output = run("strict");
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGSYS),
        "{:?}",
        output.status
    );
    println!("strict: ok");
}

fn confined(how: &str, dir: &Path) {
    let wanted = Wanted {
        kills: how == "strict",
        writable: vec![
            Writable::Directory(dir.join("inside")),
            Writable::Directory(dir.join("absent")),
        ],
        ..Wanted::default()
    };
    let found = privsep::confine::apply(&wanted);
    if how == "strict" {
        let _ = Command::new("/bin/true").status();
        unreachable!("the call was to kill this process");
    }
    judge(&found, dir);
    what_the_kernel_says(&found);
    what_is_refused(dir, &found);
    what_still_works(dir);
    println!("all tried");
}

fn judge(found: &InForce, dir: &Path) {
    println!("missing: {:?}", found.missing);
    for missing in &found.missing {
        // A container may forbid the first, and a kernel lack the second.
        let may_miss = ["oom_score_adj: ", "Landlock: "];
        assert!(
            may_miss.iter().any(|part| missing.starts_with(part)),
            "{missing}"
        );
    }
    if let Some(landlock) = &found.landlock {
        assert_eq!(landlock.paths, [dir.join("inside")]);
    }
}

/// Compares with /proc/self/status, which names things otherwise.
fn what_the_kernel_says(found: &InForce) {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc(5)");
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}"))
            .trim()
            .to_owned()
    };
    let bits = |name: &str| u64::from_str_radix(&value(name), 16).expect("a set");
    assert_eq!(
        bits("CapEff:").count_ones() as usize,
        found.capabilities.len()
    );
    assert_eq!(bits("CapEff:"), bits("CapPrm:"));
    assert_eq!(bits("CapBnd:"), bits("CapEff:"));
    assert_eq!(bits("CapBnd:").count_ones() as usize, found.bounding.len());
    assert_eq!(bits("CapInh:"), 0);
    assert_eq!(
        (value("NoNewPrivs:"), value("Seccomp:")),
        ("1".into(), "2".into())
    );
    assert!(found.no_new_privs && !found.dumpable);
    for absent in [
        "sys_module",
        "sys_ptrace",
        "setuid",
        "setpcap",
        "sys_chroot",
        "dac_override",
    ] {
        assert!(
            !found.capabilities.iter().any(|name| name == absent),
            "{absent}"
        );
        assert!(
            !found.bounding.iter().any(|name| name == absent),
            "{absent}"
        );
    }
    assert!(
        found.capabilities.iter().any(|name| name == "bpf"),
        "{found:?}"
    );
}

fn refused<T>(what: &str, outcome: std::io::Result<T>) {
    match outcome {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what} was possible"),
    }
}

fn what_is_refused(dir: &Path, found: &InForce) {
    refused("a program", Command::new("/bin/true").status());
    refused("the network", std::net::TcpListener::bind("127.0.0.1:0"));
    let family = rustix::net::AddressFamily::PACKET;
    let packets = rustix::net::socket(family, rustix::net::SocketType::RAW, None);
    refused("packets", packets.map_err(std::io::Error::from));
    if found.landlock.is_none() {
        println!("skipped: writing elsewhere: no Landlock here");
        return;
    }
    let outside: PathBuf = dir.join("outside/file");
    refused("a file elsewhere", std::fs::write(outside, "x"));
    let shadow = std::fs::File::options().write(true).open("/etc/shadow");
    refused("/etc/shadow", shadow);
    refused(
        "a move",
        std::fs::rename(dir.join("outside"), dir.join("other")),
    );
    refused("another's program", std::fs::read_link("/proc/1/exe"));
}

fn what_still_works(dir: &Path) {
    std::fs::read_to_string("/etc/passwd").expect("reading is free");
    let inside = |name: &str| dir.join("inside").join(name);
    std::fs::write(inside("file"), "x").expect("its own directory");
    std::fs::rename(inside("file"), inside("file.1")).expect("rotation");
    std::fs::remove_file(inside("file.1")).expect("removal");
    let socket = std::os::unix::net::UnixListener::bind(inside("socket")).expect("a socket");
    drop(socket);
    let thread = std::thread::Builder::new().name("one-more".to_owned());
    let thread = thread.spawn(|| {
        let error = Command::new("/bin/true").status().map(|_| ());
        refused("a program of a thread", error);
    });
    thread.expect("a thread").join().expect("its end");
}
