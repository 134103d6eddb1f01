//! Calls on processes, their rights and their memory, and on what System V objects they share.

use super::row;
use crate::calls::row::CallRow;
use crate::calls::SyscallClass;
use crate::calls::{Argument, EntryHook, Meant, ObjectClass, ShapeKind, Verb};

/// `PTRACE_POKETEXT` and `PTRACE_POKEDATA` (linux/ptrace.h).
const POKES: [(Verb, Meant, Option<Argument>); 2] = [pokes(4), pokes(5)];

const fn pokes(request: u32) -> (Verb, Meant, Option<Argument>) {
    let argument = Argument {
        index: 0,
        is_mask: false,
        value: request,
    };
    (Verb::WriteMemory, Meant::ByArgument, Some(argument))
}

const fn forks(name: &'static str) -> CallRow {
    row(name).kind(ShapeKind::Fork).verb(Verb::Fork)
}

const fn exits(name: &'static str) -> CallRow {
    row(name).kind(ShapeKind::Exit).verb(Verb::Exit)
}

const fn signals(name: &'static str) -> CallRow {
    row(name)
        .hooks(ObjectClass::Signal, &["audit_signal_info"])
        .verb(Verb::Signal)
}

const fn sets_user(name: &'static str) -> CallRow {
    row(name).verb(Verb::SetUser)
}

const fn sets_group(name: &'static str) -> CallRow {
    row(name).verb(Verb::SetGroup)
}

/// A call on another process, which rules that name it are not about.
const fn traces(name: &'static str) -> CallRow {
    row(name).others(&[(Verb::Trace, Meant::Never, None)])
}

const fn shares(name: &'static str) -> CallRow {
    row(name).hooks(ObjectClass::Ipc, &["ipcperms", "ipcctl_obtain_check"])
}

pub(super) const ROWS: &[CallRow] = &[
    forks("fork"),
    forks("vfork"),
    forks("clone"),
    forks("clone3"),
    exits("exit"),
    exits("exit_group"),
    signals("kill").target(0).class(SyscallClass::Signal),
    signals("tkill").target(0).class(SyscallClass::Signal),
    signals("tgkill").target(1).class(SyscallClass::Signal),
    signals("rt_sigqueueinfo").target(0).wordless(),
    signals("rt_tgsigqueueinfo").target(1).wordless(),
    signals("pidfd_send_signal").target_fd(0).wordless(),
    row("ptrace").target(1).verb(Verb::Trace).others(&POKES),
    traces("process_vm_readv").verb(Verb::ReadMemory),
    traces("process_vm_writev").verb(Verb::WriteMemory),
    traces("pidfd_getfd").verb(Verb::TakeDescriptor),
    row("waitid").uring(&[("waitid", 0)]),
    sets_user("setuid"),
    sets_user("setreuid"),
    sets_user("setresuid"),
    sets_user("setfsuid"),
    sets_user("setuid32").wordless(),
    sets_user("setreuid32").wordless(),
    sets_user("setresuid32").wordless(),
    sets_user("setfsuid32").wordless(),
    sets_group("setgid"),
    sets_group("setregid"),
    sets_group("setresgid"),
    sets_group("setfsgid"),
    sets_group("setgid32").wordless(),
    sets_group("setregid32").wordless(),
    sets_group("setresgid32").wordless(),
    sets_group("setfsgid32").wordless(),
    row("setgroups").verb(Verb::SetGroups),
    row("setgroups32").verb(Verb::SetGroups),
    row("capset")
        .kind(ShapeKind::Capset)
        .verb(Verb::SetCapabilities),
    row("setrlimit").verb(Verb::SetLimit),
    row("prlimit64").verb(Verb::SetLimit),
    row("brk").verb(Verb::MapMemory),
    row("map_shadow_stack").verb(Verb::MapMemory),
    row("mmap").verb(Verb::MapMemory),
    row("madvise").uring(&[("madvise", 0)]),
    row("sched_setattr").verb(Verb::Schedule),
    row("sched_setparam").verb(Verb::Schedule),
    row("sched_setscheduler").verb(Verb::Schedule),
    row("landlock_add_rule").verb(Verb::Confine),
    row("landlock_create_ruleset").verb(Verb::Confine),
    row("landlock_restrict_self").verb(Verb::Confine),
    row("lsm_set_self_attr").verb(Verb::Confine),
    row("mseal").verb(Verb::Confine),
    row("futex_wait").uring(&[("futex_wait", 0)]),
    row("futex_wake").uring(&[("futex_wake", 0)]),
    row("futex_waitv").uring(&[("futex_waitv", 0)]),
    shares("msgget"),
    shares("msgsnd").entry(EntryHook::Messages),
    shares("msgrcv").entry(EntryHook::Messages),
    shares("msgctl").entry(EntryHook::MessageControl),
    shares("semget"),
    shares("semop").entry(EntryHook::Semaphores),
    shares("semtimedop").entry(EntryHook::Semaphores),
    shares("semtimedop_time64"),
    shares("semctl").entry(EntryHook::SemaphoreControl),
    shares("shmget"),
    shares("shmat").entry(EntryHook::Memory),
    shares("shmctl").entry(EntryHook::MemoryControl),
    shares("ipc"),
];
