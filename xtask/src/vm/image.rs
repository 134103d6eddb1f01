//! The initramfs: busybox, Tarsier, the workload, the audit programs of the distribution, and `tests/vm`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{bail, ensure, Context, Result};

use super::{output_of, target_dir};

/// Empty directories that the guest mounts on or writes to.
const DIRECTORIES: [&str; 13] = [
    "bin", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin",
    "var/log",
];
/// `tests/vm` files that go into `/tests`; `init` goes to the root.
const TESTS: &str = "tests/vm";
/// The exactness suite: its script and scenarios go into `/exact`, its program to `/bin/acts`.
const EXACT: &str = "tests/exact";

/// Makes the initramfs below `dir` and returns its path. `source` is the root of the source tree.
pub(super) fn build(source: &Path, dir: &Path) -> Result<PathBuf> {
    let root = dir.join("root");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))?;
    }
    for name in DIRECTORIES {
        let path = root.join(name);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\n")?;

    let peers = path_from("TARSIER_PEERS", &source.join("scripts/peers"))?;
    let mut linked = Vec::new();
    install(&busybox()?, &root.join("bin/busybox"))?;
    for name in ["sh", "mount"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name))?;
    }
    // Real ones, not busybox: a program of its own to execute, a file to look at, workloads to measure.
    for (file, to) in [
        (PathBuf::from("/bin/true"), "bin/true"),
        (PathBuf::from("/usr/bin/env"), "usr/bin/env"),
        (PathBuf::from("/usr/bin/find"), "usr/bin/find"),
        (PathBuf::from("/bin/tar"), "bin/tar"),
        (
            path_from("TARSIER_WORKLOAD", &source.join("scripts/build-workload"))?,
            "bin/workload",
        ),
        (tarsier()?, "bin/tarsier"),
        (peers.join("sbin/auditctl"), "sbin/auditctl"),
        (peers.join("sbin/auditd"), "sbin/auditd"),
    ] {
        install(&file, &root.join(to))?;
        linked.push(file);
    }
    install(
        &peers.join("usr/share/doc/auditd/examples/rules/30-stig.rules"),
        &root.join("usr/share/doc/auditd/30-stig.rules"),
    )?;
    strip(&root.join("bin/tarsier"))?;
    install_libraries(&linked, &peers, &root)?;
    install_tests(&source.join(TESTS), &root)?;
    install_exact(&source.join(EXACT), &root)?;
    pack(&root, &dir.join("initramfs"))
}

/// A path that the environment names, or else that the script prints.
fn path_from(variable: &str, script: &Path) -> Result<PathBuf> {
    match std::env::var_os(variable) {
        Some(path) => Ok(path.into()),
        None => Ok(output_of(&mut Command::new(script))?.trim_end().into()),
    }
}

/// The program under test.
fn tarsier() -> Result<PathBuf> {
    let path = std::env::var_os("TARSIER_BIN")
        .map_or_else(|| target_dir().join("release/tarsier"), PathBuf::from);
    ensure!(
        path.exists(),
        "{} is not there; build it with: cargo build --release",
        path.display()
    );
    Ok(path)
}

/// The host's busybox, which must bring its libraries along.
fn busybox() -> Result<PathBuf> {
    for path in ["/bin/busybox", "/usr/bin/busybox"] {
        if Path::new(path).exists() {
            // ldd refuses a static program.
            ensure!(
                output_of(Command::new("ldd").arg(path)).is_err(),
                "{path} is not static; install busybox-static"
            );
            return Ok(path.into());
        }
    }
    bail!("busybox is not there; install busybox-static (scripts/setup test does)");
}

/// Copies a file, following links.
fn install(file: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    }
    fs::copy(file, to)
        .map(drop)
        .with_context(|| format!("copying {} to {}", file.display(), to.display()))
}

/// Symbols for debugging are most of the program, and the guest has to unpack it.
fn strip(file: &Path) -> Result<()> {
    output_of(Command::new("strip").arg(file)).map(drop)
}

/// Copies what the programs are linked with to where their loader looks.
fn install_libraries(programs: &[PathBuf], peers: &Path, root: &Path) -> Result<()> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let path: Vec<PathBuf> = ["lib", "usr/lib"]
        .iter()
        .map(|dir| peers.join(dir).join(&triplet))
        .collect();
    let path: OsString = std::env::join_paths(path).context("the path of TARSIER_PEERS")?;
    let mut libraries = BTreeSet::new();
    for program in programs {
        let listed = output_of(
            Command::new("ldd")
                .arg(program)
                .env("LD_LIBRARY_PATH", &path),
        )
        .with_context(|| format!("which libraries {} needs", program.display()))?;
        ensure!(
            !listed.contains("not found"),
            "{} needs libraries that are not there:\n{listed}",
            program.display()
        );
        // `name => /path (address)`, and for the loader `/path (address)`.
        let words = listed.split_whitespace();
        libraries.extend(
            words
                .filter(|word| word.starts_with('/'))
                .map(PathBuf::from),
        );
    }
    for library in libraries {
        let place = library.strip_prefix(peers).or(library.strip_prefix("/"))?;
        install(&library, &root.join(place))?;
    }
    Ok(())
}

/// Copies `tests/vm` and compiles the helper in it.
fn install_tests(dir: &Path, root: &Path) -> Result<()> {
    let listed = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    for entry in listed {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        if file.extension().is_some_and(|extension| extension == "c") {
            let to = root.join("bin").join(file.file_stem().unwrap_or_default());
            output_of(
                Command::new("cc")
                    .args(["-O2", "-Wall", "-Werror", "-o"])
                    .arg(to)
                    .arg(&file),
            )?;
        } else if name == "init" {
            install(&file, &root.join("init"))?;
        } else {
            install(&file, &root.join("tests").join(name))?;
        }
    }
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))
        .context("the mode of init")
}

/// Copies the exactness suite and compiles its program: static, so that it makes no call of a loader's.
fn install_exact(dir: &Path, root: &Path) -> Result<()> {
    install(&dir.join("run"), &root.join("exact/run"))?;
    for file in files_of(&dir.join("scenarios"))? {
        let name = file.file_name().unwrap_or_default();
        install(&file, &root.join("exact/scenarios").join(name))?;
    }
    let sources = files_of(&dir.join("acts"))?
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "c"));
    output_of(
        Command::new("cc")
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"])
            .args(["-pthread", "-static", "-o"])
            .arg(root.join("bin/acts"))
            .args(sources),
    )
    .map(drop)
}

/// The entries of a directory.
fn files_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let files: std::io::Result<Vec<PathBuf>> =
        listed.map(|entry| entry.map(|e| e.path())).collect();
    files.with_context(|| format!("reading {}", dir.display()))
}

/// Packs the directory as the kernel reads it: cpio's new form. Not compressed: the guest would pay.
fn pack(root: &Path, archive: &Path) -> Result<PathBuf> {
    let file =
        fs::File::create(archive).with_context(|| format!("creating {}", archive.display()))?;
    let mut find = Command::new("find")
        .args([".", "-print0"])
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .context("starting find")?;
    let names = find.stdout.take().context("the output of find")?;
    let packed = Command::new("cpio")
        .args([
            "--null",
            "--create",
            "--format=newc",
            "--owner=0:0",
            "--quiet",
        ])
        .current_dir(root)
        .stdin(names)
        .stdout(file)
        .status()
        .context("starting cpio (scripts/setup test installs it)")?;
    let found = find.wait().context("waiting for find")?;
    ensure!(
        found.success() && packed.success(),
        "packing {}: {packed}",
        root.display()
    );
    Ok(archive.to_path_buf())
}
