//! Answers denied calls and says what they were.

use super::report::Reporter;
use anyhow::Result;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use seccomp::policy::Policy;
use seccomp::{Action, Verdict};
use seccomp_kernel::launch::Launch;
use seccomp_kernel::listener::{Listener, Notification};
use std::os::fd::AsFd;

/// The verdicts of a supervised filter: denials go to the supervisor. ENOSYS stays with the kernel,
/// because programs try calls that the kernel may lack, and go on without them.
pub(super) fn supervised(verdict: Verdict) -> Verdict {
    match (verdict.action(), i32::from(verdict.data())) {
        (Action::Errno, libc::ENOSYS) => verdict,
        (Action::Errno | Action::KillProcess | Action::KillThread, _) => {
            Verdict::new(Action::UserNotif, 0)
        }
        _ => verdict,
    }
}

/// Lets the program run, and answers denied calls until the last process with the filter ends.
/// Returns the program's status.
pub(super) fn supervise(mut launch: Launch, policy: &Policy, profile: &str) -> Result<u8> {
    launch.go();
    let listener = Listener::new(launch.listener()?);
    let mut reporter = Reporter::new(policy, profile);
    let mut status = None;
    loop {
        let ended = status.is_some();
        let pidfd = launch.pidfd();
        let mut fds = vec![PollFd::from_borrowed_fd(listener.fd(), PollFlags::IN)];
        if !ended {
            fds.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
        }
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => anyhow::bail!("poll: {errno}"),
        }
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        if events[0].contains(PollFlags::IN) {
            if let Some(call) = listener.receive()? {
                answer(&listener, &call, policy, &mut reporter)?;
            }
        }
        // A program that never ran has said why.
        if events.get(1).is_some_and(|events| !events.is_empty()) {
            status = Some(launch.wait()?);
        }
        if events[0].contains(PollFlags::HUP) {
            break;
        }
    }
    reporter.finish();
    match status {
        Some(status) => Ok(status),
        None => Ok(launch.wait()?),
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
    reporter.denied(&who, &call.data, &ruling);
    let errno = match ruling.verdict.action() {
        Action::Errno => ruling.verdict.data(),
        _ => {
            kill(call.tid);
            libc::EPERM as u16
        }
    };
    listener.deny(call, errno)?;
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
        let _ = rustix::process::pidfd_send_signal(pidfd.as_fd(), Signal::KILL);
    }
}
