//! Caches the text about a task in SYSCALL records, which is mostly the same from one call to the next.

use crate::record::Syscall;

/// The number of tasks whose text is cached.
const TASKS: usize = 64;
/// Tasks with a longer name are not cached, so that the cache stays small.
const NAME_MAX: usize = 512;

/// The texts of the tasks that were written last, found by the values in them.
#[derive(Debug, Default)]
pub(crate) struct TaskTexts {
    /// Empty until the first task; then it has [`TASKS`] entries.
    kept: Vec<Kept>,
}

/// The text of one task.
#[derive(Debug, Clone, Default)]
struct Kept {
    ids: [u32; 12],
    /// Terminal, thread, executable and label.
    names: [Name; 4],
    /// Empty if the entry is unused.
    text: Vec<u8>,
}

/// A name, or none.
#[derive(Debug, Clone, Default)]
struct Name {
    is_there: bool,
    bytes: Vec<u8>,
}

impl Name {
    fn is(&self, name: Option<&[u8]>) -> bool {
        self.is_there == name.is_some() && is_equal(&self.bytes, name.unwrap_or_default())
    }

    fn set(&mut self, name: Option<&[u8]>) {
        self.is_there = name.is_some();
        self.bytes.clear();
        self.bytes.extend_from_slice(name.unwrap_or_default());
    }
}

/// Whether two short texts are equal. On an AMD EPYC, memcmp(3) of glibc 2.36, which `==` calls, took a third of the
/// daemon's time for an event here: presumably its masked loads wait for the writes before them.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one == other)
}

impl TaskTexts {
    /// Writes the same as [`crate::record::Body::write`], with the cached text of the task if there is one.
    pub(crate) fn write_record(&mut self, call: &Syscall<'_>, out: &mut Vec<u8>) {
        call.write_call(out);
        self.write(call, out);
        call.write_key(out);
    }

    /// Appends the text that [`Syscall::write_task`] writes for the task of this call.
    fn write(&mut self, call: &Syscall<'_>, out: &mut Vec<u8>) {
        let names = [Some(call.tty), Some(call.comm), call.exe, call.subj];
        if names.iter().flatten().any(|name| name.len() > NAME_MAX) {
            return call.write_task(out);
        }

        if self.kept.is_empty() {
            self.kept.resize_with(TASKS, Kept::default);
        }

        let kept = &mut self.kept[place(call)];
        let ids = ids(call);
        let is_same = !kept.text.is_empty()
            && kept.ids == ids
            && kept
                .names
                .iter()
                .zip(names)
                .all(|(kept, name)| kept.is(name));

        if !is_same {
            kept.ids = ids;
            for (kept, name) in kept.names.iter_mut().zip(names) {
                kept.set(name);
            }
            kept.text.clear();
            call.write_task(&mut kept.text);
        }

        out.extend_from_slice(&kept.text);
    }
}

fn ids(call: &Syscall<'_>) -> [u32; 12] {
    [
        call.ppid, call.pid, call.auid, call.uid, call.gid, call.euid, call.suid, call.fsuid,
        call.egid, call.sgid, call.fsgid, call.ses,
    ]
}

/// The entry for a task: a hash of its pid and, since threads of a process often differ in it, its name.
fn place(call: &Syscall<'_>) -> usize {
    let name = call.comm.iter().take(8);
    let hash = name.fold(call.pid, |hash, &byte| {
        hash.rotate_left(5) ^ u32::from(byte)
    });
    (hash.wrapping_mul(0x9e37_79b1) >> 16) as usize % TASKS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Body;
    use proptest::prelude::*;

    fn call<'a>(
        ids: &[u32],
        tty: &'a [u8],
        comm: &'a [u8],
        exe: Option<&'a [u8]>,
        subj: Option<&'a [u8]>,
    ) -> Syscall<'a> {
        Syscall {
            arch: 0xc000_003e,
            nr: 110,
            personality: 0,
            exit: Some(1),
            a: [1, 2, 3, 4],
            items: 0,
            is_cut: false,
            ppid: ids[0],
            pid: ids[1],
            auid: ids[2],
            uid: ids[3],
            gid: ids[4],
            euid: ids[5],
            suid: ids[6],
            fsuid: ids[7],
            egid: ids[8],
            sgid: ids[9],
            fsgid: ids[10],
            tty,
            ses: ids[11],
            comm,
            exe,
            subj,
            key: Some(b"k"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(testkit::times(40, 256)))]

        /// Few values, so that tasks come again, and differ in one thing only.
        #[test]
        fn kept_text_is_what_would_be_written_anew(
            tasks in prop::collection::vec(
                (
                    prop::collection::vec(0_u32..2, 12),
                    "[ab]{0,1}",
                    "[ab]{0,2}",
                    prop::option::of("[ab]{0,2}|x{513}"),
                    prop::option::of("[ab]{0,1}"),
                ),
                1..200,
            ),
        ) {
            let mut texts = TaskTexts::default();
            for (ids, tty, comm, exe, subj) in &tasks {
                let exe = exe.as_ref().map(|exe| exe.as_bytes());
                let subj = subj.as_ref().map(|subj| subj.as_bytes());
                let call = call(ids, tty.as_bytes(), comm.as_bytes(), exe, subj);
                let (mut kept, mut anew) = (Vec::new(), Vec::new());
                texts.write_record(&call, &mut kept);
                call.write(&mut anew);
                prop_assert_eq!(kept, anew);
            }
        }
    }
}
