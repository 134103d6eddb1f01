//! systemd in namespaces of its own, as the reference: what it would install for units.

use crate::generate::Unit;
use seccomp::text::from_hex;
use seccomp::Chain;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A systemd that can be started.
pub struct Systemd {
    /// Directory with the system that has it.
    root: PathBuf,
    pub version: u32,
    /// The libseccomp that it uses: each name of a call is in it, between zero bytes.
    libseccomp: Vec<u8>,
    /// Members of its sets, nested ones too.
    pub sets: BTreeMap<String, BTreeSet<String>>,
}

const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

const LIBRARIES: [&str; 3] = [
    "usr/lib/x86_64-linux-gnu/libseccomp.so.2",
    "usr/lib64/libseccomp.so.2",
    "usr/lib/libseccomp.so.2",
];

impl Systemd {
    /// The systemd below `root`, or what it lacks here.
    pub fn find(root: &str) -> Result<Systemd, String> {
        let analyze = |command: &str| {
            let mut analyze = Command::new("chroot");
            analyze.args([root, "systemd-analyze", command, "--no-pager"]);
            let output = analyze.output().map_err(|error| error.to_string())?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
            }
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        // SAFETY: asks for a number.
        if unsafe { libc::geteuid() } != 0 {
            return Err("not root".to_owned());
        }
        if !Path::new(root).join("lib/systemd/systemd").exists() {
            return Err(format!("{root} has no systemd"));
        }
        if !CGROUPS.iter().any(|path| is_cgroup2(path)) {
            return Err("cgroups of version 2 are not mounted".to_owned());
        }
        let libseccomp = LIBRARIES
            .iter()
            .find_map(|library| fs::read(Path::new(root).join(library)).ok());
        let version = analyze("--version")?;
        let version = version.split(' ').nth(1).and_then(|it| it.parse().ok());
        Ok(Systemd {
            root: root.into(),
            libseccomp: libseccomp.ok_or("libseccomp.so.2 is not found")?,
            version: version.ok_or("systemd-analyze --version has another form")?,
            sets: sets(&analyze("syscall-filter")?),
        })
    }

    /// Whether its libseccomp knows a call.
    pub fn knows(&self, name: &str) -> bool {
        let text = format!("\0{name}\0");
        let mut windows = self.libseccomp.windows(text.len());
        windows.any(|window| window == text.as_bytes())
    }

    /// The filters of each unit, in the order of the units; for one that systemd does not
    /// start, what it wrote before.
    pub fn filters(&self, units: &[Unit]) -> Vec<Result<Chain, String>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        write(units, path);
        let mut manager = Manager::start(&self.root, path);
        let most = Duration::from_secs(60) + Duration::from_millis(500) * units.len() as u32;
        testkit::wait::await_for(most, "end of the units", || {
            let status = manager.process.try_wait().expect("it is a child");
            assert_eq!(status, None, "systemd ended");
            path.join("done").exists()
        });
        drop(manager);

        let chains = units.iter().map(|unit| {
            // A unit that is wrong is not started, one with a wrong filter ends before its program.
            let text = fs::read_to_string(path.join(&unit.name)).unwrap_or_default();
            let Some(filters) = text.strip_suffix("end\n") else {
                return Err(text);
            };
            let filters = filters.split("filter\n").skip(1);
            let filters = filters.map(|hex| from_hex(hex).expect("a filter"));
            Ok(Chain::new(filters.collect::<Vec<_>>()))
        });
        chains.collect()
    }
}

fn is_cgroup2(path: &str) -> bool {
    Path::new(path).join("cgroup.procs").exists()
        && Path::new(path).join("cgroup.controllers").exists()
}

/// Parses the output of `systemd-analyze syscall-filter`: sets, their members indented below them.
fn sets(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let word = line.trim();
        if line.starts_with('@') {
            current = word.to_owned();
            direct.entry(current.clone()).or_default();
        } else if !line.starts_with(' ') {
            // What follows is no set.
            current.clear();
        } else if let Some(set) = direct.get_mut(&current) {
            set.extend((!word.starts_with('#')).then(|| word.to_owned()));
        }
    }
    let names: Vec<String> = direct.keys().cloned().collect();
    names
        .into_iter()
        .map(|name| (name.clone(), members(&direct, &name)))
        .collect()
}

fn members(direct: &BTreeMap<String, BTreeSet<String>>, name: &str) -> BTreeSet<String> {
    let own = direct.get(name).into_iter().flatten();
    let mut all = BTreeSet::new();
    for member in own {
        if member.starts_with('@') {
            all.extend(members(direct, member));
        } else {
            all.insert(member.clone());
        }
    }
    all
}

/// Writes the units, and the library that records filters.
fn write(units: &[Unit], directory: &Path) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random_units");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .arg(directory.join("record.so"))
        .arg(own.join("record_filters.c"))
        .status();
    assert!(compiled.expect("cc runs").success());

    let system = directory.join("units");
    for (file, text) in units.iter().flat_map(Unit::files) {
        let path = system.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }
    let names: Vec<String> = units
        .iter()
        .map(|unit| format!("{}.service", unit.name))
        .collect();
    let names = names.join(" ");
    let end = format!(
        "[Unit]\nDefaultDependencies=no\nAfter={names}\n[Service]\nType=oneshot\n\
         ExecStart=/bin/touch /run/shared/done\n"
    );
    let target = format!("[Unit]\nDefaultDependencies=no\nWants={names} end.service\n");
    fs::write(system.join("end.service"), end).expect("written");
    fs::write(system.join("probe.target"), target).expect("written");
}

/// A running systemd, which ends with this.
struct Manager {
    process: Child,
    cgroup: PathBuf,
}

impl Manager {
    fn start(root: &Path, directory: &Path) -> Manager {
        // systemd makes cgroups below its own one.
        let above = CGROUPS.iter().find(|path| is_cgroup2(path));
        let above = above.expect("it was asked for before");
        let cgroup = Path::new(above).join(format!("tarsier-units-{}", std::process::id()));
        fs::create_dir(&cgroup).expect("a cgroup");

        let start = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random_units/start");
        let procs = cgroup.join("cgroup.procs");
        let mut unshare = Command::new("unshare");
        let namespaces = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"];
        unshare
            .args(namespaces)
            .args(["--fork", "--kill-child"])
            .arg(start)
            .args([root, directory])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // SAFETY: the closure opens and writes a file, and allocates nothing that is locked.
        unsafe {
            unshare.pre_exec(move || fs::write(&procs, "0"));
        }
        let process = unshare.spawn().expect("unshare runs");
        Manager { process, cgroup }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // The end of the first process ends all of its namespace.
        let _ = self.process.kill();
        let _ = self.process.wait();
        testkit::wait::await_that("no process in the cgroup", || remove(&self.cgroup));
    }
}

/// Removes a cgroup with those below it; false if there are processes in it.
fn remove(cgroup: &Path) -> bool {
    let below = fs::read_dir(cgroup).into_iter().flatten().flatten();
    for entry in below.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&entry.path());
    }
    fs::remove_dir(cgroup).is_ok() || !cgroup.exists()
}
