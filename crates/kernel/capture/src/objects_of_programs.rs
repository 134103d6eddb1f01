//! Sizes and contents of BPF objects that other processes use.

use libbpf_rs::query::{BtfInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};

/// Sizes of what belongs to programs, in bytes.
#[derive(Debug, Default)]
pub struct ProgramSizes {
    /// Machine code and lines of source, by the id of the program.
    pub code: BTreeMap<u32, u64>,
    /// Type information (BTF) of all of these programs, which share it.
    pub types: u64,
}

/// Sizes of the programs with these ids. Programs that cannot be asked, without root for example, are left out.
pub fn program_sizes(ids: &BTreeSet<u32>) -> ProgramSizes {
    let options = ProgInfoQueryOptions::default()
        .include_jited_prog_insns(true)
        .include_line_info(true)
        .include_jited_line_info(true)
        .include_func_info(true);
    let own = ProgInfoIter::with_query_opts(options).filter(|program| ids.contains(&program.id));
    let (mut sizes, mut types) = (ProgramSizes::default(), BTreeSet::new());
    for program in own {
        // Sizes of bpf_line_info, an address, and bpf_func_info (linux/bpf.h).
        let lines = 16 * program.line_info.len() + 8 * program.jited_line_info.len();
        let bytes = program.jited_prog_insns.len() + lines + 8 * program.func_info.len();
        sizes.code.insert(program.id, bytes as u64);
        types.insert(program.btf_id);
    }
    let types = BtfInfoIter::default().filter(|of| types.contains(&of.id));
    sizes.types = types.map(|of| of.btf.len() as u64).sum();
    sizes
}

/// Maps with one value, or one entry, for each CPU.
const BY_CPU: [&str; 2] = ["cpu_states", "works"];

/// Maps among those with these ids whose size depends on the number of CPUs, other than rings. Empty without root.
pub fn maps_by_cpu(ids: &BTreeSet<u32>) -> BTreeSet<u32> {
    let is_by_cpu = |map: &MapHandle| {
        let is_named = map
            .name()
            .to_str()
            .is_some_and(|name| BY_CPU.contains(&name));
        let is_of_kind = matches!(
            map.map_type(),
            MapType::PercpuArray | MapType::PercpuHash | MapType::LruPercpuHash
        );
        is_named || is_of_kind
    };

    // Only these are opened, which are in use: see `ids`.
    let open = |id: &u32| MapHandle::from_map_id(*id).ok();
    let by_cpu = ids
        .iter()
        .filter(|id| open(id).is_some_and(|map| is_by_cpu(&map)));
    by_cpu.copied().collect()
}

/// Descriptors of the maps in a map of maps, by the id of the latter. Empty for other maps, and without root.
pub fn inner_maps(id: u32) -> Vec<OwnedFd> {
    let Ok(outer) = MapHandle::from_map_id(id) else {
        return Vec::new();
    };
    let inner = |key: Vec<u8>| {
        let value = outer.lookup(&key, MapFlags::ANY).ok().flatten()?;
        let id = u32::from_ne_bytes(value.try_into().ok()?);
        let map = MapHandle::from_map_id(id).ok()?;
        map.as_fd().try_clone_to_owned().ok()
    };
    match outer.map_type() {
        MapType::ArrayOfMaps | MapType::HashOfMaps => outer.keys().filter_map(inner).collect(),
        _ => Vec::new(),
    }
}
