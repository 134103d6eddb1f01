//! Child processes that install filters and are held, or make calls and report.

use seccomp::Chain;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of repetitions; the environment can ask for long runs.
pub(crate) fn rounds(default: usize) -> usize {
    match std::env::var("TARSIER_SECCOMP_ROUNDS") {
        Ok(text) => text.parse().expect("TARSIER_SECCOMP_ROUNDS is a number"),
        Err(_) => default,
    }
}

/// Memory shared by parent and child.
struct Shared {
    words: *mut u64,
}

const SHARED_WORDS: usize = 512;

impl Shared {
    fn new() -> Shared {
        // SAFETY: a new anonymous mapping.
        let words = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SHARED_WORDS * 8,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(words, libc::MAP_FAILED);
        Shared {
            words: words.cast(),
        }
    }

    fn state(&self) -> &AtomicU32 {
        // SAFETY: the mapping is aligned, zeroed, and lives as long as self.
        unsafe { AtomicU32::from_ptr(self.words.cast()) }
    }

    fn word(&self, index: usize) -> *mut u64 {
        assert!(index + 1 < SHARED_WORDS);
        // SAFETY: within the mapping.
        unsafe { self.words.add(index + 1) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping, not used any more.
        unsafe { libc::munmap(self.words.cast(), SHARED_WORDS * 8) };
    }
}

/// A child that holds the filters of a chain; it ends when dropped.
pub(crate) struct Child {
    pub(crate) pid: u32,
    ended: bool,
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: our own child, not waited for yet.
            unsafe {
                libc::kill(self.pid as i32, libc::SIGKILL);
                libc::waitpid(self.pid as i32, ptr::null_mut(), 0);
            }
        }
    }
}

const INSTALLED: u32 = 1;
const DONE: u32 = 2;

type Programs = Vec<Vec<libc::sock_filter>>;

fn programs(chain: &Chain) -> Programs {
    let filters = chain.filters().iter();
    filters.map(|filter| raw(filter.insns())).collect()
}

fn raw(insns: &[seccomp::Insn]) -> Vec<libc::sock_filter> {
    let raw = |insn: &seccomp::Insn| libc::sock_filter {
        code: insn.code,
        jt: insn.jt,
        jf: insn.jf,
        k: insn.k,
    };
    insns.iter().map(raw).collect()
}

/// Forks. The child installs every filter of a chain that it can, and then runs `then`.
fn fork(chain: &Chain, shared: &Shared, then: impl Fn()) -> Child {
    let mut programs = programs(chain);
    let programs = pointers(&mut programs);
    fork_and(shared, || {
        for program in &programs {
            if !take(program) {
                break;
            }
        }
        shared.state().store(INSTALLED, Ordering::Release);
        then();
    })
}

fn pointers(programs: &mut Programs) -> Vec<libc::sock_fprog> {
    let pointer = |program: &mut Vec<libc::sock_filter>| libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    programs.iter_mut().map(pointer).collect()
}

/// Installs a filter; called in a child.
fn take(program: &libc::sock_fprog) -> bool {
    // SAFETY: the program was made before the fork; the kernel reads it.
    unsafe { libc::syscall(libc::SYS_seccomp, 1, 0, ptr::from_ref(program)) == 0 }
}

/// Number of programs at the start of a list that the kernel refuses, and whether it then accepts one.
pub(crate) fn refused(programs: &[Vec<seccomp::Insn>]) -> (usize, bool) {
    let mut raw: Programs = programs.iter().map(|insns| raw(insns)).collect();
    let pointers = pointers(&mut raw);
    let shared = Shared::new();
    let (count, taken) = (shared.word(0), shared.word(1));
    let mut child = fork_and(&shared, || {
        for program in &pointers {
            let is_taken = take(program);
            // SAFETY: places in shared memory, which the parent reads when the child is done.
            unsafe {
                taken.write_volatile(u64::from(is_taken));
                if is_taken {
                    return;
                }
                count.write_volatile(count.read_volatile() + 1);
            }
        }
    });
    assert!(
        child.wait_for(&shared),
        "a child that makes no further call"
    );
    // SAFETY: the child is done.
    unsafe { (count.read_volatile() as usize, taken.read_volatile() == 1) }
}

/// Forks. The child sets no_new_privs, runs `then`, reports, and waits to be killed.
fn fork_and(shared: &Shared, then: impl Fn()) -> Child {
    // SAFETY: the child makes system calls on memory that was made before, and never returns.
    let pid = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            then();
            shared.state().store(DONE, Ordering::Release);
            loop {
                std::hint::spin_loop();
            }
        }
        pid
    };
    assert!(pid > 0, "fork");
    Child {
        pid: pid as u32,
        ended: false,
    }
}

impl Child {
    /// A stopped child that has installed as much of a chain as it could; `None` if a filter killed it.
    pub(crate) fn hold(chain: &Chain) -> Option<Child> {
        let shared = Shared::new();
        let mut child = fork(chain, &shared, || {});
        if !child.wait_for(&shared) {
            return None;
        }
        // SAFETY: our own child. It needs no processor from here on.
        unsafe { libc::kill(child.pid as i32, libc::SIGSTOP) };
        Some(child)
    }

    /// Waits until the child is done; false if it was killed.
    fn wait_for(&mut self, shared: &Shared) -> bool {
        while shared.state().load(Ordering::Acquire) != DONE {
            // SAFETY: our own child.
            let got = unsafe { libc::waitpid(self.pid as i32, ptr::null_mut(), libc::WNOHANG) };
            if got == self.pid as i32 {
                self.ended = true;
                return false;
            }
            std::thread::yield_now();
        }
        true
    }
}

/// A system call to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Through `int $0x80`, as 32-bit programs do, but with 64-bit registers.
    pub(crate) is_compat: bool,
    pub(crate) nr: u32,
    pub(crate) args: [u64; 6],
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Errno(i32),
    Zero,
    OwnPid,
    Other(i64),
    Killed,
}

/// Makes one call, and stores the address after it in `ip`.
#[cfg(target_arch = "x86_64")]
fn call(call: &Call, ip: *mut u64) -> i64 {
    let result;
    // SAFETY: the calls of these tests take no pointers; ip is a place in shared memory.
    unsafe {
        std::arch::asm!(
            "lea {after}, [rip + 2f]",
            "mov [{ip}], {after}",
            "syscall",
            "2:",
            after = out(reg) _,
            ip = in(reg) ip,
            inlateout("rax") u64::from(call.nr) as i64 => result,
            in("rdi") call.args[0],
            in("rsi") call.args[1],
            in("rdx") call.args[2],
            in("r10") call.args[3],
            in("r8") call.args[4],
            in("r9") call.args[5],
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Makes one call through the 32-bit entry. Registers that the compiler reserves are saved.
#[cfg(target_arch = "x86_64")]
fn compat_call(call: &Call, ip: *mut u64) -> i64 {
    let result: i64;
    // SAFETY: as `call`; r12 points to the six arguments.
    unsafe {
        std::arch::asm!(
            "push rbx",
            "push rbp",
            "lea r9, [rip + 2f]",
            "mov [r8], r9",
            "mov rbx, [r12]",
            "mov rcx, [r12 + 8]",
            "mov rdx, [r12 + 16]",
            "mov rsi, [r12 + 24]",
            "mov rdi, [r12 + 32]",
            "mov rbp, [r12 + 40]",
            "int 0x80",
            "2:",
            "pop rbp",
            "pop rbx",
            inlateout("rax") u64::from(call.nr) as i64 => result,
            in("r12") call.args.as_ptr(),
            inlateout("r8") ip => _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("r11") _,
            lateout("rcx") _,
            lateout("rdx") _,
            lateout("rsi") _,
            lateout("rdi") _,
        );
    }
    i64::from(result as i32)
}

/// Outcomes of calls that the kernel decides under a chain, with the addresses that the calls came from. If the child
/// is killed, the list ends with [`Outcome::Killed`]; `None` if the filter was not accepted.
#[cfg(target_arch = "x86_64")]
pub(crate) fn outcomes(chain: &Chain, calls: &[Call]) -> Option<Vec<(u64, Outcome)>> {
    assert!(calls.len() * 2 + 1 < SHARED_WORDS);
    let shared = Shared::new();
    let made = shared.word(0);
    let mut child = fork(chain, &shared, || {
        for (index, one) in calls.iter().enumerate() {
            let ip = shared.word(1 + 2 * index);
            let result = if one.is_compat {
                compat_call(one, ip)
            } else {
                call(one, ip)
            };
            // SAFETY: places in shared memory, which the parent reads when the child is done.
            unsafe {
                shared.word(2 + 2 * index).write_volatile(result as u64);
                made.write_volatile(index as u64 + 1);
            }
        }
    });
    let alive = child.wait_for(&shared);
    if !alive && shared.state().load(Ordering::Acquire) != INSTALLED {
        return None;
    }
    // SAFETY: the child is done or gone.
    let count = unsafe { made.read_volatile() } as usize;
    // SAFETY: the same.
    let word = |index| unsafe { shared.word(index).read_volatile() };
    let mut outcomes: Vec<(u64, Outcome)> = (0..count)
        .map(|index| {
            let outcome = match word(2 + 2 * index) as i64 {
                0 => Outcome::Zero,
                errno @ -4095..=-1 => Outcome::Errno(-errno as i32),
                pid if pid == i64::from(child.pid) => Outcome::OwnPid,
                other => Outcome::Other(other),
            };
            (word(1 + 2 * index), outcome)
        })
        .collect();
    if !alive {
        outcomes.push((word(1 + 2 * count), Outcome::Killed));
    }
    Some(outcomes)
}
