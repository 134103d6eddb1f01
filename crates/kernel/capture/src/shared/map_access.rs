//! Access to maps while their programs are attached, at the cost of no event.

use libbpf_rs::{MapCore, MapFlags, Result};
use std::collections::BTreeMap;

/// Entries of a map that are read by one system call: more than any bucket of a hash table has.
const BATCH: u32 = 256;
/// The least real-time priority: above all tasks without one.
const PRIORITY: i32 = 1;

/// [`MapCore`]'s calls to bpf(2), none of which is preempted by a task without real-time priority.
///
/// While a task is in bpf(2) on a map, the kernel skips programs on probes on its processor, lest they wait for what it
/// has locked (`bpf_disable_instrumentation`, include/linux/bpf.h). Where tasks are preempted inside the kernel, calls
/// of others run there meanwhile, and their events would be missed.
pub(crate) trait MapAccess: MapCore {
    /// The value, if the key has one.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        unpreempted(|| self.lookup(key, MapFlags::ANY))
    }

    /// The values of all possible CPUs, if the key has some.
    fn get_per_cpu(&self, key: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        unpreempted(|| self.lookup_percpu(key, MapFlags::ANY))
    }

    /// Sets the value, whether or not the key had one.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        unpreempted(|| self.update(key, value, MapFlags::ANY))
    }

    /// Removes key and value.
    fn remove(&self, key: &[u8]) -> Result<()> {
        unpreempted(|| self.delete(key))
    }

    /// All keys with their values. Some are missing if the kernel refuses.
    fn contents(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        unpreempted(|| {
            Ok(self
                .lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)?
                .collect())
        })
    }

    /// Removes all keys for which `is_unwanted` holds.
    fn remove_all(&self, is_unwanted: impl Fn(&[u8]) -> bool) -> Result<()> {
        let keys: Vec<Vec<u8>> = self.keys().filter(|key| is_unwanted(key)).collect();
        keys.iter().try_for_each(|key| self.remove(key))
    }
}

impl<M: MapCore + ?Sized> MapAccess for M {}

/// Runs `access` with real-time priority, and then gives the thread its policy back. Its nice value stays. Where the
/// process may not have such a priority, `access` runs without.
pub(crate) fn unpreempted<T>(access: impl FnOnce() -> T) -> T {
    // SAFETY: concerns the calling thread only, and touches no memory.
    let policy = unsafe { libc::sched_getscheduler(0) };
    let is_real_time = matches!(
        policy & !libc::SCHED_RESET_ON_FORK,
        libc::SCHED_FIFO | libc::SCHED_RR
    );
    if policy < 0 || is_real_time || !set_policy(libc::SCHED_FIFO, PRIORITY) {
        return access();
    }
    let done = access();
    // Allowed, since raising the priority was.
    set_policy(policy, 0);
    done
}

/// Sets the calling thread's policy. Returns whether that was allowed.
fn set_policy(policy: i32, priority: i32) -> bool {
    let parameter = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: reads the parameter, which outlives the call.
    unsafe { libc::sched_setscheduler(0, policy, &parameter) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        // SAFETY: concerns the calling thread only, and touches no memory.
        unsafe { libc::sched_getscheduler(0) }
    }

    fn nice() -> i32 {
        rustix::process::getpriority_process(None).expect("a nice value")
    }

    #[test]
    fn a_thread_is_real_time_during_an_access_only_and_keeps_its_nice_value() {
        let before = (policy(), nice());
        let during = unpreempted(policy);
        if during != libc::SCHED_FIFO {
            println!("skipped: priority during an access to a map: this process may not have one");
            return;
        }
        assert_eq!((policy(), nice()), before);
        // Within another one, the outer one ends it.
        unpreempted(|| {
            unpreempted(|| ());
            assert_eq!(policy(), libc::SCHED_FIFO);
        });
        assert_eq!((policy(), nice()), before);
    }
}
