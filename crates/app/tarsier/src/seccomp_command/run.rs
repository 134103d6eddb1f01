//! `tarsier seccomp run`: a program under a profile.

use super::denials::Reporter;
use super::{denials, in_full, source, supervisor, traced};
use anyhow::{bail, Context as _, Result};
use cli::messages::report;
use cli::seccomp::RunArgs;
use seccomp::compile::{compile_as, Frequencies};
use seccomp::policy::Policy;
use seccomp::Verdict;
use seccomp_kernel::launch::{self, Install, Launch, Program};
use seccomp_kernel::tracer::Tracer;

/// Status 127: the program cannot be run.
const CANNOT_RUN: u8 = 127;

/// Becomes the program, or supervises it. Returns the program's status.
pub(super) fn run(args: &RunArgs) -> Result<u8> {
    let context = source::context(&args.with)?;
    let policy = source::policy(&args.profile, &context)?;
    let profile = args.profile.display().to_string();
    if let Some(place) = denials::asks_for_an_agent(&policy) {
        bail!(
            "{profile}: {place}: SCMP_ACT_NOTIFY needs an agent, and here is none; give calls \
             another action"
        );
    }

    under(args, &policy, &profile).or_else(|error| {
        report!("tarsier: {}", in_full(&error));
        Ok(CANNOT_RUN)
    })
}

/// The status of the program, where it was watched; otherwise this process became the program.
fn under(args: &RunArgs, policy: &Policy, profile: &str) -> Result<u8> {
    let program = Program::find(&args.command)?;
    let weights = Frequencies::usual();
    let install = |verdict_of: fn(Verdict) -> Verdict, listen: bool| -> Result<Install> {
        let filter = compile_as(policy, &weights, verdict_of);
        Ok(Install {
            filter: filter.with_context(|| profile.to_owned())?,
            flags: policy.flags,
            listen,
            waits_killable: launch::knows_wait_killable(),
        })
    };

    if !args.log {
        return Err(launch::replace(&program, &install(|verdict| verdict, false)?).into());
    }
    let text = source::text(&args.profile).unwrap_or_default();
    let reporter = Reporter::new(policy, profile).with_text(&text);
    let no_bpf = match supervisor::recorder(policy) {
        Ok(recorder) => {
            let install = install(|verdict| verdict, false)?;
            let launch = Launch::start(&program, Some(&install))?;
            return supervisor::observe(launch, recorder, reporter);
        }
        Err(error) => error,
    };

    // An effect on the program is the smaller evil: a tracer first, which keeps the errnos.
    let trapping = install(traced::trapped, false)?;
    let launch = Launch::start(&program, Some(&trapping))?;
    match Tracer::attach(&launch) {
        Ok(tracer) => {
            report!(
                "tarsier: note: denials cannot be observed with BPF ({no_bpf}); tarsier traces the \
                 program instead: debuggers and strace do not work in it"
            );
            traced::trace(launch, tracer, policy, reporter)
        }
        Err(no_tracing) => {
            drop(launch);
            report!(
                "tarsier: note: denials cannot be observed with BPF ({no_bpf}), nor by tracing \
                 ({no_tracing}); denied calls are answered by tarsier instead: a signal may \
                 interrupt them (EINTR), calls that kill end with SIGKILL, and traps (SIGSYS) are \
                 not reported"
            );
            let listening = install(supervisor::supervised, true)?;
            let launch = Launch::start(&program, Some(&listening))?;
            supervisor::supervise(launch, policy, reporter)
        }
    }
}
