//! Registers of a stopped thread: its call, and what the call returns.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{Registers, ARE_KNOWN};

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use unknown::{Registers, ARE_KNOWN};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use crate::tracer::{ptrace, At, Stopped};
    use seccomp::SeccompData;
    use std::io;

    /// Whether threads can be traced on this machine.
    pub(crate) const ARE_KNOWN: bool = true;

    /// `AUDIT_ARCH_X86_64` of linux/audit.h.
    const X86_64: u32 = 0xc000_003e;

    /// Length of the instructions `syscall` and `int $0x80`, bytes.
    const CALL_BYTES: u64 = 2;

    /// Calls that signals end with EINTR even where there is no handler, without having done anything
    /// (signal(7), "Interruption of system calls and library functions by stop signals").
    const WAITS: [libc::c_long; 19] = [
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_io_getevents,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_recvmmsg,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_sendmmsg,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
    ];

    /// The registers, and the architecture of the call.
    #[derive(Clone)]
    pub(crate) struct Registers {
        user: libc::user_regs_struct,
        arch: u32,
    }

    impl Registers {
        /// Reads those of a thread that has stopped.
        pub(crate) fn of(tid: i32) -> io::Result<Registers> {
            // SAFETY: integers only, and zeros are valid.
            let mut user: libc::user_regs_struct = unsafe { std::mem::zeroed() };
            ptrace(libc::PTRACE_GETREGS, tid, 0, (&raw mut user) as usize)?;
            // SAFETY: as above.
            let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::ptrace_syscall_info>();
            let to = (&raw mut info) as usize;
            ptrace(libc::PTRACE_GET_SYSCALL_INFO, tid, size, to)?;

            Ok(Registers {
                user,
                arch: info.arch,
            })
        }

        /// Writes them into the thread.
        pub(crate) fn set(&self, tid: i32) -> io::Result<()> {
            ptrace(
                libc::PTRACE_SETREGS,
                tid,
                0,
                (&raw const self.user) as usize,
            )
        }

        /// The call that the thread is in.
        pub(crate) fn call(&self, tid: i32, at: At) -> Stopped {
            let user = &self.user;
            let args = if self.arch == X86_64 {
                [user.rdi, user.rsi, user.rdx, user.r10, user.r8, user.r9]
            } else {
                [user.rbx, user.rcx, user.rdx, user.rsi, user.rdi, user.rbp]
                    .map(|arg| arg & 0xffff_ffff)
            };
            Stopped {
                tid: tid as u32,
                at,
                data: SeccompData {
                    nr: user.orig_rax as u32,
                    arch: self.arch,
                    instruction_pointer: user.rip,
                    args,
                },
            }
        }

        /// Whether the thread is in a call, and not in code of its own.
        pub(crate) fn is_in_call(&self) -> bool {
            self.user.orig_rax as i32 != -1
        }

        /// The call has not run, and returns an errno, or 0.
        pub(crate) fn return_errno(&mut self, errno: u16) {
            self.user.rax = i64::from(errno).wrapping_neg() as u64;
        }

        /// Whether the call has ended with EINTR and could be made again.
        pub(crate) fn waits_again_after_eintr(&self) -> bool {
            let call = self.user.orig_rax as i64;
            self.arch == X86_64
                && self.user.rax as i64 == -i64::from(libc::EINTR)
                && WAITS.contains(&call)
        }

        /// The thread makes the call again when it goes on.
        pub(crate) fn call_again(&mut self) {
            self.user.rax = self.user.orig_rax;
            self.user.rip -= CALL_BYTES;
        }

        /// Whether `later` is what [`Registers::call_again`] has made of this.
        pub(crate) fn is_before_again(&self, later: &Registers) -> bool {
            later.user.rip == self.user.rip - CALL_BYTES
                && later.user.rax == self.user.orig_rax
                && later.user.rsp == self.user.rsp
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod unknown {
    use crate::tracer::{At, Stopped};
    use std::io;

    /// Whether threads can be traced on this machine.
    pub(crate) const ARE_KNOWN: bool = false;

    /// No value exists.
    #[derive(Clone)]
    pub(crate) enum Registers {}

    impl Registers {
        pub(crate) fn of(_tid: i32) -> io::Result<Registers> {
            Err(io::Error::from_raw_os_error(libc::ENOSYS))
        }

        pub(crate) fn set(&self, _tid: i32) -> io::Result<()> {
            match *self {}
        }

        pub(crate) fn call(&self, _tid: i32, _at: At) -> Stopped {
            match *self {}
        }

        pub(crate) fn is_in_call(&self) -> bool {
            match *self {}
        }

        pub(crate) fn return_errno(&mut self, _errno: u16) {
            match *self {}
        }

        pub(crate) fn waits_again_after_eintr(&self) -> bool {
            match *self {}
        }

        pub(crate) fn call_again(&mut self) {
            match *self {}
        }

        pub(crate) fn is_before_again(&self, _later: &Registers) -> bool {
            match *self {}
        }
    }
}
