//! `vm`: runs tests in virtual machines with stock Debian cloud kernels.
//!
//! A machine consists of a kernel from the distribution's package, an initramfs made here (see [`image`]) and QEMU
//! without hardware acceleration (see [`machine`]), so it runs wherever user-space programs do. The scripts that
//! the guest runs are in `tests/vm`; [`judges`] says what their results must be, and [`plan`] which tests run on
//! which kernels.

mod ancestors;
mod apt;
mod broken_kernels;
mod changes;
mod disk;
mod documents;
mod engines;
mod evade;
mod floods;
mod grid;
mod guest;
mod image;
mod index;
mod instructions;
mod judges;
mod kernels;
mod livelock;
mod machine;
mod modules;
mod optimised;
mod plan;
mod polled;
mod pressure;
mod profile;
mod request;
mod results;
mod rings;
mod slowdisk;
mod unselected;
mod variant;
mod workloads;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use crate::command::output_of;
use anyhow::{bail, Context, Result};
use guest::Guest;
use judges::Test;
use kernels::{Kernel, KernelSpec, Store};
use plan::Job;
use request::VmRequest;
use results::TestResult;
use variant::Variant;

pub(crate) use request::USAGE;

/// The verdict on a test: the text of success, or why it failed.
type Judged = Result<String, String>;

/// Runs the tests that `words` ask for, and prints one line for each test and machine.
///
/// Succeeds if none failed. A kernel that cannot be fetched gives a line `skipped: …`; with `CI=true` in the
/// environment it is a failure.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let request = VmRequest::parse(words)?;
    if request.only_tables {
        documents::write_tables(&source_root())?;
        return Ok(ExitCode::SUCCESS);
    }

    let mut code = ExitCode::SUCCESS;
    let mut grounds = Vec::new();
    for guest in request.guests() {
        match Ground::prepare(&request, guest)? {
            Ok(ground) => grounds.push(ground),
            Err(reason) => code = skip(&format!("vm, {}: {reason}", guest.debian_name())),
        }
    }

    if grounds.is_empty() {
        return Ok(code);
    }

    if grounds.iter().any(|ground| ground.lacks_kernels) {
        code = skipped();
    }

    // A part of the matrix replaces its own lines of the results; the others stay.
    let extent = request.extent();
    let mut jobs = plan::jobs(&grounds, &extent);
    let known = if request.is_part() {
        results::read(&matrix_file()?)?
    } else {
        Vec::new()
    };
    if request.continues {
        for job in &mut jobs {
            let (kernel, variant) = (job.machine.kernel, job.machine.variant);
            job.tests
                .retain(|test| !has_passed(&known, kernel, variant, test));
        }
        jobs.retain(|job| !job.tests.is_empty());
    }

    // Written after each machine, so that `--continue` can go on where a matrix was interrupted.
    let entries = run_jobs(jobs, request.jobs, |done| {
        if request.is_matrix {
            results::write(&matrix_file()?, &results::merge(&known, done))
        } else {
            Ok(())
        }
    })?;

    report_times(&entries);
    let has_failed = entries.iter().any(|entry| !entry.passed);
    if request.is_matrix {
        println!("results: {}", matrix_file()?.display());
    }
    if request.writes {
        documents::publish(&source_root(), &results::merge(&known, &entries))?;
    }
    if has_failed {
        Ok(ExitCode::FAILURE)
    } else {
        Ok(code)
    }
}

/// Everything that the machines of one architecture are booted with.
struct Ground {
    guest: Guest,
    /// Directory for files made here, and for results.
    dir: PathBuf,
    initramfs: PathBuf,
    kernels: Vec<Kernel>,
    /// The newest series that is available, whether requested or not.
    newest: [u64; 2],
    /// Whether a requested kernel is unavailable, which has been printed.
    lacks_kernels: bool,
}

impl Ground {
    /// Prepares the machines of one architecture. The inner error says why there are none.
    fn prepare(request: &VmRequest, guest: Guest) -> Result<Result<Self, String>> {
        if let Some(reason) = machine::refusal(guest) {
            return Ok(Err(reason));
        }
        // The arm64 program is built by a separate command: without it the rest of the matrix still runs.
        if let (true, Guest::Arm64, Err(absent)) = (request.is_matrix, guest, guest.tarsier()) {
            return Ok(Err(absent.to_string()));
        }

        let dir = vm_dir(guest)?;
        let store = Store::open(guest, &dir)?;
        let all = if request.is_matrix {
            store.series_from(plan::LOWEST)?
        } else {
            BTreeSet::new()
        };
        let wanted = wanted(request, guest, &all)?;
        let (kernels, lacks_kernels) = fetch(&wanted, &store)?;
        let newest = if request.is_matrix {
            all.last().copied()
        } else {
            kernels.iter().map(Kernel::series).max()
        };
        if kernels.is_empty() {
            return Ok(Err("no kernel can be had".to_owned()));
        }

        let mut programs = Vec::new();
        if request.names(broken_kernels::NAME) {
            let program = broken_kernels::build(&source_root())?;
            programs.push((program, broken_kernels::PROGRAM));
        }

        if request.names(slowdisk::NAME) {
            programs.push((PathBuf::from(slowdisk::MKFS), slowdisk::PROGRAM));
        }
        let packages = guest.packages()?;
        let policy = match guest {
            Guest::Amd64 if request.extent().needs_selinux() => Some(Guest::policy()?),
            _ => None,
        };

        Ok(Ok(Ground {
            guest,
            initramfs: image::build(
                &packages,
                programs,
                &kernels,
                policy.as_deref(),
                [&source_root(), &dir],
            )?,
            dir,
            kernels,
            newest: newest.unwrap_or_default(),
            lacks_kernels,
        }))
    }
}

/// The requested kernels. `all`: for a matrix, the series that are available for the guest.
fn wanted(request: &VmRequest, guest: Guest, all: &BTreeSet<[u64; 2]>) -> Result<Vec<KernelSpec>> {
    if !request.kernels.is_empty() {
        let named = request.kernels.iter().cloned();
        return Ok(named.filter(|each| each.may_be_of(guest)).collect());
    }
    if !request.is_matrix {
        return KernelSpec::usual(guest);
    }
    let newest = all.last().copied().unwrap_or_default();
    let tested = all.iter();
    let tested = tested.filter(|series| plan::is_in_matrix(guest, **series, newest));
    Ok(tested
        .map(|each| KernelSpec::Series(each.to_vec()))
        .collect())
}

/// Fetches the kernels. Also returns whether some of them are unavailable, which is printed.
fn fetch(wanted: &[KernelSpec], store: &Store) -> Result<(Vec<Kernel>, bool)> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut is_lacking = wanted.is_empty();
    for wanted in wanted {
        match store.fetch(wanted)? {
            Ok(kernel) if kernels.contains(&kernel) => {}
            Ok(kernel) => kernels.push(kernel),
            Err(reason) => {
                is_lacking = true;
                println!("skipped: kernel {wanted}: {reason}");
            }
        }
    }

    Ok((kernels, is_lacking))
}

/// File in which the results of a matrix are kept, updated after each machine.
fn matrix_file() -> Result<PathBuf> {
    Ok(vm_dir(Guest::Amd64)?.join("matrix.json"))
}

fn has_passed(known: &[TestResult], kernel: &Kernel, variant: &Variant, test: &Test) -> bool {
    known.iter().any(|entry| {
        let is_of_machine = entry.release == kernel.release && entry.variant == variant.name;
        is_of_machine && entry.test == test.name && entry.passed
    })
}

/// Prints that something is not tested. This is a failure in CI, where everything must be tested.
fn skip(what: &str) -> ExitCode {
    println!("skipped: {what}");
    skipped()
}

fn skipped() -> ExitCode {
    match std::env::var("CI").as_deref() {
        Ok("true" | "1") => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Runs all machines in order, several at the same time. After each, `keep` gets the results of all that have
/// ended.
fn run_jobs(
    jobs: Vec<Job>,
    at_a_time: usize,
    keep: impl Fn(&[TestResult]) -> Result<()> + Sync,
) -> Result<Vec<TestResult>> {
    let (waiting, done) = (Mutex::new(VecDeque::from(jobs)), Mutex::new(Vec::new()));
    let next = || {
        waiting
            .lock()
            .ok()
            .and_then(|mut waiting| waiting.pop_front())
    };
    let work = || -> Result<()> {
        while let Some(job) = next() {
            let entries = run_job(&job)?;
            if let Ok(mut done) = done.lock() {
                done.extend(entries);
                keep(&done)?;
            }
        }
        Ok(())
    };

    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker
                .join()
                .unwrap_or_else(|_| bail!("a thread panicked"))?;
        }
        anyhow::Ok(())
    })?;

    done.into_inner()
        .map_err(|_| anyhow::anyhow!("a thread panicked"))
}

/// Boots a machine, judges its results, and prints the verdicts.
fn run_job(job: &Job) -> Result<Vec<TestResult>> {
    let names: Vec<&str> = job.tests.iter().map(|test| test.name).collect();
    let run_dir = job.ground.dir.join("runs").join(job.machine.place());
    let run = job.machine.run(&names, &job.ground.initramfs, &run_dir)?;
    let mut entries = Vec::new();

    for test in &job.tests {
        let left = run.results.join(test.name);
        let judged = match &run.failure {
            Some(failure) => Err(failure.clone()),
            None => test.judge(&left),
        };
        report(job, test.name, &judged);
        let seconds = run.seconds.get(test.name).copied().unwrap_or_default();
        entries.push(TestResult::new(&job.machine, test, &judged, seconds, &left));
    }

    Ok(entries)
}

fn report(job: &Job, test: &str, judged: &Judged) {
    let release = &job.machine.kernel.release;
    let variant = job.machine.variant;
    let machine = if variant.is_plain() {
        release.clone()
    } else {
        format!("{release} {}", variant.name)
    };
    match judged {
        Ok(said) if said.is_empty() => println!("ok: kernel {machine}: {test}"),
        Ok(said) => println!("{test}, kernel {machine}:\n{said}\nok: kernel {machine}: {test}"),
        Err(why) => println!("{why}\nFAILED: kernel {machine}: {test}"),
    }
}

/// Prints how long each test took, so that growth of the time of `make test` is seen.
fn report_times(entries: &[TestResult]) {
    let mut all: Vec<&TestResult> = entries.iter().collect();
    all.sort_by_key(|entry| std::cmp::Reverse(entry.seconds));
    println!("seconds, by the clock of this system:");
    for entry in &all {
        println!(
            "{:>6}  {} {} {}",
            entry.seconds, entry.series, entry.variant, entry.test
        );
    }
    let sum: u32 = all.iter().map(|entry| entry.seconds).sum();
    println!("{sum:>6}  in all machines");
}

/// The root of the source tree.
fn source_root() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.parent().unwrap_or(crate_dir).to_path_buf()
}

/// `vm` or, for guests other than amd64, `vm/ARCH` in cargo's target directory; created if missing.
fn vm_dir(guest: Guest) -> Result<PathBuf> {
    let vm = target_dir().join("vm");
    let dir = match guest {
        Guest::Amd64 => vm,
        Guest::Arm64 => vm.join("arm64"),
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    Ok(dir)
}

/// Cargo's target directory.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| source_root().join("target"), PathBuf::from)
}

/// QEMU's argument for a port whose output goes to a file.
fn file_argument(path: &Path) -> String {
    format!("file:{}", path.display())
}
