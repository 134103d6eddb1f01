//! Tracing a program for the sake of the calls that its filter denies: ptrace(2).
//!
//! SECCOMP_RET_TRAP refuses a call and forces SIGSYS, at which a traced thread stops before any other
//! signal is delivered: the tracer sets what the call returns and takes the signal away. No signal can
//! come in between, and a thread that is not traced is refused the call all the same.

use crate::error::{system, SeccompKernelError};
use crate::launch::Launch;
use crate::registers::{self, Registers};
use rustix::process::{WaitOptions, WaitStatus};
use seccomp::SeccompData;
use std::collections::HashMap;
use std::io;

/// Children are traced from their beginning. The end of the tracer is that of the program: its
/// denied calls would otherwise end as nobody wants.
const OPTIONS: libc::c_int = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXIT;

/// `SYS_SECCOMP` of siginfo.h: a filter has made this SIGSYS.
const SYS_SECCOMP: i32 = 1;

/// Largest number of stops in one turn, so that the caller gets to signals of its own.
const STOPS_MAX: usize = 256;

/// Why a thread has stopped at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// SECCOMP_RET_TRAP has refused the call.
    Trap,
    /// SECCOMP_RET_TRACE: the kernel is about to run the call.
    Trace,
    /// SIGSYS ends the thread, as SECCOMP_RET_KILL_PROCESS and SECCOMP_RET_KILL_THREAD have it.
    Kill,
}

/// A call at which a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The thread.
    pub tid: u32,
    /// Why it has stopped.
    pub at: At,
    /// The call, as filters see it.
    pub data: SeccompData,
}

/// What a turn has found.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    /// All threads run or wait. SIGCHLD comes when one stops or ends.
    Running,
    /// Others have stopped: the next turn is for them.
    More,
    /// The program that was launched has ended; those that it has started may run on.
    Ended(WaitStatus),
    /// No process is left.
    Over,
}

/// Traces a program and all that it starts. When it is dropped, the kernel ends them.
pub struct Tracer {
    pid: i32,
    /// Threads whose call is to be made again after a signal that they ignore, with the errno
    /// EINTR, until they have gone on.
    again: HashMap<i32, Registers>,
}

impl Tracer {
    /// Traces the child of `launch`, which waits for its start. All other functions are for the same
    /// thread.
    ///
    /// # Errors
    /// ptrace(PTRACE_SEIZE) fails, as where Yama or another tracer forbids it; or this machine's
    /// registers are not known.
    pub fn attach(launch: &Launch) -> Result<Tracer, SeccompKernelError> {
        if !registers::ARE_KNOWN {
            let source = io::Error::from_raw_os_error(libc::ENOSYS);
            return Err(system("ptrace on this architecture")(source));
        }
        let pid = launch.pid().as_raw_nonzero().get();
        ptrace(libc::PTRACE_SEIZE, pid, 0, OPTIONS as usize)
            .map_err(system("ptrace(PTRACE_SEIZE)"))?;

        Ok(Tracer {
            pid,
            again: HashMap::new(),
        })
    }

    /// Lets all stopped threads go on, until none is left or the program ends. `judge` is told of
    /// each call at which one has stopped, and asked for the errno (0: success) of a trapped one,
    /// whose thread otherwise gets SIGSYS. Other calls end as the kernel has it.
    ///
    /// # Errors
    /// wait4(2) or ptrace(2) fails.
    pub fn turn(
        &mut self,
        mut judge: impl FnMut(&Stopped) -> Option<u16>,
    ) -> Result<Turn, SeccompKernelError> {
        // Threads, too.
        let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(libc::__WALL as u32);
        for _ in 0..STOPS_MAX {
            let (pid, status) = match rustix::process::wait(options) {
                Ok(Some((pid, status))) => (pid.as_raw_nonzero().get(), status),
                Ok(None) => return Ok(Turn::Running),
                Err(rustix::io::Errno::CHILD) => return Ok(Turn::Over),
                Err(rustix::io::Errno::INTR) => continue,
                Err(errno) => return Err(system("wait4")(errno)),
            };

            if status.stopped() {
                match self.stopped(pid, status, &mut judge) {
                    // Killed meanwhile: its end is reported next.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    result => result.map_err(system("ptrace"))?,
                }
                continue;
            }

            self.again.remove(&pid);
            if pid == self.pid {
                return Ok(Turn::Ended(status));
            }
        }

        Ok(Turn::More)
    }

    /// Lets a thread go on.
    fn stopped(
        &mut self,
        tid: i32,
        status: WaitStatus,
        judge: &mut impl FnMut(&Stopped) -> Option<u16>,
    ) -> io::Result<()> {
        let signal = status.stopping_signal().unwrap_or(0);
        match status.as_raw() >> 16 {
            0 => {
                let signal = self.signalled(tid, signal, judge)?;
                return go_on(tid, signal);
            }
            // A process that was stopped (SIGSTOP, Ctrl-Z) stays so until SIGCONT.
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                return ptrace(libc::PTRACE_LISTEN, tid, 0, 0);
            }
            libc::PTRACE_EVENT_SECCOMP => {
                judge(&Registers::of(tid)?.call(tid, At::Trace));
            }
            libc::PTRACE_EVENT_EXIT => {
                let mut exit_status: libc::c_ulong = 0;
                let to = (&raw mut exit_status) as usize;
                ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, to)?;
                let registers = Registers::of(tid)?;
                if exit_status as i32 & 0x7f == libc::SIGSYS && registers.is_in_call() {
                    judge(&registers.call(tid, At::Kill));
                }
            }
            _ => {}
        }

        self.again.remove(&tid);

        go_on(tid, 0)
    }

    /// A thread is about to be given a signal. Returns the one that it is given; 0: none.
    fn signalled(
        &mut self,
        tid: i32,
        signal: i32,
        judge: &mut impl FnMut(&Stopped) -> Option<u16>,
    ) -> io::Result<i32> {
        let before = self.again.remove(&tid);
        if signal == libc::SIGSYS {
            if let Some(number) = number_of_trap(tid)? {
                let mut registers = Registers::of(tid)?;
                let mut call = registers.call(tid, At::Trap);
                call.data.nr = number;
                let Some(errno) = judge(&call) else {
                    return Ok(signal);
                };
                registers.return_errno(errno);
                registers.set(tid)?;
                return Ok(0);
            }
        }

        // A traced thread is woken by signals that it ignores, which some calls answer with EINTR.
        let mut registers = Registers::of(tid)?;
        if registers.waits_again_after_eintr() && is_ignored(tid, signal) {
            self.again.insert(tid, registers.clone());
            registers.call_again();
            registers.set(tid)?;
        } else if let Some(before) = before.filter(|before| before.is_before_again(&registers)) {
            // Another signal at once: EINTR is right if the thread has a handler for it.
            if is_ignored(tid, signal) {
                self.again.insert(tid, before);
            } else {
                before.set(tid)?;
            }
        }

        Ok(signal)
    }
}

/// Lets a thread go on, with a signal or 0.
fn go_on(tid: i32, signal: i32) -> io::Result<()> {
    ptrace(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Number of the call that a filter has trapped; `None` if somebody else has sent the SIGSYS.
fn number_of_trap(tid: i32) -> io::Result<Option<u32>> {
    /// The layout of siginfo.h for SIGSYS, as 64-bit processes see it.
    #[repr(C)]
    struct Trap {
        number: i32,
        errno: i32,
        code: i32,
        _pad: i32,
        _address: u64,
        call: i32,
        arch: u32,
        _rest: [u64; 12],
    }
    // SAFETY: integers only, and zeros are valid.
    let mut trap: Trap = unsafe { std::mem::zeroed() };
    const { assert!(size_of::<Trap>() == size_of::<libc::siginfo_t>()) };
    ptrace(libc::PTRACE_GETSIGINFO, tid, 0, (&raw mut trap) as usize)?;

    Ok((trap.code == SYS_SECCOMP).then_some(trap.call as u32))
}

/// Whether a thread has no use for a signal: it ignores it, or has no handler for one that is
/// ignored by default (signal(7)).
fn is_ignored(tid: i32, signal: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let set = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    let (Some(ignored), Some(caught)) = (set("SigIgn:"), set("SigCgt:")) else {
        return false;
    };

    let bit = 1 << (signal - 1);
    let by_default = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    ignored & bit != 0 || (caught & bit == 0 && by_default.contains(&signal))
}

/// A request of ptrace(2) that returns 0.
pub(crate) fn ptrace(
    request: libc::c_uint,
    tid: i32,
    address: usize,
    data: usize,
) -> io::Result<()> {
    // SAFETY: requests that write get an address of memory of their kind, from functions here.
    let result = unsafe { libc::ptrace(request, tid, address, data) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
