//! Counts the system calls that a host makes.

use crate::own_programs::own_programs;
use bpf::shared::COUNTED_CALLS;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use plan::Entry;
use std::collections::BTreeMap;

/// A program on `tp_btf/sys_enter`, which counts the calls of all tasks until it is dropped.
pub struct CallCounter {
    object: Object,
    link: Link,
}

impl CallCounter {
    /// Loads and attaches the program.
    ///
    /// # Errors
    /// The kernel refuses it: without root, or without tracepoints of calls.
    pub fn attach() -> libbpf_rs::Result<CallCounter> {
        bpf::load::keep_libbpf_quiet();
        let open = ObjectBuilder::default().open_memory(bpf::CALL_COUNTS)?;
        let object = own_programs().of(|| open.load())?;
        let program = object.progs_mut().next();
        let link = program
            .ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?
            .attach()?;
        Ok(CallCounter { object, link })
    }

    /// Detaches the program. Returns how often each call was made since it was attached. A call whose number no table
    /// has, one of x32 for example, may stand under the number 1023.
    ///
    /// # Errors
    /// The kernel does not return the counts.
    pub fn finish(self) -> libbpf_rs::Result<BTreeMap<(Entry, u32), u64>> {
        // Reading makes calls, too.
        drop(self.link);
        let map = self.object.maps().next();
        let map = map.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
        let mut calls = BTreeMap::new();
        for (row, entry) in [Entry::Native, Entry::Compat].into_iter().enumerate() {
            for number in 0..COUNTED_CALLS {
                let place = row as u32 * COUNTED_CALLS + number;
                let values = map.lookup_percpu(&place.to_ne_bytes(), MapFlags::ANY)?;
                let count = values.iter().flatten().map(|bytes| sum(bytes)).sum::<u64>();
                if count > 0 {
                    calls.insert((entry, number), count);
                }
            }
        }
        Ok(calls)
    }
}

/// The count of one processor.
fn sum(bytes: &[u8]) -> u64 {
    <[u8; 8]>::try_from(bytes).map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_while_the_counter_is_attached() {
        let counter = match CallCounter::attach() {
            Ok(counter) => counter,
            Err(error) => {
                println!("skipped: counting calls: {error}");
                return;
            }
        };
        for _ in 0..1000 {
            let _ = rustix::process::getppid();
        }
        let calls = counter.finish().expect("counts are read");
        let call = (Entry::Native, libc::SYS_getppid as u32);
        let counted = calls.get(&call).copied().unwrap_or_default();
        assert!(counted >= 1000, "{counted} of 1000 calls");
    }
}
