//! `tarsier seccomp run`: a program under a profile.

use super::denials::Reporter;
use super::{denials, in_full, source, supervisor};
use anyhow::{bail, Context as _, Result};
use cli::messages::report;
use cli::seccomp::RunArgs;
use seccomp::compile::{compile, compile_as, Frequencies};
use seccomp::policy::Policy;
use seccomp_kernel::denials::DenialRecorder;
use seccomp_kernel::launch::{self, Install, Launch, Program};

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

    let weights = Frequencies::usual();
    let recorder = args.log.then(|| supervisor::recorder(&policy)).flatten();
    let listen = args.log && recorder.is_none();
    let filter = if listen {
        compile_as(&policy, &weights, supervisor::supervised)
    } else {
        compile(&policy, &weights)
    };
    let install = Install {
        filter: filter.with_context(|| profile.clone())?,
        flags: policy.flags,
        listen,
        waits_killable: launch::knows_wait_killable(),
    };

    under(&install, args, recorder, &policy, &profile).or_else(|error| {
        report!("tarsier: {}", in_full(&error));
        Ok(CANNOT_RUN)
    })
}

/// The status of the program, where it was watched; otherwise this process became the program.
fn under(
    install: &Install,
    args: &RunArgs,
    recorder: Option<DenialRecorder>,
    policy: &Policy,
    profile: &str,
) -> Result<u8> {
    let program = Program::find(&args.command)?;
    if !args.log {
        return Err(launch::replace(&program, install).into());
    }
    let text = source::text(&args.profile).unwrap_or_default();
    let reporter = Reporter::new(policy, profile).with_text(&text);
    let launch = Launch::start(&program, Some(install))?;
    match recorder {
        Some(recorder) => supervisor::observe(launch, recorder, reporter),
        None => supervisor::supervise(launch, policy, reporter),
    }
}
