//! Tests of walks: they end where the kernel ends, see what the process saw, and take linear time.

use super::*;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Allows every step, and counts them.
#[derive(Default)]
struct Open(u32);

impl Gate for Open {
    fn may_wait(&mut self, _: u32) -> bool {
        self.0 += 1;
        true
    }
}

/// Allows no waits.
struct Closed;

impl Gate for Closed {
    fn may_wait(&mut self, _: u32) -> bool {
        false
    }
}

fn ino(object: &OwnedFd) -> u64 {
    rustix::fs::fstat(object).expect("fstat").st_ino
}

fn opened(path: &[u8], gate: &mut dyn Gate) -> Result<OwnedFd, Fault> {
    let mut devices = Devices::default();
    open(path, true, &mut Access::to(path, gate, &mut devices))
}

/// The inode number that a walk by names finds at `path`, and the kernel's.
fn both(path: &Path, follow: bool) -> (Option<u64>, Option<u64>) {
    let bytes = path.as_os_str().as_bytes();
    let (mut gate, mut devices) = (Open::default(), Devices::default());
    let own = Asker {
        pid: std::process::id(),
        ..Asker::default()
    };
    let mut access = Access::of(bytes, own, &mut gate, &mut devices);
    let root = Root::of(bytes, &mut access).expect("the root directory");
    let mut walk = Walk::new(root, true).expect("a descriptor");
    let walked = walk.go(bytes, follow, &mut access);
    let walked = walked.and_then(|()| walk.end());
    let flags = if follow {
        through()
    } else {
        through() | OFlags::NOFOLLOW
    };
    let kernel = openat(CWD, path, flags, Mode::empty());
    (walked.ok().as_ref().map(ino), kernel.ok().as_ref().map(ino))
}

#[test]
fn a_walk_by_names_ends_where_the_kernel_ends() {
    let top = tempfile::tempdir().expect("a directory");
    let top = top.path();
    std::fs::create_dir_all(top.join("real/sub")).expect("mkdir");
    std::fs::write(top.join("real/file"), "x").expect("a file");
    for (text, name) in [
        ("real", "link"),
        ("link/sub", "chain"),
        ("../real/file", "real/up"),
        ("/proc/self/../mounts", "absolute"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
    ] {
        std::os::unix::fs::symlink(text, top.join(name)).expect("symlink");
    }
    for path in [
        "",
        "real",
        "real/",
        "real//sub/.",
        "real/sub/..",
        "real/file",
        "real/file/",
        "link",
        "link/",
        "link/sub",
        "chain",
        "chain/../file",
        "real/up",
        "real/up/",
        "absolute",
        "dangling",
        "dangling/",
        "loop",
        "loop/x",
        "real/nothing",
        "nothing/x",
        "real/file/x",
    ] {
        for follow in [false, true] {
            let (walked, kernel) = both(&top.join(path), follow);
            assert_eq!(walked, kernel, "{path} {follow}");
        }
    }
    assert_eq!(both(Path::new("/"), true).0, both(Path::new("/.."), true).1);
    let own = format!("/proc/{}/cwd", std::process::id());
    for path in [&own[..], &format!("{own}/.."), &format!("{own}/src")] {
        let (walked, kernel) = both(Path::new(path), true);
        assert!(walked.is_some() && walked == kernel, "{path}");
    }
}

#[test]
fn what_was_just_used_is_found_without_waiting() {
    let top = tempfile::tempdir().expect("a directory");
    let file = top.path().join("file");
    std::fs::write(&file, "x").expect("a file");
    let file = file.as_os_str().as_bytes();
    assert!(opened(file, &mut Closed).is_ok());
    let missing = [file, b"not"].concat();
    let _ = std::fs::metadata(std::ffi::OsStr::from_bytes(&missing));
    assert_eq!(opened(&missing, &mut Closed).err(), Some(Fault::Missing));
    let process = format!("/proc/{}/root", std::process::id());
    let seen = [process.as_bytes(), file].concat();
    assert!(opened(&seen, &mut Closed).is_ok());
}

/// What process `pid`, whose root directory is `prefix` or that of this process, sees at `path`.
fn seen_by(pid: u32, prefix: &[u8], path: &[u8]) -> Result<OwnedFd, Fault> {
    let path = [prefix, path].concat();
    let asker = Asker {
        pid,
        prefix: prefix.len() as u32,
        ..Asker::default()
    };
    let (mut gate, mut devices) = (Open::default(), Devices::default());
    open(
        &path,
        true,
        &mut Access::of(&path, asker, &mut gate, &mut devices),
    )
}

#[test]
fn descriptors_of_this_process_are_not_taken_for_those_of_another() {
    for path in [
        &b"/dev/fd/0"[..],
        b"/proc/self/fd/0",
        b"/proc/thread-self/cwd",
    ] {
        let found = opened(path, &mut Open::default());
        assert_eq!(found.err(), Some(Fault::NotNow), "{path:?}");
    }
}

#[test]
fn links_to_the_files_of_the_calling_process_lead_to_those_of_the_asker() {
    let top = tempfile::tempdir().expect("a directory");
    let input = std::fs::File::create(top.path().join("input")).expect("a file");
    let expected = std::os::unix::fs::MetadataExt::ino(&input.metadata().expect("fstat"));
    std::os::unix::fs::symlink("/dev/fd", top.path().join("link")).expect("symlink");
    std::os::unix::fs::symlink("/proc/self/fd/0", top.path().join("input-link")).expect("symlink");
    let mut other = std::process::Command::new("sleep")
        .arg("60")
        .stdin(input)
        .spawn()
        .expect("sleep(1)");
    let links = ["link/0", "input-link"].map(|name| top.path().join(name));
    let links = links.iter().map(|path| path.as_os_str().as_bytes());
    for path in [&b"/dev/fd/0"[..], b"/proc/self/fd/0"]
        .into_iter()
        .chain(links)
    {
        for prefix in [String::new(), format!("/proc/{}/root", other.id())] {
            let found = seen_by(other.id(), prefix.as_bytes(), path).expect("it is there");
            assert_eq!(ino(&found), expected, "{path:?}");
        }
    }
    other.kill().expect("it is there");
    other.wait().expect("it is there");
    let gone = seen_by(other.id(), b"", b"/dev/fd/0");
    assert_eq!(gone.err(), Some(Fault::NotNow));
    let root = format!("/proc/{}/root", other.id());
    let gone = seen_by(other.id(), root.as_bytes(), b"/etc/passwd");
    assert_eq!(gone.err(), Some(Fault::NotNow));
}

#[test]
fn a_link_of_a_process_in_another_root_does_not_leave_it() {
    let top = tempfile::tempdir().expect("a directory");
    let jail = top.path().join("jail");
    std::fs::create_dir_all(jail.join("etc")).expect("mkdir");
    std::fs::write(jail.join("etc/passwd"), "x").expect("a file");
    for (text, name) in [
        ("/etc/passwd", "absolute"),
        ("../../../../etc/passwd", "up"),
    ] {
        std::os::unix::fs::symlink(text, jail.join(name)).expect("symlink");
    }
    let inside = openat(CWD, jail.join("etc/passwd"), through(), Mode::empty());
    let inside = ino(&inside.expect("the file"));
    let prefix = jail.as_os_str().as_bytes();
    for path in [
        &b"/absolute"[..],
        b"/up",
        b"/../../etc/passwd",
        b"/etc/../../absolute",
    ] {
        for is_walked in [false, true] {
            let whole = [prefix, path].concat();
            let asker = Asker {
                pid: std::process::id(),
                prefix: prefix.len() as u32,
                ..Asker::default()
            };
            let (mut gate, mut devices, mut trail) =
                (Open::default(), Devices::default(), Trail::default());
            let mut access = Access::of(&whole, asker, &mut gate, &mut devices);
            if is_walked {
                access = access.noting(&mut trail);
            }
            let found = open(&whole, true, &mut access).expect("it is there");
            assert_eq!(ino(&found), inside, "{path:?} {is_walked}");
        }
    }
}

#[test]
fn roots_of_processes_are_known() {
    for (path, expected) in [
        ("/proc/7/root/etc/passwd", Some(12)),
        ("/proc/7/root//etc", Some(12)),
        ("/proc/7/root/", Some(12)),
        ("/proc/7/root", Some(12)),
        ("/proc/x/root/a", None),
        ("/proc//root/a", None),
        ("/proc/7/rooted/a", None),
    ] {
        assert_eq!(root_of_process(path.as_bytes()), expected, "{path}");
    }
}

/// Counts the steps of a walk, and allows so many.
struct Counted(std::cell::Cell<u32>, u32);

impl Gate for Counted {
    fn may_wait(&mut self, _: u32) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > self.1
    }
}

#[test]
fn the_directories_above_are_found_in_a_step_each_however_deep() {
    let top = tempfile::tempdir().expect("a directory");
    let top = top.path().canonicalize().expect("its path");
    let (mut path, mut depth) = (top.as_os_str().as_bytes().to_vec(), 0);
    let above_top = path.iter().filter(|&&byte| byte == b'/').count();
    let mut dir = openat(CWD, &top, through(), Mode::empty()).expect("open");
    for wanted in [1, 10, 300, 3000] {
        while depth < wanted {
            rustix::fs::mkdirat(&dir, "d", Mode::RWXU).expect("mkdir");
            dir = openat(&dir, "d", through(), Mode::empty()).expect("open");
            path.extend_from_slice(b"/d");
            depth += 1;
        }
        // The last of the names, and then such as do not exist.
        for missing in [&b"/x"[..], b"/x/y/z"] {
            let (mut gate, mut devices) = (Counted(0.into(), u32::MAX), Devices::default());
            let path = [&path[..], missing].concat();
            let mut access = Access::to(&path, &mut gate, &mut devices);
            let above =
                crate::lookup::files::above(&path, 10_000, &mut access).expect("they are known");
            assert!(above.is_all);
            assert_eq!(above.objects.len(), above_top + depth);
            assert_eq!(above.objects[0].ino, ino(&dir));
            let steps = gate.0.get() as usize;
            assert!(steps <= 2 * (above_top + depth) + 10, "{steps} at {depth}");
        }
    }
    let below = |prefix: &[u8], steps_max, time| {
        let asker = Asker {
            pid: std::process::id(),
            prefix: prefix.len() as u32,
            ..Asker::default()
        };
        let (mut gate, mut devices) = (Counted(0.into(), time), Devices::default());
        let mut access = Access::of(&path, asker, &mut gate, &mut devices);
        let above = crate::lookup::files::above(&path, steps_max, &mut access);
        above.map(|above| (above.objects.len(), above.is_all))
    };
    let root = top.as_os_str().as_bytes();
    assert_eq!(below(root, 10_000, u32::MAX), Ok((2999, true)));
    assert_eq!(below(root, 2048, u32::MAX), Ok((2048, false)));
    assert_eq!(below(root, 2048, 10), Err(Fault::NotNow));
    remove(&top, depth);
}

/// Removes the directories `d` of a chain, which is too deep for recursion.
fn remove(top: &Path, depth: usize) {
    let open = |dir: &OwnedFd, name| openat(dir, name, through(), Mode::empty()).expect("open");
    let mut dir = openat(CWD, top, through(), Mode::empty()).expect("open");
    for _ in 1..depth {
        dir = open(&dir, "d");
    }
    for _ in 0..depth {
        rustix::fs::unlinkat(&dir, "d", rustix::fs::AtFlags::REMOVEDIR).expect("rmdir");
        dir = open(&dir, "..");
    }
}
