//! The records of an event, in the order in which the kernel writes them: `audit_log_exit()`, kernel/auditsc.c.

use crate::call_facts::CallFacts;
use crate::chunks::Arguments;
use crate::filter::TaskLabel;
use crate::generation::Generation;
use crate::host::Host;
use crate::proctitle_cache::ProctitleCache;
use crate::resolve::{is_exec, Resolver};
use crate::{fcaps, filter, queues};
use abi::exit::{EINVAL, EIO};
use record::record::{
    Body, BpfLoad, Capset, Cwd, Execve, FdPair, Ipc, IpcSetPerm, KernModule, Mmap, ObjPid, Openat2,
    PathItem, Proctitle, Sockaddr, Socketcall, Syscall, UringOp, Written,
};
use record::wire::{self, Event};
use record::{EventWriter, RecordType, Stamp};

const MAP_ANONYMOUS: u64 = 0x20;
const PTRACE_ATTACH: u64 = 16;
const PTRACE_SEIZE: u64 = 0x4206;
const OPEN_HOW_SIZE_VER0: u64 = 24;

/// The type of an event's first record. If that is excluded, the whole event is.
pub(crate) fn first_record(event: &Event<'_>) -> RecordType {
    if event.has_flag(wire::TARSIER_URING) {
        RecordType::URINGOP
    } else {
        RecordType::SYSCALL
    }
}

/// Writes an event that a rule selects, without the records that an exclude rule drops.
pub(crate) struct Records<'w, 'e> {
    pub(crate) writer: EventWriter<'w>,
    pub(crate) event: &'e Event<'e>,
    pub(crate) generation: &'e Generation,
    pub(crate) call: &'e CallFacts,
    /// Holds the names of this event.
    pub(crate) resolver: &'e Resolver,
    /// Path of the task's executable.
    pub(crate) exe: Option<&'e [u8]>,
    /// Key of the rule that selected the event.
    pub(crate) key: Option<&'e [u8]>,
    /// Whether something of the event is missing.
    pub(crate) is_cut: bool,
    /// Arguments of execve.
    pub(crate) arguments: &'e Arguments,
    pub(crate) host: &'e Host,
    /// The task's label, for exclude rules.
    pub(crate) task_label: TaskLabel,
    /// The pending event whose result this one has.
    pub(crate) result_of: Option<Stamp>,
}

impl Records<'_, '_> {
    /// Writes all records and ends the event.
    pub(crate) fn write(mut self, cache: &mut ProctitleCache) {
        // The kernel makes this one during the call.
        if let Some(prog_id) = self.event.program() {
            self.put(&BpfLoad { prog_id });
        }
        self.syscall();
        self.details();
        self.names();
        self.title(cache);
        self.writer.end();
    }

    fn put(&mut self, record: &impl Body) {
        if !self.excludes(record.kind()) {
            self.writer.put(record);
        }
    }

    fn excludes(&self, kind: RecordType) -> bool {
        filter::excludes(self.generation, kind, self.event, &self.task_label)
    }

    fn syscall(&mut self) {
        let items = self.resolver.count();
        let (event, exe, key) = (self.event, self.exe, self.key);
        let subj = self.host.subject(event);
        let subj = subj.as_deref();

        if event.has_flag(wire::TARSIER_URING) {
            self.put(&UringOp {
                result_of: self.result_of,
                ..UringOp::from_event(event, items, exe, subj, key)
            });
        } else {
            // No exclude rule drops this record: it would have dropped the whole event.
            let record = Syscall {
                is_cut: self.is_cut,
                ..Syscall::from_event(event, items, exe, subj, key)
            };
            self.writer.syscall(&record);
        }
    }

    fn details(&mut self) {
        let event = self.event;
        let exec_caps = self.resolver.items().first().map(|item| item.caps);
        if let Some(record) = fcaps::record(event, exec_caps, self.host.all_caps) {
            self.put(&record);
        }

        self.ipc();
        self.queue();
        for value in queues::adjusted(event) {
            self.put(&value);
        }

        if let Some(offset) = queues::offset(event) {
            self.put(&offset);
        }

        if let Some(caps) = event.capset() {
            self.put(&Capset::from(&caps));
        }

        self.arguments();
        if is_exec(&self.call.shape)
            && event.exec_file().is_some()
            && !self.excludes(RecordType::EXECVE)
        {
            let cut_bytes = self.arguments.cut_bytes;
            let argc = if cut_bytes > 0 {
                self.arguments.argc
            } else {
                None
            };
            self.writer.execve(&Execve {
                args: &self.arguments.bytes,
                argc,
                cut_bytes,
            });
        }

        if let Some(module) = event.module().filter(|module| !module.is_unreadable()) {
            self.put(&KernModule {
                name: Some(module.data),
            });
        }

        if let Some([fd0, fd1]) = event.fd_pair() {
            self.put(&FdPair { fd0, fd1 });
        }

        if let Some(sockaddr) = event.sockaddr().filter(|part| !part.is_unreadable()) {
            self.put(&Sockaddr {
                saddr: sockaddr.data,
            });
        }

        if self.is_told_of_targets() {
            self.targets();
        }
    }

    /// Writes SOCKETCALL, IPC and IPC_SET_PERM.
    fn ipc(&mut self) {
        let event = self.event;
        if let Some((nargs, args)) = event.socketcall() {
            self.put(&Socketcall {
                nargs,
                args: args.map(u64::from),
            });
        }

        if let Some(ipc) = event.ipc() {
            self.put(&Ipc {
                ouid: ipc.uid,
                ogid: ipc.gid,
                mode: ipc.mode as u16,
                obj: None,
            });
        }

        if let Some(perm) = event.ipc_set_perm() {
            self.put(&IpcSetPerm {
                qbytes: perm.qbytes,
                ouid: perm.uid,
                ogid: perm.gid,
                mode: perm.mode as u16,
            });
        }
    }

    fn queue(&mut self) {
        let (event, name) = (self.event, self.call.name.as_str());
        if !name.starts_with("mq_") {
            return;
        }

        if let Some(record) = queues::open(name, event) {
            self.put(&record);
        }

        if let Some(record) = queues::sendrecv(name, event) {
            self.put(&record);
        }

        if let Some(record) = queues::notify(name, event) {
            self.put(&record);
        }

        if let Some(record) = queues::getsetattr(name, event) {
            self.put(&record);
        }
    }

    /// Writes MMAP and OPENAT2.
    fn arguments(&mut self) {
        let event = self.event;
        let header = event.header();
        if matches!(self.call.name.as_str(), "mmap" | "mmap2")
            && header.args[3] & MAP_ANONYMOUS == 0
        {
            self.put(&Mmap {
                fd: header.args[4] as i32,
                flags: header.args[3] as u32,
            });
        }

        // openat2(2) refuses a structure shorter than its first version before it reads it.
        let has_how = header.args[3] >= OPEN_HOW_SIZE_VER0;
        if let (Some([flags, mode, resolve]), true) = (event.open_how(), has_how) {
            let used = event.opened();
            let used = used.filter(|[used, known]| flags as u32 & known != *used);
            self.put(&Openat2 {
                flags,
                mode,
                resolve,
                used: used.map(|[used, _]| used),
            });
        }
    }

    fn is_told_of_targets(&self) -> bool {
        let event = self.event;
        // Of ptrace(2), only ptrace_attach(), kernel/ptrace.c, reports the tracee to audit. An invalid signal number is
        // refused before its target is reported: check_kill_permission(), kernel/signal.c.
        match self.call.name.as_str() {
            "ptrace" => {
                matches!(event.header().args[0], PTRACE_ATTACH | PTRACE_SEIZE)
                    && !matches!(event.exit(), Some(EINVAL | EIO))
            }
            _ => event.exit() != Some(EINVAL),
        }
    }

    fn targets(&mut self) {
        // audit_log_exit(), kernel/auditsc.c, writes the first target last.
        let mut targets = ObjPid::from_event(self.event);
        let first = targets.next();
        for target in targets.chain(first) {
            let time_ns = self.event.header().frame.time_ns;
            let obj = self.host.label(target.opid, time_ns);
            self.put(&ObjPid {
                obj: obj.as_deref(),
                ..target
            });
        }
    }

    fn names(&mut self) {
        let resolver = self.resolver;
        if !resolver.cwd().is_empty() && resolver.count() > 0 {
            self.put(&Cwd {
                cwd: resolver.cwd(),
            });
        }

        for (i, item) in resolver.items().iter().enumerate() {
            let obj = self.host.object(item.inode);
            self.put(&PathItem {
                item: i as u32,
                name: item.name.as_deref(),
                inode: item.inode,
                obj: obj.as_deref(),
                nametype: item.nametype,
                caps: item.caps,
            });
        }
    }

    fn title(&mut self, cache: &mut ProctitleCache) {
        let title = self.event.proctitle().filter(|part| !part.is_unreadable());
        let title = title.map_or(Proctitle { title: None }, |part| {
            Proctitle::trimmed(part.data)
        });

        // An io_uring operation may run in another task than the one that submitted it.
        if !self.event.has_flag(wire::TARSIER_URING) {
            let header = self.event.header();
            let task = (header.tid, header.start_time_ns);
            if let Some(text) = cache.of(task, title.title) {
                let kind = RecordType::PROCTITLE;
                return self.put(&Written { kind, text });
            }
        }

        self.put(&title);
    }
}
