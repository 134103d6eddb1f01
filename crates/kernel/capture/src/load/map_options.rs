//! Options for maps that are not part of the BPF object.

use libbpf_rs::libbpf_sys::bpf_map_create_opts;

/// Options for a map with these flags.
pub(crate) fn map_options(flags: u32) -> bpf_map_create_opts {
    bpf_map_create_opts {
        sz: std::mem::size_of::<bpf_map_create_opts>() as u64,
        map_flags: flags,
        ..Default::default()
    }
}
