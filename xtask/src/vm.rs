//! `vm`: tests in virtual machines with stock Debian cloud kernels.
//!
//! A machine is a kernel from the distribution's package, an initramfs made here (see [`image`]) and
//! QEMU without hardware acceleration (see [`machine`]), so it runs wherever user-space programs do. What the
//! guest runs is in `tests/vm`; what its results must be is in [`tests`].

mod disk;
mod guest;
mod image;
mod kernels;
mod machine;
mod rings;
mod tests;
mod workloads;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use anyhow::{bail, Context, Result};
use guest::Guest;
use kernels::{Kernel, Wanted};
use tests::{Test, TESTS};

/// How the task is called.
pub(crate) const USAGE: &str =
    "cargo xtask vm [--arch amd64|arm64] [--kernel 6.1|6.12|newest|PACKAGE]… [-- TEST…]   (default: amd64, 6.1 and 6.12, all tests but workloads-icount; arm64: 6.12, lifecycle and exact)";

/// What the command line asks for.
struct Request {
    guest: Guest,
    kernels: Vec<Wanted>,
    tests: Vec<&'static Test>,
}

/// How a test on a kernel ended.
enum Outcome {
    /// With what there is to say.
    Passed(String),
    Failed(String),
}

/// Runs the tests named in `words` on the kernels named there, and prints one line for each pair.
///
/// Success if none failed. A kernel that cannot be fetched is a line `skipped: …`, and a failure where the
/// environment says `CI=true`.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let request = Request::parse(words)?;
    if let Some(reason) = machine::refusal(request.guest) {
        return Ok(skip(&format!("vm: {reason}")));
    }
    let guest = request.guest;
    let dir = vm_dir(guest)?;
    // Its apt is made with it.
    let packages = guest.packages()?;
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for wanted in &request.kernels {
        match kernels::fetch(guest, wanted, &dir.join("kernels"))? {
            Ok(kernel) if kernels.contains(&kernel) => {}
            Ok(kernel) => kernels.push(kernel),
            Err(reason) => code = skip(&format!("kernel {wanted}: {reason}")),
        }
    }
    if kernels.is_empty() {
        return Ok(code);
    }
    let initramfs = image::build(guest, &packages, &source_root(), &dir)?;
    let failed = run_machines(guest, &kernels, &request.tests, &initramfs, &dir)?;
    match failed {
        true => Ok(ExitCode::FAILURE),
        false => Ok(code),
    }
}

/// Says that something is not tested; a failure in CI, where everything must be.
fn skip(what: &str) -> ExitCode {
    println!("skipped: {what}");
    match std::env::var("CI").as_deref() {
        Ok("true" | "1") => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Runs `tests` on all kernels, one machine for each kernel and kind, as many at a time as there are processors and
/// the longest first. Whether a test failed.
fn run_machines(
    guest: Guest,
    kernels: &[Kernel],
    tests: &[&'static Test],
    initramfs: &Path,
    dir: &Path,
) -> Result<bool> {
    let mut machines = VecDeque::new();
    for kind in machine::Kind::ALL {
        machines.extend(kernels.iter().map(|kernel| (kernel, kind)));
    }
    let (waiting, has_failed) = (Mutex::new(machines), AtomicBool::new(false));
    let next = || {
        waiting
            .lock()
            .ok()
            .and_then(|mut waiting| waiting.pop_front())
    };
    let work = || -> Result<()> {
        while let Some((kernel, kind)) = next() {
            let chosen: Vec<_> = tests.iter().copied().filter(|t| t.kind == kind).collect();
            for (test, outcome) in run_machine(guest, kernel, kind, &chosen, initramfs, dir)? {
                if let Outcome::Failed(_) = outcome {
                    has_failed.store(true, Ordering::Relaxed);
                }
                report(kernel, test, &outcome);
            }
        }
        Ok(())
    };
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker
                .join()
                .unwrap_or_else(|_| bail!("a thread panicked"))?;
        }
        anyhow::Ok(())
    })?;
    Ok(has_failed.into_inner())
}

fn report(kernel: &Kernel, test: &Test, outcome: &Outcome) {
    match outcome {
        Outcome::Passed(said) if said.is_empty() => {
            println!("ok: kernel {}: {}", kernel.release, test.name);
        }
        Outcome::Passed(said) => println!(
            "{}, kernel {}:\n{said}\nok: kernel {}: {}",
            test.name, kernel.release, kernel.release, test.name
        ),
        Outcome::Failed(why) => {
            println!("{why}\nFAILED: kernel {}: {}", kernel.release, test.name);
        }
    }
}

/// Boots one machine, if there are tests for it, and judges what it left.
fn run_machine(
    guest: Guest,
    kernel: &Kernel,
    kind: machine::Kind,
    tests: &[&'static Test],
    initramfs: &Path,
    dir: &Path,
) -> Result<Vec<(&'static Test, Outcome)>> {
    if tests.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = tests.iter().map(|test| test.name).collect();
    let run_dir = dir.join("runs").join(&kernel.release).join(kind.name());
    let run = machine::run(guest, kernel, kind, &names, initramfs, &run_dir)?;
    tests
        .iter()
        .map(|test| {
            let judged = match &run.failure {
                Some(failure) => Err(failure.clone()),
                None => test.judge(&run.results.join(test.name)),
            };
            let outcome = judged.map_or_else(Outcome::Failed, Outcome::Passed);
            Ok((*test, outcome))
        })
        .collect()
}

impl Request {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut request = Request {
            guest: Guest::Amd64,
            kernels: Vec::new(),
            tests: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--arch" => match words.next() {
                    Some(name) => request.guest = Guest::named(name)?,
                    None => bail!("--arch takes amd64 or arm64"),
                },
                "--kernel" => match words.next() {
                    Some(kernel) => request.kernels.push(Wanted::parse(kernel)?),
                    None => bail!("--kernel takes a series (6.12), newest, or a package's name"),
                },
                "--" => {
                    for name in words.by_ref() {
                        request.tests.push(tests::named(name)?);
                    }
                }
                other => bail!("unknown argument '{other}'\nusage: {USAGE}"),
            }
        }
        if request.kernels.is_empty() {
            request.kernels = request.guest.usual_kernels()?;
        }
        if request.tests.is_empty() {
            let all = TESTS.iter();
            request.tests = all.filter(|test| request.guest.runs(test)).collect();
        }
        Ok(request)
    }
}

/// The root of the source tree.
fn source_root() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.parent().unwrap_or(crate_dir).to_path_buf()
}

/// `vm` or, for guests that are not amd64, `vm/ARCH` in cargo's target directory, made if it is not there.
fn vm_dir(guest: Guest) -> Result<PathBuf> {
    let vm = target_dir().join("vm");
    let dir = match guest {
        Guest::Amd64 => vm,
        Guest::Arm64 => vm.join("arm64"),
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    Ok(dir)
}

/// Where cargo puts what it builds.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| source_root().join("target"), PathBuf::from)
}

/// Runs a command to its end. Its standard output; an error with its standard error if it fails.
fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}\n{}", output.status, said.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {command:?}"))
}
