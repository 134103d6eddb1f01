//! Ids of all BPF objects in the kernel, found without opening any.
//!
//! To open a map by its id makes a user of it. An array of programs that loses its last user while the kernel still
//! empties it for the last time is never freed: `prog_array_map_clear` (kernel/bpf/arraymap.c) takes a reference for work
//! that is queued already and runs once. Who looks at the maps of a daemon that ends would leave maps behind.

use libbpf_rs::libbpf_sys::{bpf_link_get_next_id, bpf_map_get_next_id, bpf_prog_get_next_id};
use std::collections::BTreeSet;
use std::ffi::c_int;

/// Ids of maps. Empty without root.
pub fn map_ids() -> BTreeSet<u32> {
    ids(bpf_map_get_next_id)
}

/// Ids of loaded programs. Empty without root.
pub fn program_ids() -> BTreeSet<u32> {
    ids(bpf_prog_get_next_id)
}

/// Ids of links. Empty without root.
pub fn link_ids() -> BTreeSet<u32> {
    ids(bpf_link_get_next_id)
}

fn ids(get_next: unsafe extern "C" fn(u32, *mut u32) -> c_int) -> BTreeSet<u32> {
    let next = |id: &u32| {
        let mut next = 0;
        // SAFETY: the kernel writes one number.
        let failed = unsafe { get_next(*id, &mut next) };
        (failed == 0).then_some(next)
    };
    std::iter::successors(next(&0), next).collect()
}
