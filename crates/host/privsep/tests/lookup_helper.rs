//! A real helper process gives the answers that the kernel gives this process, also on a busy
//! machine. As root: a helper gives up rights. This program has no test harness, since the helper
//! is this program with the hidden command.

use compose::{kernel_dev, ExecutedFile, System};
use plan::ObjectId;
use privsep::lookup::{Remote, COMMAND};
use record::record::Inode;
use record::{HashedFile, NoDigest};
use rustix::fs::{lstat, stat, Mode, Stat, CWD};
use std::ffi::{CString, OsStr};
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{chown, symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An id that neither this process nor the helper has.
const OTHER: u32 = 61_249;
/// `security.capability`: cap_chown, permitted and effective, of version 2.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() == Some(OsStr::new(COMMAND)) {
        let ended = privsep::lookup::serve_as(arguments.next().as_deref());
        std::process::exit(i32::from(ended.is_err()));
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a helper gives up the rights of root");
        return;
    }
    let top = tempfile::tempdir().expect("a directory");
    let top = top.path().canonicalize().expect("its path");
    make(&top);
    let paths = paths(&top);
    let (remote, started) = Remote::start(privsep::spawn::Launcher::Here, |_| false);
    started.expect("a helper");
    for path in &paths {
        answers_as_the_kernel(&remote, path);
    }
    println!("{} paths: ok", paths.len());
    for command in [&["sh"][..], &["unshare", "-m", "sh"]] {
        has_the_kernels_device(&remote, &top, command);
    }
    sees_what_only_tracers_see(&remote);
    hashes_programs(&remote);
    has_time_on_a_busy_machine(&remote, &top.join("real/file"));
    println!("on a busy machine: ok");
    let counts = remote.counts();
    assert_eq!((counts.unanswered, counts.replaced), (0, 0), "{counts:?}");
}

/// Program and mount namespace of other processes, for a daemon that may not trace them.
fn sees_what_only_tracers_see(remote: &Remote) {
    let own = std::process::id();
    let exe = std::fs::read_link("/proc/self/exe").expect("this program");
    let found = remote.executable(own);
    assert_eq!(found.as_deref(), Some(exe.as_os_str().as_bytes()));
    assert_eq!(
        remote.mount_namespace(Some(own)),
        remote.mount_namespace(None)
    );
    let mut other = Command::new("unshare")
        .args(["-m", "sh", "-c", "echo; read end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare(1)");
    let mut line = String::new();
    let said = other.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut line).expect("it runs");
    let pid = other.id();
    let namespace = stat(format!("/proc/{pid}/ns/mnt")).expect("its namespace");
    assert_eq!(remote.mount_namespace(Some(pid)), Some(namespace.st_ino));
    assert_ne!(
        remote.mount_namespace(Some(pid)),
        remote.mount_namespace(None)
    );
    drop(other.stdin.take());
    other.wait().expect("its end");
    assert_eq!(remote.mount_namespace(Some(pid)), None);
    println!("what only tracers see: ok");
}

/// Digests of a program that has not changed for long, and what one costs once it is known.
fn hashes_programs(remote: &Remote) {
    const ROUNDS: u32 = 2000;
    let path = Path::new("/bin/true").canonicalize().expect("a path");
    let path = CString::new(path.as_os_str().as_bytes()).expect("a path");
    let inode = remote.inode(&path, true).expect("a program");
    let executed = |time_ns| ExecutedFile {
        path: &path,
        object: ObjectId {
            dev: inode.dev,
            ino: inode.ino,
        },
        file: HashedFile::Exe,
        pid: std::process::id(),
        mnt_ns: remote.mount_namespace(None).expect("a namespace") as u32,
        time_ns,
    };
    let none = remote.digests(&executed(remote.monotonic_ns()));
    assert_eq!(none.sha256, Err(NoDigest::Unanswered), "digests are off");
    let begin = Instant::now();
    remote.set_hashes(Some(1 << 30)).expect("a helper");
    println!("a helper that hashes runs after {:?}", begin.elapsed());
    let first = remote.digests(&executed(remote.monotonic_ns())).sha256;
    if first == Err(NoDigest::FileSystem) || first == Err(NoDigest::Unreadable) {
        println!("skipped: digests: {first:?}: the file system of /bin/true, or no CAP_LEASE");
        return;
    }
    let end = Instant::now() + Duration::from_secs(60);
    let digest = loop {
        match remote.digests(&executed(remote.monotonic_ns())).sha256 {
            Ok(digest) => break digest,
            Err(why) => assert!(why == NoDigest::Busy && Instant::now() < end, "{why:?}"),
        }
    };
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let output = Command::new("sha256sum").arg("/bin/true").output();
    let output = output.expect("sha256sum(1)").stdout;
    assert!(output.starts_with(text.as_bytes()), "{text}");
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let now = executed(remote.monotonic_ns());
        assert_eq!(remote.digests(&now).sha256, Ok(digest));
    }
    println!("a known digest takes {:?}", begin.elapsed() / ROUNDS);
    remote.set_hashes(None).expect("the helper ends");
}

/// Makes objects of every kind below `top`.
fn make(top: &Path) {
    let at = |name: &str| top.join(name);
    for dir in ["real/sub", "sticky", "own", "closed"] {
        std::fs::create_dir_all(at(dir)).expect(dir);
    }
    for file in ["real/file", "closed/file", "sticky/file"] {
        std::fs::write(at(file), "#!/bin/sh\n").expect(file);
        let mode = Permissions::from_mode(0o755);
        std::fs::set_permissions(at(file), mode).expect(file);
    }
    let flags = rustix::fs::XattrFlags::empty();
    let name = "security.capability";
    rustix::fs::setxattr(at("real/file"), name, &CAPABILITY, flags).expect("setxattr");
    for (text, name) in [
        ("real", "link"),
        ("real/file", "to-file"),
        ("link/sub", "chain"),
        ("../real/file", "real/up"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
        ("file", "sticky/of-other"),
        ("file", "sticky/of-root"),
    ] {
        symlink(text, at(name)).expect(name);
    }
    symlink(at("real"), at("absolute")).expect("absolute");
    let own = std::process::id();
    symlink(format!("/proc/{own}/root/etc"), at("into-proc")).expect("into-proc");
    std::os::unix::fs::lchown(at("sticky/of-other"), Some(OTHER), Some(OTHER)).expect("lchown");
    chown(at("closed"), Some(OTHER), Some(OTHER)).expect("chown");
    set_mode(&at("closed"), 0);
    set_mode(&at("sticky"), 0o1777);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, at("fifo"), fifo, Mode::RWXU, 0).expect("mknod");
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bind");
}

/// Names below `top`, of what [`make`] makes there and of nothing.
const NAMES: [&str; 36] = [
    "",
    "real",
    "real/",
    "real//sub/.",
    "real/sub/..",
    "real/file",
    "real/file/",
    "real/file/x",
    "link",
    "link/",
    "link/sub",
    "link/./file",
    "chain",
    "chain/../file",
    "real/up",
    "real/up/",
    "to-file",
    "to-file/",
    "dangling",
    "dangling/",
    "loop",
    "loop/x",
    "nothing",
    "nothing/x",
    "absolute",
    "absolute/file",
    "into-proc",
    "into-proc/passwd",
    "closed/file",
    "closed/none",
    "sticky/of-other",
    "sticky/of-root",
    "sticky/of-other/",
    "fifo",
    "fifo/",
    "socket",
];

const ABSOLUTE: [&str; 14] = [
    "/",
    "//",
    "/..",
    "/.",
    "/etc",
    "/etc/passwd",
    "//etc//passwd",
    "/dev/null",
    "/dev/zero",
    "/proc",
    "/proc/1/status",
    "/proc/1/exe",
    "/proc/sys/kernel/ostype",
    "/proc/1/root",
];

/// Below the directory of a process in proc(5).
const OF_PROCESS: [&str; 11] = [
    "root",
    "root/",
    "root//",
    "root//etc",
    "root/..",
    "cwd",
    "cwd/..",
    "exe",
    "exe/",
    "fd",
    "nothing",
];

/// Paths that lead to what [`make`] made, elsewhere, or to nothing.
fn paths(top: &Path) -> Vec<PathBuf> {
    let at = |name: &str| top.join(name);
    let own = std::process::id();
    let mut paths: Vec<PathBuf> = NAMES.map(at).into();
    let seen = format!("/proc/{own}/root{}", top.display());
    paths.extend(paths.clone().iter().map(|path| {
        let below = path.strip_prefix(top).expect("it is below");
        PathBuf::from(format!("{seen}/{}", below.display()))
    }));
    let slashes = top.display().to_string().replace('/', "//");
    paths.extend(ABSOLUTE.map(PathBuf::from));
    for path in OF_PROCESS {
        paths.push(format!("/proc/{own}/{path}").into());
    }
    paths.push(format!("{slashes}//real///file").into());
    paths.push(at(&"n".repeat(256)));
    paths.push(at(&"./".repeat(2500)).join("real/file"));
    paths.push(at(&"real/../".repeat(1000)).join("to-file"));
    paths.push(at(&"x/".repeat(2500)));
    paths
}

fn set_mode(path: &Path, mode: u32) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("chmod");
}

/// Asks every question about `path`, with its names in the kernel's cache and possibly not.
fn answers_as_the_kernel(remote: &Remote, path: &Path) {
    let asked = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
    let brief: String = path.display().to_string().chars().take(200).collect();
    let short = path.as_os_str().len() < 4096;
    for _ in 0..2 {
        for follow in [false, true] {
            let found = remote.inode(&asked, follow);
            let mut expected = match (short, follow) {
                (true, true) => stat(path).ok().map(inode_of),
                (true, false) => lstat(path).ok().map(inode_of),
                // The kernel takes no such path at once.
                (false, _) => long(path, follow),
            };
            if let (Some(found), Some(expected)) = (&found, &mut expected) {
                if has_devices_of_its_own(path) {
                    expected.dev = found.dev;
                }
            }
            assert_eq!(found, expected, "{brief} {follow}");
        }
        if !short {
            continue;
        }
        let real = std::fs::canonicalize(path).ok();
        let real = real.map(|real| real.into_os_string().into_encoded_bytes());
        assert_eq!(remote.real_path(&asked), real, "{brief}");
        let mut value = [0; 24];
        let len = rustix::fs::getxattr(path, "security.capability", &mut value).ok();
        let value = len.map(|len| value[..len].to_vec());
        assert_eq!(remote.file_capabilities(&asked, None), value, "{brief}");
        let kind = rustix::fs::statfs(path)
            .ok()
            .map(|found| found.f_type as u32);
        assert_eq!(remote.file_system(&asked), kind, "{brief}");
        let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
        let is_read = is_file && path.ends_with("file");
        let head = is_read.then(|| std::fs::read(path).expect("a file"));
        if let Some(head) = head {
            assert_eq!(remote.head(&asked, None, 4096), Some(head), "{brief}");
        }
    }
}

/// Whether stat(2) shows other devices than the kernel's: on btrfs and overlayfs.
fn has_devices_of_its_own(path: &Path) -> bool {
    const BTRFS_AND_OVERLAYFS: [u32; 2] = [0x9123_683e, 0x794c_7630];
    let found = rustix::fs::statfs(path);
    found.is_ok_and(|found| BTRFS_AND_OVERLAYFS.contains(&(found.f_type as u32)))
}

/// Mounts overlayfs over two file systems in a shell that `command` runs. stat(2) shows a device of its own for files
/// there, and the kernel's for directories: `ovl_map_dev_ino()`, fs/overlayfs/inode.c.
fn has_the_kernels_device(remote: &Remote, top: &Path, command: &[&str]) {
    const SCRIPT: &str =
        "mkdir -p low up mix && mount -t tmpfs none low && echo text >low/file && chmod +x low/file && \
        mkdir -p up/files up/work && \
        mount -t overlay -o lowerdir=low,upperdir=up/files,workdir=up/work,xino=off none mix && \
        echo mounted; read _; umount mix low";
    let mut shell = Command::new(command[0])
        .args(&command[1..])
        .args(["-c", SCRIPT])
        .current_dir(top)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let said = shell.stdout.take().expect("a pipe");
    let first = BufReader::new(said).lines().next();
    let dir = PathBuf::from(format!("/proc/{}/root{}/mix", shell.id(), top.display()));
    let file = dir.join("file");
    let device = |path: &Path| stat(path).map(|found| kernel_dev(found.st_dev));
    match (device(&dir), device(&file)) {
        (Ok(dev), Ok(shown)) if shown != dev => {
            let path = CString::new(file.as_os_str().as_bytes()).expect("no NUL");
            let found = remote.inode(&path, true).expect("the file");
            assert_eq!((found.dev, found.mode), (dev, 0o100755), "{command:?}");
            let ino = found.ino;
            let head = |dev| remote.head(&path, Some(ObjectId { dev, ino }), 4);
            assert_eq!(head(dev), Some(b"text".to_vec()));
            assert_eq!(head(shown), None);
            println!("the device on overlayfs, {}: ok", command[0]);
        }
        _ => println!("skipped: devices on overlayfs: {first:?}"),
    }
    // The shell unmounts when its standard input ends.
    drop(shell.stdin.take());
    shell.wait().expect("its status");
}

/// Result of stat(2), reached name by name.
fn long(path: &Path, follow: bool) -> Option<Inode> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let mut dir = rustix::fs::open("/", flags, Mode::empty()).ok()?;
    let names: Vec<&OsStr> = path
        .as_os_str()
        .as_bytes()
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
        .map(OsStr::from_bytes)
        .collect();
    let (last, before) = names.split_last()?;
    for name in before {
        dir = rustix::fs::openat(&dir, *name, flags, Mode::empty()).ok()?;
    }
    let flags = if follow {
        rustix::fs::AtFlags::empty()
    } else {
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW
    };
    rustix::fs::statat(&dir, *last, flags).ok().map(inode_of)
}

fn inode_of(stat: Stat) -> Inode {
    Inode {
        ino: stat.st_ino,
        dev: kernel_dev(stat.st_dev),
        mode: stat.st_mode as u16,
        ouid: stat.st_uid,
        ogid: stat.st_gid,
        rdev: kernel_dev(stat.st_rdev),
        label: 0,
    }
}

/// The helper shares a processor with threads that use nearly all of it, and announces before every
/// answer that it waits for a local file system.
fn has_time_on_a_busy_machine(remote: &Remote, file: &Path) {
    let helper = remote.pid().expect("a helper");
    let mut one = rustix::thread::CpuSet::new();
    one.set(0);
    rustix::thread::sched_setaffinity(Some(helper), &one).expect("it is on one processor");
    let idle = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads the parameter, which outlives the call.
    let is_set =
        unsafe { libc::sched_setscheduler(helper.as_raw_nonzero().get(), libc::SCHED_IDLE, &idle) };
    assert_eq!(is_set, 0, "the helper has the least priority");
    let path = CString::new(file.as_os_str().as_bytes()).expect("no NUL");
    let is_over = AtomicBool::new(false);
    let mut longest = Duration::ZERO;
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                rustix::thread::sched_setaffinity(None, &one).expect("it is on one processor");
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let start = Instant::now();
        let mut wrong = 0;
        while start.elapsed() < Duration::from_secs(6) {
            let asked = Instant::now();
            wrong += u32::from(remote.file_capabilities(&path, None) != Some(CAPABILITY.to_vec()));
            wrong += u32::from(remote.head(&path, None, 2) != Some(b"#!".to_vec()));
            longest = longest.max(asked.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(wrong, 0, "answers after at most {longest:?}");
    });
    println!("the longest of the answers came after {longest:?}");
}
