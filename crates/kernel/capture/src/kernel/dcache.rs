//! Where the kernel's table of directory entries is (`dentry_hashtable`, fs/dcache.c), which the programs find names in.
//!
//! No list of symbols has its address on every kernel. But each entry has the address of what points to it: of another
//! entry, or, if it is the first of its chain, of the chain. The chain of a hash is at `table + 8 * (hash >> shift)`, so
//! with the right shift all entries that are first give the same table, and with another one hardly two do.

use crate::own_programs::own_programs;
use bpf::shared::{dcache_sample, dcache_samples};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::OnceLock;
use zerocopy::{FromBytes, IntoBytes};

/// Directories with entries that every system has, in file systems that hash names as usual.
const DIRECTORIES: [&str; 5] = ["/sys/kernel", "/sys/module", "/dev", "/usr/bin", "/etc"];
/// The most entries of each that are looked up, so that they are in the cache.
const LOOKED_UP: usize = 128;
/// The least number of entries that are first in their chains, and their share of all, in parts of 8.
const FIRST_MIN: (usize, usize) = (16, 2);

/// The table of directory entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dcache {
    /// Address of the first chain.
    pub(crate) at: u64,
    /// By how many bits a hash is shifted to give the index of its chain.
    pub(crate) shift: u32,
}

/// The table of this kernel; `None` if it is not known, or the kernel hashes names in another way than the programs.
/// `types`: a file with the kernel's types, unless libbpf is to take those of the kernel.
pub(crate) fn of_this_kernel(types: Option<&Path>) -> Option<Dcache> {
    static FOUND: OnceLock<Option<Dcache>> = OnceLock::new();
    *FOUND.get_or_init(|| find(types))
}

/// As [`of_this_kernel`], but looks each time.
pub(crate) fn find(types: Option<&Path>) -> Option<Dcache> {
    table_of(&samples(types)?)
}

/// The table that contains these entries.
fn table_of(samples: &[dcache_sample]) -> Option<Dcache> {
    let is_known = |sample: &dcache_sample| sample.hash == sample.computed;
    if !samples.iter().all(is_known) {
        return None;
    }

    let mut votes: BTreeMap<(u64, u32), usize> = BTreeMap::new();
    for sample in samples {
        for shift in 1..u32::BITS {
            let offset = 8 * u64::from(sample.hash >> shift);
            *votes
                .entry((sample.pprev.wrapping_sub(offset), shift))
                .or_default() += 1;
        }
    }

    let (&(at, shift), &count) = votes.iter().max_by_key(|(_, count)| **count)?;
    let is_sole = votes.values().filter(|other| **other == count).count() == 1;
    let (least, eighths) = FIRST_MIN;
    let is_right = is_sole && count >= least && 8 * count >= eighths * samples.len();
    is_right.then_some(Dcache { at, shift })
}

/// Entries of some directories.
fn samples(types: Option<&Path>) -> Option<Vec<dcache_sample>> {
    bpf::load::keep_libbpf_quiet();
    let mut builder = ObjectBuilder::default();
    if let Some(types) = types {
        builder.btf_custom_path(types).ok()?;
    }
    let open = builder.open_memory(bpf::DCACHE).ok()?;
    let object = own_programs().of(|| open.load()).ok()?;
    for directory in DIRECTORIES {
        // What is missing or refused here gives no samples.
        let _ = add_entries(&object, directory);
    }
    let map = object.maps().find(|map| map.name() == ".bss.samples")?;
    let bytes = map.lookup(0u32.as_bytes(), MapFlags::ANY).ok().flatten()?;
    let (samples, _) = dcache_samples::read_from_prefix(&bytes).ok()?;
    Some(samples.sample.get(..samples.count as usize)?.to_vec())
}

/// Looks up entries of a directory, and has the program add what the cache has of it.
fn add_entries(object: &Object, directory: &str) -> Option<()> {
    let opened = File::open(directory).ok()?;
    for entry in fs::read_dir(directory).ok()?.take(LOOKED_UP).flatten() {
        let _ = entry.metadata();
    }
    let mut arguments = [opened.as_raw_fd() as u64];
    let program = object.progs_mut().next()?;
    let output = program.test_run(ProgramInput {
        context_in: Some(arguments.as_mut_bytes()),
        ..ProgramInput::default()
    });
    (output.ok()?.return_value == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Dcache = Dcache {
        at: 0xffff_c900_0001_0000,
        shift: 14,
    };

    /// Entries with these hashes, each the first of its chain.
    fn first(hashes: impl Iterator<Item = u32>) -> Vec<dcache_sample> {
        let sample = |hash: u32| dcache_sample {
            pprev: TABLE.at + 8 * u64::from(hash >> TABLE.shift),
            hash,
            computed: hash,
        };
        hashes.map(sample).collect()
    }

    fn hashes(count: u32) -> impl Iterator<Item = u32> {
        (1..=count).map(|i| i.wrapping_mul(0x9e37_79b9))
    }

    #[test]
    fn entries_that_are_first_in_their_chains_tell_the_table() {
        let mut samples = first(hashes(64));
        assert_eq!(table_of(&samples), Some(TABLE));
        for (i, sample) in samples.iter_mut().enumerate().filter(|(i, _)| i % 2 == 0) {
            sample.pprev = 0xffff_8880_0400_0008 + 192 * (i as u64 * 7919 % 4096);
        }
        assert_eq!(table_of(&samples), Some(TABLE));
    }

    #[test]
    fn too_few_entries_or_another_hash_tell_nothing() {
        assert_eq!(table_of(&[]), None);
        assert_eq!(table_of(&first(hashes(15))), None);
        let mut samples = first(hashes(64));
        samples[5].computed ^= 1;
        assert_eq!(table_of(&samples), None);
        // All in one chain fit to each shift.
        assert_eq!(table_of(&first((0..64).map(|_| 7))), None);
    }

    #[test]
    fn this_kernel_has_a_table_of_a_power_of_two() {
        let Some(samples) = samples(None).filter(|samples| !samples.is_empty()) else {
            println!("skipped: the table of names: no right to load a program");
            return;
        };
        assert!(samples.iter().all(|sample| sample.hash == sample.computed));
        let table = table_of(&samples);
        println!("{} entries, {table:x?}", samples.len());
        assert!(table.is_some_and(|table| table.at % 4096 == 0));
    }
}
