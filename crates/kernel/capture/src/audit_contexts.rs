//! Finds out which tasks have an audit context. Once audit has been enabled, the kernel gives a context to each new
//! task unless a `never,task` rule forbids it. The task keeps its context: each of its calls passes through audit when
//! it begins and when it ends, whatever the rules are, even after audit has been disabled.

use crate::own_programs::own_programs;
use bpf::shared::audited_task;
use libbpf_rs::{Iter, Link, Object, ObjectBuilder};
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::mpsc;
use zerocopy::FromBytes;

/// Numbers of tasks that have a context, without those of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Processes with at least one thread that has a context.
    pub processes: u64,
    /// Threads that have a context.
    pub threads: u64,
}

/// An iterator over tasks.
pub struct AuditContexts(Option<LoadedIterator>);

struct LoadedIterator {
    link: Link,
    _object: Object,
}

impl AuditContexts {
    /// Loads the iterator. This takes tens of milliseconds, so do not call it while rings have to be read.
    pub fn load() -> AuditContexts {
        AuditContexts(load().ok())
    }

    /// Number of tasks that have a context; `None` if the kernel does not allow the query.
    pub fn count(&self) -> Option<Audited> {
        let tasks = self.tasks()?;
        let processes: BTreeSet<u32> = tasks.iter().map(|task| task.tgid).collect();
        Some(Audited {
            processes: processes.len() as u64,
            threads: tasks.len() as u64,
        })
    }

    /// Whether the calling thread has a context; `None` if the kernel does not allow the query.
    pub fn own(&self) -> Option<bool> {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        Some(self.tasks()?.iter().any(|task| task.tid == tid))
    }

    /// Whether a new task gets a context. Starts a thread to find out; `None` if that fails.
    pub fn newborn_gets_one(&self) -> Option<bool> {
        std::thread::scope(|scope| {
            let (told, tid) = mpsc::channel();
            let (_end, ended) = mpsc::channel::<()>();
            scope.spawn(move || {
                let is_told = told.send(rustix::thread::gettid().as_raw_nonzero().get() as u32);
                // Until the other end is dropped.
                let _ = is_told.is_ok_and(|()| ended.recv().is_ok());
            });
            let tid = tid.recv().ok()?;
            Some(self.tasks()?.iter().any(|task| task.tid == tid))
        })
    }

    fn tasks(&self) -> Option<Vec<audited_task>> {
        let mut iter = Iter::new(&self.0.as_ref()?.link).ok()?;
        let mut bytes = Vec::new();
        iter.read_to_end(&mut bytes).ok()?;
        let records = bytes.chunks_exact(size_of::<audited_task>());
        records
            .map(|bytes| audited_task::read_from_bytes(bytes).ok())
            .collect()
    }
}

fn load() -> Result<LoadedIterator, libbpf_rs::Error> {
    bpf::load::keep_libbpf_quiet();
    let open = ObjectBuilder::default().open_memory(bpf::AUDIT_ITER)?;
    let object = own_programs().of(|| open.load())?;
    let program = object.progs_mut().next();
    let program = program.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
    let link = program.attach()?;
    Ok(LoadedIterator {
        link,
        _object: object,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_processes_than_threads_have_a_context() {
        let contexts = AuditContexts::load();
        let (Some(counted), Some(newborn)) = (contexts.count(), contexts.newborn_gets_one()) else {
            println!("skipped: audit contexts: no task iterator, or no right to load one");
            return;
        };
        assert!(counted.threads >= counted.processes, "{counted:?}");
        println!("{counted:?}, a new one has a context: {newborn}");
    }
}
