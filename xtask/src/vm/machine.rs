//! A machine: QEMU with a kernel and an initramfs; its console and its results are files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::guest::{number_from, Guest};
use super::kernels::Kernel;
use super::output_of;
use super::pressure;
use super::variant::Variant;

/// Time after which a machine counts as hung: the slowest takes about a tenth of it.
const MACHINE_LIMIT: Duration = Duration::from_secs(2400);
/// Time limit of a test, by the guest's clock.
const TEST_LIMIT_S: u64 = 1800;
/// A virtual CPU that a busy host does not run is not stalled, and its timer is not broken. Grace periods end
/// soon.
const KERNEL_ARGUMENTS: &str = "quiet panic=-1 no_timer_check \
     rcupdate.rcu_cpu_stall_timeout=300 rcupdate.rcu_expedited=1";
/// The number of files that `tests/vm/elsewhere` writes under each engine, unless an environment variable says another.
const ELSEWHERE_FILES: u64 = 1000;
/// Number of the console's last lines that are shown if the machine fails.
const CONSOLE_LINES: usize = 60;

/// The kind of machine that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MachineKind {
    /// The guest's time is the host's.
    Usual,
    /// A usual machine with a disk. It is restarted with the same disk until there are results.
    Disk,
    /// A usual machine that a test restarts, with a disk for what has to outlive that.
    Reboot,
    /// One nanosecond passes per instruction, so that a duration is a count of instructions.
    Instructions,
}

impl MachineKind {
    /// The kind's name, for paths.
    pub(super) fn name(self) -> &'static str {
        match self {
            MachineKind::Usual => "host-clock",
            MachineKind::Disk => "disk",
            MachineKind::Reboot => "reboot",
            MachineKind::Instructions => "instruction-clock",
        }
    }

    /// QEMU's arguments. A clock that counts instructions needs a single processor, whatever the variant says.
    fn arguments(self, variant: &Variant) -> Vec<&'static str> {
        match self {
            MachineKind::Usual | MachineKind::Disk | MachineKind::Reboot => {
                vec!["-smp", variant.processors]
            }
            // sleep=off: time goes on at once while the guest is idle.
            MachineKind::Instructions => vec!["-smp", "1", "-icount", "shift=0,sleep=off"],
        }
    }

    /// Limit of starts.
    fn starts_max(self) -> u32 {
        match self {
            MachineKind::Usual | MachineKind::Instructions => 1,
            MachineKind::Disk => 5,
            MachineKind::Reboot => 2,
        }
    }
}

/// Size of the disk of a machine that has one, an ext4 file system.
const DISK_MIB: u32 = 96;

/// A machine to boot.
#[derive(Clone, Copy)]
pub(super) struct Machine<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) kind: MachineKind,
    pub(super) variant: &'static Variant,
}

/// Results of a machine.
pub(super) struct Run {
    /// Directory with one subdirectory per test; see `tests/vm/init`.
    pub(super) results: PathBuf,
    /// Reason why there are no results, with the end of the console.
    pub(super) failure: Option<String>,
    /// Duration of each test, by this system's clock.
    pub(super) seconds: BTreeMap<String, f64>,
}

/// Accelerator with one thread for all processors of the guest. With a thread each, a processor may go on executing
/// code that another has just patched. This was seen with the `int3` of a hook being attached: it was hit for ever
/// after the kernel had removed it.
const ACCELERATOR: &str = "tcg,thread=single";

/// Reason why no machine can run here; `None` if one can.
pub(super) fn refusal(guest: Guest) -> Option<String> {
    if guest == Guest::Amd64 && std::env::consts::ARCH != "x86_64" {
        let arch = std::env::consts::ARCH;
        return Some(format!(
            "guests are x86-64, and what was built here is for {arch}"
        ));
    }

    let qemu = guest.qemu();
    let version = Command::new(qemu)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    version.err().map(|error| {
        format!(
            "{qemu}: {error}; install it with: scripts/setup {}",
            guest.setup_group()
        )
    })
}

impl Machine<'_> {
    /// Directory of the run, relative to the directory of all runs.
    pub(super) fn place(&self) -> PathBuf {
        let kind = self.kind.name();
        Path::new(&self.kernel.release).join(if self.variant.is_plain() {
            kind.to_owned()
        } else {
            format!("{kind}.{}", self.variant.name)
        })
    }

    /// Boots the kernel, runs the tests, and unpacks their results below `dir`, which is emptied before.
    pub(super) fn run(&self, tests: &[&str], initramfs: &Path, dir: &Path) -> Result<Run> {
        if dir.exists() {
            fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
        }
        let results = dir.join("results");
        fs::create_dir_all(&results).with_context(|| format!("creating {}", results.display()))?;
        let (console, archive) = (dir.join("console.log"), dir.join("results.tar.gz"));
        let mut command = self.command(tests, initramfs, dir, [&console, &archive])?;
        let mut stopwatch = Stopwatch::new(&console);
        let limit = MACHINE_LIMIT + Duration::from_secs(pressure::limit_s(tests)?);
        let mut starts = 0;
        let ended = loop {
            starts += 1;
            let log = dir.join("qemu.log");
            let ended = wait_for_machine(&mut command, limit, &log, &mut stopwatch)?;
            let is_done = fs::metadata(&archive).is_ok_and(|archive| archive.len() > 0);
            if is_done || ended.is_err() || starts == self.kind.starts_max() {
                break ended;
            }
        };

        let unpacked = output_of(
            Command::new("tar")
                .arg("-xzf")
                .arg(&archive)
                .arg("-C")
                .arg(&results),
        );

        let failure = match (ended, unpacked) {
            (Ok(()), Ok(_)) => self.disobedience(&results),
            (Ok(()), Err(_)) => Some("the machine ended without results".to_string()),
            (Err(why), _) => Some(why),
        };

        Ok(Run {
            results,
            failure: failure.map(|why| format!("{why}\n{}", last_lines(&console, CONSOLE_LINES))),
            seconds: stopwatch.seconds,
        })
    }

    /// The command that starts QEMU.
    fn command(
        &self,
        tests: &[&str],
        initramfs: &Path,
        dir: &Path,
        [console, archive]: [&Path; 2],
    ) -> Result<Command> {
        let variant = self.variant;
        let guest = variant.guest;

        // It ends with this process.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", guest.qemu()])
            .args(["-accel", ACCELERATOR, "-m"])
            .arg((variant.memory_mib + pressure::memory_mib(tests)?).to_string())
            .args(guest.machine(self.kind == MachineKind::Instructions))
            .args(["-nodefaults", "-display", "none", "-no-reboot"])
            .args(self.kind.arguments(variant))
            .arg("-chardev")
            .arg(format!(
                "file,id=console,path={},append=on",
                console.display()
            ))
            .args(["-serial", "chardev:console"])
            .args(guest.results_port(archive))
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(initramfs)
            .arg("-append")
            .arg(format!(
                "{KERNEL_ARGUMENTS} {} {} guest_tests={} guest_limit_s={} guest_pressure_calls={} guest_files={}",
                guest.kernel_arguments(),
                variant.kernel_arguments,
                tests.join(","),
                TEST_LIMIT_S + pressure::limit_s(tests)?,
                pressure::calls()?,
                number_from("TARSIER_ELSEWHERE_FILES", ELSEWHERE_FILES)?
            ));

        if matches!(self.kind, MachineKind::Disk | MachineKind::Reboot) {
            let disk = make_disk(&dir.join("disk"))?;
            command
                .arg("-drive")
                .arg(format!(
                    "file={},format=raw,if=none,id=disk",
                    disk.display()
                ))
                .args(["-device", "nvme,drive=disk,serial=tarsier"]);
        }

        Ok(command)
    }

    /// Difference of the machine from its variant; `None` if there is none.
    fn disobedience(&self, results: &Path) -> Option<String> {
        let facts = fs::read_to_string(results.join("facts")).unwrap_or_default();
        let lacks = match self.kind {
            MachineKind::Instructions => Vec::new(),
            MachineKind::Usual | MachineKind::Disk | MachineKind::Reboot => {
                self.variant.lacks(&facts)
            }
        };
        let name = self.variant.name;
        let lacks = (!lacks.is_empty()).then(|| lacks.join(", "))?;
        Some(format!(
            "this machine is not {name}: {lacks} expected of:\n{facts}"
        ))
    }
}

/// Makes a file system that holds `tarsier-forward`, without its symbols: no other machine needs it.
fn make_disk(path: &Path) -> Result<PathBuf> {
    let content = path.with_extension("content");
    fs::create_dir_all(&content).with_context(|| format!("creating {}", content.display()))?;
    output_of(
        Command::new(Guest::Amd64.strip())
            .arg("-o")
            .arg(content.join("tarsier-forward"))
            .arg(Guest::forward()?),
    )?;
    output_of(
        Command::new("mkfs.ext4")
            .args(["-q", "-F", "-d"])
            .args([&content, path])
            .arg(format!("{DISK_MIB}M")),
    )?;

    Ok(path.to_owned())
}

/// Runs QEMU until it ends or reaches its time limit. The inner error says what went wrong.
fn wait_for_machine(
    command: &mut Command,
    limit: Duration,
    log: &Path,
    stopwatch: &mut Stopwatch,
) -> Result<Result<(), String>> {
    let said = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said)
        .spawn()
        .context("starting QEMU")?;
    let deadline = Instant::now() + limit;

    loop {
        let ended = child.try_wait().context("waiting for QEMU")?;
        stopwatch.look();
        match ended {
            Some(status) if status.success() => return Ok(Ok(())),
            Some(status) => {
                let why = format!("QEMU: {status}\n{}", last_lines(log, CONSOLE_LINES));
                return Ok(Err(why));
            }
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            None => {
                child
                    .kill()
                    .and_then(|()| child.wait())
                    .context("ending QEMU")?;
                return Ok(Err(format!("not done after {} s", limit.as_secs())));
            }
        }
    }
}

/// Notices in the console when a test begins and ends. The guest's own clock may count instructions.
struct Stopwatch<'a> {
    console: &'a Path,
    /// Number of lines seen so far.
    seen: usize,
    started: Option<Instant>,
    /// Duration by test, over all its starts.
    seconds: BTreeMap<String, f64>,
}

impl<'a> Stopwatch<'a> {
    fn new(console: &'a Path) -> Self {
        Stopwatch {
            console,
            seen: 0,
            started: None,
            seconds: BTreeMap::new(),
        }
    }

    /// Handles new lines: `vm: TEST on …`, `vm: TEST ended …`.
    fn look(&mut self) {
        let bytes = fs::read(self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);

        // A line without an end is read again next time.
        let lines: Vec<&str> = text
            .split_inclusive('\n')
            .filter(|l| l.ends_with('\n'))
            .collect();

        for line in &lines[self.seen.min(lines.len())..] {
            let Some((test, rest)) = line.strip_prefix("vm: ").and_then(|l| l.split_once(' '))
            else {
                continue;
            };
            if rest.starts_with("on ") {
                self.started = Some(Instant::now());
            } else if let Some(started) = self.started.take() {
                let seconds = self.seconds.entry(test.to_owned()).or_default();
                *seconds += started.elapsed().as_secs_f64();
            }
        }

        self.seen = lines.len();
    }
}

/// The end of a file, which may be binary, after a line with its path.
pub(super) fn last_lines(path: &Path, count: usize) -> String {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return format!("{}: {error}", path.display()),
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    format!("--- {}\n{}", path.display(), last.join("\n"))
}
