//! The object of programs that match what a test gives them.

use bpf::shared::WORKS_PER_CPU;
use libbpf_rs::{Object, ObjectBuilder};

/// Loads the object, with room for each CPU.
pub(crate) fn load() -> Object {
    let mut builder = ObjectBuilder::default();
    let mut open = builder
        .open_memory(bpf::MATCH_TEST)
        .expect("the object opens");
    let cpus = libbpf_rs::num_possible_cpus().expect("the number of CPUs");
    open.maps_mut()
        .find(|map| map.name() == "works")
        .expect("works")
        .set_max_entries(cpus as u32 * WORKS_PER_CPU)
        .expect("a size");
    open.load().expect("the kernel takes the test program")
}
