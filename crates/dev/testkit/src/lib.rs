//! Parts that tests of several crates share: the lock of the machine, whether it runs BPF programs, the programs that
//! `make test` gives them, servers to send to, and the judges of `tests/evade` and `tests/vm/ancestors`.

pub mod ancestors;
mod audit_package;
pub mod calls;
mod connections;
mod damage;
pub mod evade;
pub mod servers;
pub mod wait;

pub use audit_package::AuditPackage;
pub use connections::serve_connections;
pub use damage::{corpus, corpus_lines, damage_seeds, of_two_nodes, Numbers};
use rustix::fs::{flock, FlockOperation};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Waits until no other test uses the kernel's audit and BPF, and locks others out while the file
/// is open.
///
/// # Panics
/// The lock file cannot be made or locked.
pub fn machine_lock() -> File {
    let path = std::env::temp_dir().join("tarsier-audit-test.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .expect("the lock file opens");
    flock(&file, FlockOperation::LockExclusive).expect("the lock is taken");
    file
}

/// The [`machine_lock`]; where BPF programs cannot be loaded, prints what is skipped and returns
/// `None`.
///
/// # Panics
/// The lock file cannot be made or locked.
pub fn may_load_programs() -> Option<File> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: BPF programs: not root");
        return None;
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("skipped: BPF programs: the kernel has no BTF");
        return None;
    }
    Some(machine_lock())
}

/// Number of times that a test repeats something: `few`, or `many` if `TARSIER_LONG_TESTS` is set.
pub fn times<N>(few: N, many: N) -> N {
    match std::env::var_os("TARSIER_LONG_TESTS") {
        Some(_) => many,
        None => few,
    }
}

/// The directory of the distribution's audit programs (`scripts/peers`); without them, prints that
/// `what` is skipped and returns `None`.
pub fn peers(what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("TARSIER_PEERS");
    if root.is_none() {
        println!("skipped: {what}: TARSIER_PEERS is not set");
    }
    root.map(PathBuf::from)
}
