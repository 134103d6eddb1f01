//! Which tasks have an audit context. The kernel gives one to each new task once audit has been enabled, unless a rule
//! `never,task` forbids it, and the task keeps it: each of its calls enters audit at its begin and its end, whatever the
//! rules, and although audit is off again.

use crate::own_programs::own_programs;
use bpf::shared::audited_task;
use libbpf_rs::{Iter, Link, Object, ObjectBuilder};
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::mpsc;
use zerocopy::FromBytes;

/// Numbers of tasks that have a context, those of the kernel apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// Processes of which at least one thread has one.
    pub processes: u64,
    /// All threads that have one.
    pub threads: u64,
}

/// An iterator over tasks.
pub struct AuditContexts(Option<Loaded>);

struct Loaded {
    link: Link,
    _object: Object,
}

impl AuditContexts {
    /// Loads the iterator, which takes tens of milliseconds: not to be done while rings have to be read.
    pub fn load() -> AuditContexts {
        AuditContexts(load().ok())
    }

    /// How many tasks have a context; `None` if the kernel does not let them be asked.
    pub fn count(&self) -> Option<Audited> {
        let tasks = self.tasks()?;
        let processes: BTreeSet<u32> = tasks.iter().map(|task| task.tgid).collect();
        Some(Audited {
            processes: processes.len() as u64,
            threads: tasks.len() as u64,
        })
    }

    /// Whether a task that is made now gets a context: a thread is made to see. `None` if that cannot be told.
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

fn load() -> Result<Loaded, libbpf_rs::Error> {
    bpf::load::keep_libbpf_quiet();
    let open = ObjectBuilder::default().open_memory(bpf::AUDIT_ITER)?;
    let object = own_programs().of(|| open.load())?;
    let program = object.progs_mut().next();
    let program = program.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
    let link = program.attach()?;
    Ok(Loaded {
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
