//! Runs a program under its filter and says what it was denied.
//!
//! With BPF, which needs root, the filter is the profile's own, and denials are only observed.
//! Otherwise the program is traced (`traced`). Where that is not possible either, denied calls come
//! here through SECCOMP_RET_USER_NOTIF and are answered.

use super::denials::Reporter;
use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use seccomp::policy::Policy;
use seccomp::{Action, Verdict};
use seccomp_kernel::denials::{DenialRecorder, LookedAt};
use seccomp_kernel::launch::Launch;
use seccomp_kernel::listener::{Listener, Notification};
use seccomp_kernel::signals::Signals;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

/// The verdicts of a filter whose denials are answered here. Traps (SIGSYS) stay with the kernel,
/// since no supervisor can send their signal.
pub(super) fn supervised(verdict: Verdict) -> Verdict {
    match verdict.action() {
        Action::Allow | Action::Trap | Action::UserNotif => verdict,
        _ => Verdict::new(Action::UserNotif, 0),
    }
}

/// Loads the programs that observe denials under `policy`.
///
/// # Errors
/// BPF programs cannot be loaded, as without root's rights.
pub(super) fn recorder(policy: &Policy) -> Result<DenialRecorder> {
    Ok(DenialRecorder::start(looked_at(policy))?)
}

/// What the kernel is to record of each call: the arguments of conditions, and calls that a
/// SCMP_ACT_LOG may allow.
fn looked_at(policy: &Policy) -> BTreeMap<(u32, u32), LookedAt> {
    let mut calls: BTreeMap<(u32, u32), LookedAt> = BTreeMap::new();
    for abi in policy.abis() {
        for layer in &policy.layers {
            let logs_default = layer.default.action() == Action::Log;
            if logs_default {
                for (nr, _) in abi.calls() {
                    let entry = calls.entry((abi.audit_arch(), nr)).or_default();
                    entry.when_allowed = true;
                }
            }
            let rules = layer
                .abis
                .get(&abi)
                .into_iter()
                .flat_map(|rules| &rules.calls);
            for (&nr, rules) in rules {
                let entry = calls.entry((abi.audit_arch(), nr)).or_default();
                for rule in rules {
                    entry.when_allowed |= rule.verdict.action() == Action::Log;
                    for condition in &rule.conditions {
                        entry.args |= 1 << condition.arg;
                    }
                }
            }
        }
    }

    calls
}

/// How often new denials are looked for, and signals when nothing else happens.
const PAUSE_MS: i64 = 100;

/// Lets the program run under its own filter, and reports denials until the last process that it
/// started ends. Returns the program's status.
pub(super) fn observe(
    mut launch: Launch,
    mut recorder: DenialRecorder,
    mut reporter: Reporter,
) -> Result<u8> {
    recorder.follow(launch.pidfd())?;
    let signals = Signals::take()?;
    launch.go();

    let mut status = None;

    loop {
        let pidfd = status.is_none().then(|| launch.pidfd());
        let ended = wait(&signals, pidfd, None)?.has_ended;
        pass_on(&signals, &launch, status.is_some());
        if ended {
            status = Some(launch.wait()?);
        }
        // Asked before the news: what happened by then is among them.
        let is_over = status.is_some() && !recorder.is_busy()?;
        let (news, missed) = recorder.news()?;
        for denial in news {
            let (name, tid) = &denial.thread;
            reporter.seen(&format!("{name}[{tid}]"), &denial.data, denial.times);
        }
        reporter.missed(missed);
        if is_over {
            break;
        }
    }

    reporter.finish();

    Ok(status.unwrap_or_default())
}

/// Lets the program run, and answers denied calls until the last process with the filter ends.
/// Returns the program's status.
pub(super) fn supervise(mut launch: Launch, policy: &Policy, mut reporter: Reporter) -> Result<u8> {
    let signals = Signals::take()?;
    launch.go();
    let listener = Listener::new(launch.listener()?);
    let mut status = None;

    loop {
        let pidfd = status.is_none().then(|| launch.pidfd());
        let events = wait(&signals, pidfd, Some(listener.fd()))?;
        pass_on(&signals, &launch, status.is_some());
        if events.listener.contains(PollFlags::IN) {
            if let Some(call) = listener.receive()? {
                answer(&listener, &call, policy, &mut reporter)?;
            }
        }
        // A program that never ran has said why.
        if events.has_ended {
            status = Some(launch.wait()?);
        }
        if events.listener.contains(PollFlags::HUP) {
            break;
        }
    }

    reporter.finish();
    match status {
        Some(status) => Ok(status),
        None => Ok(launch.wait()?),
    }
}

pub(super) struct Events {
    has_ended: bool,
    listener: PollFlags,
}

/// Waits for a signal, the end of the program, or a call to answer, and not longer than a moment.
pub(super) fn wait(
    signals: &Signals,
    pidfd: Option<BorrowedFd>,
    listener: Option<BorrowedFd>,
) -> Result<Events> {
    let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
    fds.extend(pidfd.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    fds.extend(listener.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: PAUSE_MS * 1_000_000,
    };
    match rustix::event::poll(&mut fds, Some(&moment)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => anyhow::bail!("poll: {errno}"),
    }

    let events = |at: usize| fds.get(at).map_or(PollFlags::empty(), PollFd::revents);
    let has_pidfd = pidfd.is_some();

    Ok(Events {
        has_ended: has_pidfd && !events(1).is_empty(),
        listener: events(1 + usize::from(has_pidfd)),
    })
}

/// Passes signals on to the program, which has those of its terminal already.
pub(super) fn pass_on(signals: &Signals, launch: &Launch, has_ended: bool) {
    while let Some(signal) = signals.next() {
        if !signal.is_from_kernel && !has_ended {
            launch.signal(signal.number);
        }
    }
}

fn answer(
    listener: &Listener,
    call: &Notification,
    policy: &Policy,
    reporter: &mut Reporter,
) -> Result<()> {
    let Some(ruling) = policy.decide(&call.data) else {
        return Ok(());
    };

    // What /proc says of the thread is only true while it waits.
    let who = reporter.thread(call.tid);
    if !listener.is_waiting(call) {
        return Ok(());
    }

    reporter.seen(&who, &call.data, 1);

    match ruling.verdict.action() {
        Action::Allow | Action::Log => listener.allow(call)?,
        Action::Errno => listener.deny(call, ruling.verdict.data())?,
        // No tracer is there.
        Action::Trace => listener.deny(call, libc::ENOSYS as u16)?,
        _ => {
            kill(call.tid);
            listener.deny(call, libc::EPERM as u16)?;
        }
    }

    Ok(())
}

/// Ends the process of a thread, which waits for our answer and so is still the one we mean.
fn kill(tid: u32) {
    let tgid = std::fs::read_to_string(format!("/proc/{tid}/status"))
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
            line.trim().parse::<i32>().ok()
        });

    let pid = Pid::from_raw(tgid.unwrap_or(tid as i32));
    let pidfd = pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(pidfd) = pidfd {
        // Gone already: that is what was wanted.
        let _ = rustix::process::pidfd_send_signal(pidfd.as_fd(), rustix::process::Signal::KILL);
    }
}
