//! Digests of real files, in this process.

use super::*;
use crate::lookup::kernel::{monotonic_ns, mount_namespace, realtime_ns};
use crate::lookup::object::{changed, dev_of, stat, FileTime};
use plan::ObjectId;
use record::HashedFile;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const S_NS: u64 = 1_000_000_000;
const BYTES_MAX: u64 = 1 << 30;

struct Open;

impl Gate for Open {
    fn may_wait(&mut self, _: u32) -> bool {
        true
    }
}

struct Closed;

impl Gate for Closed {
    fn may_wait(&mut self, _: u32) -> bool {
        false
    }
}

/// A hasher that knows the time of every event since the boot.
fn hasher() -> Hasher {
    let mut hasher = Hasher::start().expect("threads");
    hasher.clock = EventClock::since_boot();
    hasher
}

/// Asks for a file that was executed at the time of its last change.
fn question(path: &Path, file: HashedFile) -> DigestQuestion<'_> {
    let found = File::open(path).expect("the file");
    let found = stat(&found).expect("statx");
    let own = mount_namespace(None).expect("the namespace");
    DigestQuestion {
        path: path.as_os_str().as_bytes(),
        object: ObjectId {
            dev: Devices::default().of(File::open(path).expect("the file"), &found, None),
            ino: found.stx_ino,
        },
        file,
        pid: std::process::id(),
        mnt_ns: own as u32,
        time_ns: monotonic(changed(&found)),
        bytes_max: BYTES_MAX,
    }
}

/// The time of CLOCK_MONOTONIC, in nanoseconds.
fn monotonic((seconds, nanoseconds): FileTime) -> u64 {
    let since_boot = realtime_ns() - monotonic_ns();
    (seconds as u64 * S_NS + u64::from(nanoseconds)).saturating_sub(since_boot)
}

fn ask(hasher: &mut Hasher, question: &DigestQuestion<'_>) -> Result<[u8; 32], NoDigest> {
    let mut devices = Devices::default();
    hasher.allowance = Allowance::new(Instant::now());
    // A busy machine may need more than one wait.
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match hasher
            .digests(question, Asker::default(), &mut Open, &mut devices)
            .sha256
        {
            Err(NoDigest::Busy) if Instant::now() < end => std::thread::yield_now(),
            found => return found,
        }
    }
}

/// Makes an executable file.
fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("its mode");
}

/// Whether times of files in this directory are trusted.
fn is_possible(dir: &Path, test: &str) -> bool {
    let found = rustix::fs::statfs(dir).expect("statfs").f_type as i64;
    let is_possible = judge::Kind::of(found) == Some(judge::Kind::Plain);
    if !is_possible {
        println!("skipped: {test}: the temporary directory is not on ext4 or XFS");
    }
    is_possible
}

fn directory(test: &str) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().expect("a directory");
    is_possible(dir.path(), test).then_some(dir)
}

#[test]
fn a_digest_depends_on_when_the_file_was_changed() {
    let Some(dir) = directory("times of files") else {
        return;
    };
    let path = dir.path().join("program");
    executable(&path, "contents");
    let mut hasher = hasher();
    let now = question(&path, HashedFile::Exe);
    let now = DigestQuestion {
        time_ns: now.time_ns + S_NS / 10,
        ..now
    };
    assert_eq!(ask(&mut hasher, &now), Err(NoDigest::Recent));
    let before = DigestQuestion {
        time_ns: now.time_ns.saturating_sub(10 * S_NS),
        ..now
    };
    assert_eq!(ask(&mut hasher, &before), Err(NoDigest::Changed));
    let later = DigestQuestion {
        time_ns: now.time_ns + S_NS,
        ..now
    };
    let digest = ask(&mut hasher, &later).expect("a digest");
    // Contents of the same length.
    executable(&path, "CONTENTS");
    let found = ask(&mut hasher, &later).expect("the change is before the event");
    assert_ne!(found, digest);
    // A script needs more certainty.
    let script = DigestQuestion {
        file: HashedFile::Script,
        ..later
    };
    assert_eq!(ask(&mut hasher, &script), Err(NoDigest::Recent));
    let script = DigestQuestion {
        time_ns: now.time_ns + 3 * S_NS,
        ..script
    };
    assert_eq!(ask(&mut hasher, &script), Ok(found));
    let too_big = DigestQuestion {
        bytes_max: 7,
        ..later
    };
    assert_eq!(ask(&mut hasher, &too_big), Err(NoDigest::TooBig));
}

#[test]
fn another_file_at_the_path_has_no_digest() {
    let Some(dir) = directory("another file at the path") else {
        return;
    };
    let at = |name: &str| dir.path().join(name);
    for name in ["one", "two"] {
        std::fs::create_dir(at(name)).expect("a directory");
        executable(&at(name).join("file"), name);
    }
    let path = at("one").join("file");
    let mut hasher = hasher();
    for file in [HashedFile::Exe, HashedFile::Script] {
        let asked = question(&path, file);
        // The directories change places, which leaves the times of the files as they are.
        let swap = rustix::fs::RenameFlags::EXCHANGE;
        let cwd = rustix::fs::CWD;
        rustix::fs::renameat_with(cwd, at("one"), cwd, at("two"), swap).expect("renameat2");
        let later = DigestQuestion {
            time_ns: asked.time_ns + 3 * S_NS,
            ..asked
        };
        assert_eq!(ask(&mut hasher, &later), Err(NoDigest::Gone), "{file:?}");
    }
    // The inode that the daemon has found may be the wrong one already.
    let misled = DigestQuestion {
        time_ns: monotonic_ns(),
        ..question(&path, HashedFile::Script)
    };
    assert_eq!(ask(&mut hasher, &misled), Err(NoDigest::Recent));
}

/// A running process, killed when dropped.
struct Running(Child);

impl Running {
    fn start(program: &Path) -> Running {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped());
        loop {
            // Another test may have forked while the file was open for writing.
            match command.spawn() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {}
                child => return Running(child.expect("it starts")),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_program_is_found_by_its_process() {
    let Some(dir) = directory("a running program") else {
        return;
    };
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("before")).expect("a directory");
    let path = at("before").join("cat");
    std::fs::copy("/bin/cat", &path).expect("a copy");
    let running = Running::start(&path);
    let asked = question(&path, HashedFile::Exe);
    let asked = DigestQuestion {
        time_ns: asked.time_ns + S_NS,
        pid: running.0.id(),
        ..asked
    };
    let mut hasher = hasher();
    let digest = ask(&mut hasher, &asked).expect("a digest");
    std::fs::rename(at("before"), at("after")).expect("rename");
    hasher.small.clear();
    assert_eq!(ask(&mut hasher, &asked), Ok(digest));
    let script = DigestQuestion {
        file: HashedFile::Script,
        ..asked
    };
    assert_eq!(ask(&mut hasher, &script), Err(NoDigest::Gone));
    let other = DigestQuestion {
        pid: std::process::id(),
        ..asked
    };
    assert_eq!(ask(&mut hasher, &other), Err(NoDigest::Gone));
}

#[test]
fn what_is_no_executable_file_is_not_read() {
    let Some(dir) = directory("what is no executable file") else {
        return;
    };
    let path = dir.path().join("secret");
    std::fs::write(&path, "secret").expect("a file");
    let mut hasher = hasher();
    let asked = |path| {
        let asked = question(path, HashedFile::Exe);
        DigestQuestion {
            time_ns: asked.time_ns + 10 * S_NS,
            ..asked
        }
    };
    assert_eq!(ask(&mut hasher, &asked(&path)), Err(NoDigest::Unreadable));
    let found = ask(&mut hasher, &asked(dir.path()));
    assert_eq!(found, Err(NoDigest::Unreadable));
    let version = Path::new("/proc/version");
    let found = ask(&mut hasher, &asked(version));
    assert!(found.is_err(), "{found:?}");
    executable(&path, "program");
    let program = asked(&path);
    let mut devices = Devices::default();
    let found = hasher.digests(&program, Asker::default(), &mut Closed, &mut devices);
    assert_eq!(found.sha256, Err(NoDigest::Unanswered));
    assert!(ask(&mut hasher, &program).is_ok());
}

#[test]
fn after_the_clock_was_set_nothing_from_before_is_known() {
    let program = Path::new("/bin/true").canonicalize().expect("a path");
    let mut hasher = Hasher::start().expect("threads");
    let asked = question(&program, HashedFile::Exe);
    let early = DigestQuestion {
        time_ns: 1,
        ..asked
    };
    assert_eq!(ask(&mut hasher, &early), Err(NoDigest::Clock));
}

#[test]
fn contents_are_named_by_everything_that_may_differ() {
    let file = File::open("/proc/self/exe").expect("this program");
    let found = stat(&file).expect("statx");
    let contents = find::contents(7, &found, vec![1]);
    assert_eq!(contents.dev, (7, dev_of(&found)));
    assert_eq!(contents.changed, changed(&found));
    assert_eq!(
        (contents.ino, contents.size),
        (found.stx_ino, found.stx_size)
    );
    assert_eq!(contents.handle, [1]);
}

#[test]
fn the_daemon_waits_for_a_twentieth_of_the_time_at_most() {
    let start = Instant::now();
    let mut allowance = Allowance::new(start);
    let mut waited = Duration::ZERO;
    for ms in 0..10_000 {
        let patience = allowance.at(start + Duration::from_millis(ms));
        assert!(patience <= Allowance::FILE_MAX);
        allowance.spend(patience);
        waited += patience;
    }
    let most = Duration::from_secs(10) / Allowance::PART + Allowance::MAX;
    assert!(waited <= most, "{waited:?}");
    assert!(waited > Duration::from_millis(400), "{waited:?}");
}
