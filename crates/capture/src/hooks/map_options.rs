//! How maps are made beside those of the BPF object.

use libbpf_rs::libbpf_sys::bpf_map_create_opts;

/// Options of a map with these flags.
pub(crate) fn map_options(flags: u32) -> bpf_map_create_opts {
    bpf_map_create_opts {
        sz: std::mem::size_of::<bpf_map_create_opts>() as u64,
        map_flags: flags,
        ..Default::default()
    }
}
