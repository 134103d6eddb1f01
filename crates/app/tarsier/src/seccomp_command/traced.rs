//! Runs a program under its filter and says what it was denied, as its tracer: without root's rights,
//! and with the errno that the profile has, whatever signals come.

use super::denials::Reporter;
use super::supervisor::{pass_on, wait};
use anyhow::Result;
use seccomp::policy::Policy;
use seccomp::{Action, SeccompData, Verdict};
use seccomp_kernel::launch::Launch;
use seccomp_kernel::signals::Signals;
use seccomp_kernel::tracer::{At, Stopped, Tracer, Turn};

/// The verdicts of a filter whose denials are seen by a tracer. What is refused is refused without
/// one, too: SECCOMP_RET_TRACE would let a tracer of the program's own allow it.
pub(super) fn trapped(verdict: Verdict) -> Verdict {
    match verdict.action() {
        Action::Errno | Action::Trace => Verdict::new(Action::Trap, 0),
        Action::Log => Verdict::new(Action::Trace, 0),
        _ => verdict,
    }
}

/// Lets the program run, and reports denials until the last process that it started ends. Returns
/// the program's status.
pub(super) fn trace(
    mut launch: Launch,
    mut tracer: Tracer,
    policy: &Policy,
    mut reporter: Reporter,
) -> Result<u8> {
    let signals = Signals::take_with(&[libc::SIGCHLD])?;
    launch.go();
    let mut status = None;

    loop {
        let turn = tracer.turn(|stopped| {
            if is_denied_here(stopped, policy) {
                let who = reporter.thread(stopped.tid);
                reporter.seen(&who, &stopped.data, 1);
            }
            errno(policy, &stopped.data)
        })?;
        match turn {
            Turn::Running => {
                wait(&signals, None, None)?;
                pass_on(&signals, &launch, status.is_some());
            }
            Turn::More => pass_on(&signals, &launch, status.is_some()),
            // A program that never ran has said why.
            Turn::Ended(ended) => status = Some(launch.ended(ended)?),
            Turn::Over => break,
        }
    }

    reporter.finish();

    match status {
        Some(status) => Ok(status),
        None => Ok(launch.wait()?),
    }
}

/// Whether a thread has stopped because of the profile, and not of a filter that was there before or
/// of a SIGSYS from elsewhere.
fn is_denied_here(stopped: &Stopped, policy: &Policy) -> bool {
    let ruling = policy.decide(&stopped.data);
    let action = ruling.map(|ruling| ruling.verdict.action());
    match stopped.at {
        At::Trap => true,
        At::Trace => action == Some(Action::Log),
        At::Kill => matches!(action, Some(Action::KillProcess | Action::KillThread)),
    }
}

/// The errno that the profile has for a call; `None` if its thread gets SIGSYS.
fn errno(policy: &Policy, data: &SeccompData) -> Option<u16> {
    let verdict = policy.decide(data)?.verdict;
    match verdict.action() {
        Action::Errno => Some(verdict.data()),
        // No tracer of the program's own is there.
        Action::Trace => Some(libc::ENOSYS as u16),
        _ => None,
    }
}
