//! Makes the initramfs: busybox, Tarsier, the workload, the distribution's audit programs, and `tests/vm`.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};

use super::guest::{Guest, Packages};
use super::kernels::Kernel;
use super::output_of;

/// Empty directories for the guest's mounts and files.
const DIRECTORIES: [&str; 13] = [
    "bin", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "usr/sbin",
    "var/log",
];
/// Directory whose files go into `/tests`; `init` goes to the root.
const TESTS: &str = "tests/vm";
/// The exactness suite: its script and scenarios go into `/exact`, and its program to `/bin/acts`.
const EXACT: &str = "tests/exact";
/// The suite of evasions: its script and rules go into `/evade`, and its program to `/bin/evade`.
const EVADE: &str = "tests/evade";
/// Random calls: the script and seeds go into `/hunt`, and the program to `/bin/hunt`.
const HUNT: &str = "tests/hunt";

/// Programs of this system, and their places in the guest, that make file systems for `tests/exact`.
const FILE_SYSTEM_TOOLS: [(&str, &str); 2] = [
    ("sbin/mkfs.ext4", "sbin/mkfs.ext4"),
    ("sbin/mkfs.btrfs", "sbin/mkfs.btrfs"),
];
/// The same, of the packages that `scripts/peers` fetches.
const FILE_SYSTEM_PEERS: [(&str, &str); 5] = [
    ("sbin/mkfs.xfs", "sbin/mkfs.xfs"),
    ("usr/bin/bindfs", "bin/bindfs"),
    ("usr/sbin/exportfs", "sbin/exportfs"),
    ("usr/sbin/rpc.mountd", "sbin/rpc.mountd"),
    ("usr/sbin/rpc.nfsd", "sbin/rpc.nfsd"),
];

/// Version 4 of auditctl, with the loader and the libraries that it needs.
const LATER_AUDITCTL: [(&str, &str); 6] = [
    ("usr/sbin/auditctl", "audit4/auditctl"),
    ("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "audit4/ld"),
    ("usr/lib/x86_64-linux-gnu/libc.so.6", "audit4/libc.so.6"),
    (
        "usr/lib/x86_64-linux-gnu/libaudit.so.1",
        "audit4/libaudit.so.1",
    ),
    (
        "usr/lib/x86_64-linux-gnu/libauparse.so.0",
        "audit4/libauparse.so.0",
    ),
    (
        "usr/lib/x86_64-linux-gnu/libcap-ng.so.0",
        "audit4/libcap-ng.so.0",
    ),
];

/// Programs that label files and show labels, below the directory of `scripts/selinux`.
const SELINUX_PROGRAMS: [&str; 5] = [
    "sbin/setfiles",
    "usr/sbin/getfilecon",
    "usr/sbin/setfilecon",
    "usr/sbin/getenforce",
    "usr/sbin/setenforce",
];
/// Directories of SELinux's policy that the guest gets.
const SELINUX_POLICY: [&str; 2] = [
    "etc/selinux/default/policy",
    "etc/selinux/default/contexts/files",
];

/// Makes the initramfs below `dir` and returns its path. `source` is the root of the source tree;
/// `more` are further programs of this system that the guest gets, with their places there; of `kernels` it gets the
/// modules; `policy` is the directory of `scripts/selinux`, for machines with SELinux.
pub(super) fn build(
    packages: &Packages,
    more: Vec<(PathBuf, &str)>,
    kernels: &[Kernel],
    policy: Option<&Path>,
    [source, dir]: [&Path; 2],
) -> Result<PathBuf> {
    let guest = packages.guest;
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

    let mut linked = Vec::new();
    install(&packages.busybox()?, &root.join("bin/busybox"))?;
    for name in ["sh", "mount"] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name))?;
    }

    // Real files, not links to busybox: a program to execute, a file to examine, workloads to measure.
    let mut programs = vec![
        (packages.system.join("bin/true"), "bin/true"),
        (packages.system.join("usr/bin/env"), "usr/bin/env"),
        (packages.system.join("usr/bin/find"), "usr/bin/find"),
        (packages.system.join("bin/tar"), "bin/tar"),
        (guest.tarsier()?, "bin/tarsier"),
        (packages.audit.join("sbin/auditctl"), "sbin/auditctl"),
        (packages.audit.join("sbin/auditd"), "sbin/auditd"),
    ];

    if guest == Guest::Amd64 {
        for (place, to) in FILE_SYSTEM_TOOLS {
            programs.push((packages.system.join(place), to));
        }
        let later = guest.later_audit()?;
        for (place, to) in LATER_AUDITCTL {
            install(&later.join(place), &root.join(to))?;
        }
        for (place, to) in FILE_SYSTEM_PEERS {
            programs.push((packages.audit.join(place), to));
        }
        programs.push((compile_acts(guest, &source.join(EXACT), dir)?, "bin/dacts"));
    }

    if let Some(workload) = guest.workload()? {
        programs.push((workload, "bin/workload"));
    }
    programs.extend(more);
    if let Some(policy) = policy {
        programs.extend(SELINUX_PROGRAMS.map(|place| (policy.join(place), place)));
        programs.push((packages.system.join("usr/bin/runcon"), "usr/bin/runcon"));
        install_policy(policy, &root)?;
    }
    for (file, to) in programs {
        install(&file, &root.join(to))?;
        linked.push(file);
    }

    install_samples(&packages.audit, &root)?;
    install_modules(kernels, &root)?;
    output_of(Command::new(guest.strip()).arg(root.join("bin/tarsier")))?;
    for (library, place) in packages.libraries(&linked)? {
        install(&library, &root.join(place))?;
    }
    install_tests(guest, &source.join(TESTS), &root)?;
    install_exact(guest, &source.join(EXACT), &root)?;
    install_attacks(guest, source, &root)?;

    pack(&root, &dir.join("initramfs"))
}

/// Copies the sample rule sets of the package auditd below the directory `audit`.
fn install_samples(audit: &Path, root: &Path) -> Result<()> {
    let doc = Path::new("usr/share/doc/auditd");
    for file in files_of(&audit.join(doc).join("examples/rules"))? {
        let name = file.file_name().unwrap_or_default();
        if name.to_string_lossy().starts_with("30-") {
            install(&file, &root.join(doc).join(name))?;
        }
    }
    Ok(())
}

/// Copies the policy of SELinux, with the labels of files.
fn install_policy(policy: &Path, root: &Path) -> Result<()> {
    for place in SELINUX_POLICY {
        for file in files_of(&policy.join(place))? {
            let name = file.file_name().unwrap_or_default();
            install(&file, &root.join(place).join(name))?;
        }
    }
    let settings = Path::new("etc/selinux/config");
    install(&policy.join(settings), &root.join(settings))
}

/// Copies the kernels' modules to `lib/modules/RELEASE`.
fn install_modules(kernels: &[Kernel], root: &Path) -> Result<()> {
    for kernel in kernels {
        // A kernel that was fetched earlier, and cannot be fetched again, has none.
        let from = kernel.modules();
        if !from.exists() {
            continue;
        }
        for file in files_of(&from)? {
            let name = file.file_name().unwrap_or_default();
            install(
                &file,
                &root.join("lib/modules").join(&kernel.release).join(name),
            )?;
        }
    }

    Ok(())
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

/// Copies `tests/vm`, and compiles those of its helpers that the guest can use.
fn install_tests(guest: Guest, dir: &Path, root: &Path) -> Result<()> {
    let listed = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    for entry in listed {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        if file.extension().is_some_and(|extension| extension == "c") {
            let helper = file.file_stem().unwrap_or_default();
            if !guest.takes_helper(helper) {
                continue;
            }
            let to = root.join("bin").join(helper);
            output_of(
                Command::new(guest.compiler())
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

/// The scenarios that `tests/exact/generate` makes: one in 29 of all cases, or in as many as `TARSIER_EXACT` says.
fn made_scenarios(dir: &Path) -> Result<String> {
    let share = env::var("TARSIER_EXACT").unwrap_or_else(|_| "29".to_owned());
    output_of(Command::new(dir.join("generate")).arg(share))
}

/// Compiles the program of the exactness suite for the guest's loader, and returns its path.
fn compile_acts(guest: Guest, suite: &Path, dir: &Path) -> Result<PathBuf> {
    let program = dir.join("dacts");
    output_of(acts_compiler(guest, suite)?.arg("-o").arg(&program))?;
    Ok(program)
}

/// The command that compiles the program of the exactness suite, but for the name of its output.
fn acts_compiler(guest: Guest, suite: &Path) -> Result<Command> {
    let sources = files_of(&suite.join("acts"))?
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "c"));
    let mut compiler = Command::new(guest.compiler());
    compiler
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"])
        .arg("-pthread")
        .args(sources);
    Ok(compiler)
}

/// Copies the exactness suite and compiles its program, statically, so that no loader makes calls.
fn install_exact(guest: Guest, dir: &Path, root: &Path) -> Result<()> {
    install(&dir.join("run"), &root.join("exact/run"))?;
    for file in files_of(&dir.join("scenarios"))? {
        let to = root
            .join("exact/scenarios")
            .join(file.file_name().unwrap_or_default());
        install(&file, &to)?;
        if guest == Guest::Arm64 {
            let script = dir.join("arm64/rules.sed");
            output_of(
                Command::new("sed")
                    .args(["-E", "-i", "-f"])
                    .arg(script)
                    .arg(&to),
            )?;
        }
    }

    if guest != Guest::Arm64 {
        fs::write(root.join("exact/scenarios/made"), made_scenarios(dir)?)
            .context("writing the scenarios that are made")?;
    }

    if guest == Guest::Arm64 {
        install(
            &dir.join("arm64/scenarios"),
            &root.join("exact/scenarios/zz-arm64"),
        )?;
        install_acts32(&dir.join("arm64/acts32.c"), root)?;
    }

    let mut compiler = acts_compiler(guest, dir)?;

    output_of(compiler.args(["-static", "-o"]).arg(root.join("bin/acts"))).map(drop)
}

/// Copies the suite of evasions and that of random calls, and their programs, which are static.
fn install_attacks(guest: Guest, source: &Path, root: &Path) -> Result<()> {
    for (dir, name, files) in [(EVADE, "evade", "rules"), (HUNT, "hunt", "seeds")] {
        let Some(program) = guest.attack(name)? else {
            continue;
        };
        install(&program, &root.join("bin").join(name))?;
        for file in ["run", files] {
            let from = source.join(dir).join(file);
            install(&from, &root.join(name).join(file))?;
        }
    }
    Ok(())
}

/// Compiles the program for 32-bit Arm. It needs no library, so clang and arm64's linker can build it.
fn install_acts32(source: &Path, root: &Path) -> Result<()> {
    let to = root.join("bin/acts32");
    let object = to.with_extension("o");
    output_of(
        Command::new("clang")
            .args(["--target=arm-linux-gnueabihf", "-mcpu=cortex-a72", "-O2"])
            .args([
                "-ffreestanding",
                "-fno-builtin",
                "-Wall",
                "-Wextra",
                "-Werror",
            ])
            .arg("-c")
            .arg(source)
            .arg("-o")
            .arg(&object),
    )?;
    output_of(
        Command::new("aarch64-linux-gnu-ld")
            .args(["-m", "armelf_linux_eabi", "-static", "-o"])
            .arg(&to)
            .arg(&object),
    )?;

    fs::remove_file(&object).with_context(|| format!("removing {}", object.display()))
}

/// The entries of a directory, in order.
fn files_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let files: std::io::Result<Vec<PathBuf>> =
        listed.map(|entry| entry.map(|e| e.path())).collect();
    files.with_context(|| format!("reading {}", dir.display()))
}

/// Packs the directory in the format that the kernel reads, cpio's "newc". Not compressed, since decompression
/// would cost the guest time.
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
