//! The architecture of a guest, and the sources of the programs that run in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

use super::{file_argument, output_of, source_root, target_dir};

/// The architecture of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guest {
    /// This system's architecture: the guest runs this system's programs and libraries.
    Amd64,
    /// Runs programs from `scripts/build-arm64` and from Debian's packages.
    Arm64,
}

/// Amount of work that a guest does: the number in an environment variable.
pub(super) fn number_from(variable: &str, default: u64) -> Result<u64> {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{variable} takes a number, not '{text}'")),
        Err(_) => Ok(default),
    }
}

impl Guest {
    pub(super) const EVERY: [Guest; 2] = [Guest::Amd64, Guest::Arm64];

    /// The guest with Debian's name for its architecture.
    pub(super) fn named(name: &str) -> Result<Self> {
        match name {
            "amd64" => Ok(Guest::Amd64),
            "arm64" => Ok(Guest::Arm64),
            _ => bail!("--arch takes amd64 or arm64, not '{name}'"),
        }
    }

    /// Debian's name of the architecture.
    pub(super) const fn debian_name(self) -> &'static str {
        match self {
            Guest::Amd64 => "amd64",
            Guest::Arm64 => "arm64",
        }
    }

    /// Suffix of the names of its kernel packages.
    pub(super) const fn kernel_suffix(self) -> &'static str {
        match self {
            Guest::Amd64 => "-cloud-amd64",
            Guest::Arm64 => "-cloud-arm64",
        }
    }

    /// The group of packages that `scripts/setup` installs for it.
    pub(super) const fn setup_group(self) -> &'static str {
        match self {
            Guest::Amd64 => "test",
            Guest::Arm64 => "arm64",
        }
    }

    /// The emulator for the architecture.
    pub(super) const fn qemu(self) -> &'static str {
        match self {
            Guest::Amd64 => "qemu-system-x86_64",
            Guest::Arm64 => "qemu-system-aarch64",
        }
    }

    /// QEMU's arguments for machine and processor. A Cortex-A72 has a 32-bit entry, and no features that are
    /// expensive to emulate.
    ///
    /// Nor do guests whose time is the host's have the feature bits for fast `rep movsb`: the kernel would copy by it,
    /// and TCG emulates it byte by byte, which takes a fifth of a machine's time. Counts of instructions keep them.
    pub(super) const fn machine(self, counts_instructions: bool) -> &'static [&'static str] {
        match self {
            Guest::Amd64 if counts_instructions => &["-cpu", "max"],
            Guest::Amd64 => &["-cpu", "max,erms=off,fsrm=off"],
            Guest::Arm64 => &["-machine", "virt", "-cpu", "cortex-a72"],
        }
    }

    /// QEMU's arguments for the port to which `tests/vm/init` writes the results: the machine's second port, or a
    /// card if the machine has only one.
    pub(super) fn results_port(self, archive: &Path) -> Vec<String> {
        let file = file_argument(archive);
        match self {
            Guest::Amd64 => vec!["-serial".into(), file],
            Guest::Arm64 => vec![
                "-chardev".into(),
                format!("file,id=results,path={}", archive.display()),
                "-device".into(),
                "pci-serial,chardev=results".into(),
            ],
        }
    }

    /// Arguments for its kernel that set console and results port.
    pub(super) const fn kernel_arguments(self) -> &'static str {
        match self {
            Guest::Amd64 => "console=ttyS0 guest_results=/dev/ttyS1",
            Guest::Arm64 => "console=ttyAMA0 guest_results=/dev/ttyS0",
        }
    }

    /// The C compiler for the architecture.
    pub(super) const fn compiler(self) -> &'static str {
        match self {
            Guest::Amd64 => "cc",
            Guest::Arm64 => "aarch64-linux-gnu-gcc",
        }
    }

    /// The program that removes symbols from its programs.
    pub(super) const fn strip(self) -> &'static str {
        match self {
            Guest::Amd64 => "strip",
            Guest::Arm64 => "aarch64-linux-gnu-strip",
        }
    }

    /// Path of the program under test. The program for this machine's architecture is built first, so that it is never
    /// older than the tree, unless `TARSIER_BIN` names one.
    pub(super) fn tarsier(self) -> Result<PathBuf> {
        let variable = match self {
            Guest::Amd64 => "TARSIER_BIN",
            Guest::Arm64 => "TARSIER_BIN_ARM64",
        };
        let path = match (std::env::var_os(variable), self) {
            (Some(path), _) => path.into(),
            (None, Guest::Amd64) => {
                let mut cargo = Command::new("cargo");
                cargo.current_dir(source_root());
                output_of(cargo.args(["build", "--quiet", "--release"]))?;
                target_dir().join("release/tarsier")
            }
            (None, Guest::Arm64) => target_dir().join("aarch64-unknown-linux-gnu/release/tarsier"),
        };

        ensure!(
            path.exists(),
            "{} is not there; name the program in {variable}, or build that of arm64 with: scripts/build-arm64",
            path.display()
        );
        Ok(path)
    }

    /// Path of `tarsier-forward`, which the machine with a disk runs. The build of the tests has it.
    pub(super) fn forward() -> Result<PathBuf> {
        let path = std::env::var_os("TARSIER_FORWARD_BIN")
            .map_or_else(|| target_dir().join("debug/tarsier-forward"), PathBuf::from);
        ensure!(
            path.exists(),
            "{} is not there; build it with: cargo build -p tarsier-forward",
            path.display()
        );
        Ok(path)
    }

    /// The root directory that has Debian's policy of SELinux, built, and its programs.
    pub(super) fn policy() -> Result<PathBuf> {
        let script = source_root().join("scripts/selinux");
        output_of(&mut Command::new(script)).map(|path| path.trim_end().into())
    }

    /// Path of the program of `tests/workload`. It makes calls that arm64 does not have.
    pub(super) fn workload(self) -> Result<Option<PathBuf>> {
        match self {
            Guest::Amd64 => path_from(
                "TARSIER_WORKLOAD",
                &source_root().join("scripts/build-workload"),
            )
            .map(Some),
            Guest::Arm64 => Ok(None),
        }
    }

    /// Path of the program of `tests/evade` or `tests/hunt`, whose calls are those of x86-64.
    pub(super) fn attack(self, name: &str) -> Result<Option<PathBuf>> {
        let script = source_root().join(format!("scripts/build-{name}"));
        match self {
            Guest::Amd64 => {
                output_of(&mut Command::new(script)).map(|path| Some(path.trim_end().into()))
            }
            Guest::Arm64 => Ok(None),
        }
    }

    /// Whether a helper of `tests/vm` is built for this guest. Some make calls that arm64 does not have.
    pub(super) fn takes_helper(self, name: &OsStr) -> bool {
        match self {
            Guest::Amd64 => true,
            Guest::Arm64 => name == "bpf-objects",
        }
    }

    /// Root directory of version 4 of Debian's audit programs.
    pub(super) fn later_audit(self) -> Result<PathBuf> {
        path_from("TARSIER_PEERS4", &source_root().join("scripts/peers4"))
    }

    /// The packages whose programs the guest runs.
    pub(super) fn packages(self) -> Result<Packages> {
        let scripts = source_root().join("scripts");
        match self {
            Guest::Amd64 => Ok(Packages {
                guest: self,
                system: PathBuf::from("/"),
                audit: path_from("TARSIER_PEERS", &scripts.join("peers"))?,
            }),
            Guest::Arm64 => {
                let root = path_from("TARSIER_ARM64_ROOT", &scripts.join("arm64-root"))?;
                Ok(Packages {
                    guest: self,
                    system: root.clone(),
                    audit: root,
                })
            }
        }
    }
}

/// Directories with the guest's programs.
pub(super) struct Packages {
    pub(super) guest: Guest,
    /// Root directory of Debian's base system.
    pub(super) system: PathBuf,
    /// Root directory of Debian's audit programs.
    pub(super) audit: PathBuf,
}

impl Packages {
    /// A statically linked busybox.
    pub(super) fn busybox(&self) -> Result<PathBuf> {
        for place in ["bin/busybox", "usr/bin/busybox"] {
            let path = self.system.join(place);
            if path.exists() {
                ensure!(
                    self.needed_by(&path)?.is_empty(),
                    "{} is not static; install busybox-static",
                    path.display()
                );
                return Ok(path);
            }
        }
        bail!("busybox is not there; install busybox-static (scripts/setup test does)");
    }

    /// The libraries of the programs, and the libraries of those: each file with its path below the guest's root.
    pub(super) fn libraries(&self, programs: &[PathBuf]) -> Result<BTreeMap<PathBuf, PathBuf>> {
        match self.guest {
            Guest::Amd64 => self.own_libraries(programs),
            Guest::Arm64 => self.foreign_libraries(programs),
        }
    }

    /// The libraries as this system's loader finds them.
    fn own_libraries(&self, programs: &[PathBuf]) -> Result<BTreeMap<PathBuf, PathBuf>> {
        let path: OsString = std::env::join_paths(self.library_dirs(&self.audit))
            .context("the path of TARSIER_PEERS")?;
        let mut libraries = BTreeMap::new();
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
            for file in words.filter(|word| word.starts_with('/')).map(Path::new) {
                let place = file.strip_prefix(&self.audit).or(file.strip_prefix("/"))?;
                libraries.insert(file.to_path_buf(), place.to_path_buf());
            }
        }

        Ok(libraries)
    }

    /// The libraries by the names in the files, because this system has no loader for them.
    fn foreign_libraries(&self, programs: &[PathBuf]) -> Result<BTreeMap<PathBuf, PathBuf>> {
        let mut libraries = BTreeMap::new();
        let mut waiting = programs.to_vec();
        while let Some(file) = waiting.pop() {
            for name in self.needed_by(&file)? {
                // The loader is found by its path, and libraries in the loader's directories.
                let places = match name.strip_prefix('/') {
                    Some(place) => vec![self.system.join(place)],
                    None => self
                        .library_dirs(&self.system)
                        .map(|dir| dir.join(&name))
                        .into(),
                };
                let Some(library) = places.into_iter().find(|place| place.exists()) else {
                    bail!("{} needs {name}, which is not below {}; add its package to scripts/arm64-root", file.display(), self.system.display());
                };
                let place = library.strip_prefix(&self.system)?.to_path_buf();
                if libraries.insert(library.clone(), place).is_none() {
                    waiting.push(library);
                }
            }
        }

        Ok(libraries)
    }

    /// Directories with libraries below a root directory.
    fn library_dirs(&self, root: &Path) -> [PathBuf; 2] {
        let triplet = match self.guest {
            Guest::Amd64 => format!("{}-linux-gnu", std::env::consts::ARCH),
            Guest::Arm64 => "aarch64-linux-gnu".to_string(),
        };
        ["lib", "usr/lib"].map(|dir| root.join(dir).join(&triplet))
    }

    /// Names of the libraries that a file needs, and the path of its loader.
    fn needed_by(&self, file: &Path) -> Result<Vec<String>> {
        let listed = output_of(
            Command::new("readelf")
                .args(["--dynamic", "--program-headers", "--wide"])
                .arg(file),
        )?;
        let mut names = Vec::new();
        for line in listed.lines() {
            let name = if line.contains("(NEEDED)") {
                line.split(['[', ']']).nth(1)
            } else if line.contains("Requesting program interpreter:") {
                line.split([' ', ']']).find(|word| word.starts_with('/'))
            } else {
                None
            };
            names.extend(name.map(str::to_string));
        }

        Ok(names)
    }
}

/// A path from the environment variable or, if that is not set, from the script's output.
fn path_from(variable: &str, script: &Path) -> Result<PathBuf> {
    match std::env::var_os(variable) {
        Some(path) => Ok(path.into()),
        None => Ok(output_of(&mut Command::new(script))?.trim_end().into()),
    }
}
