//! The kernel's types without some helpers of programs, so that a newer kernel is served as an older one would be: for
//! tests on whole machines.

use crate::gaps::btf::{Btf, Type};
use rustix::fs::{memfd_create, MemfdFlags};
use std::fs::File;
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;

/// Environment variable with the names of helpers, such as `loop` for `bpf_loop()`, separated by commas.
const VARIABLE: &str = "TARSIER_WITHOUT_HELPERS";
/// The types of the running kernel.
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
/// The enumeration of all helpers, and how the names in it begin.
const HELPERS: &str = "bpf_func_id";
const PREFIX: &str = "BPF_FUNC_";

/// A file with the types, which stays open as long as the process; `None` if no helper is to be missing, or there are no
/// types.
pub(crate) fn types() -> Option<PathBuf> {
    let names = std::env::var(VARIABLE).ok()?;
    let names: Vec<&str> = names.split(',').collect();
    let bytes = without(std::fs::read(VMLINUX).ok()?, &names)?;

    let mut file = File::from(memfd_create(c"tarsier_types", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(&bytes).ok()?;
    Some(format!("/proc/self/fd/{}", file.into_raw_fd()).into())
}

/// The types with no name for these helpers; `None` if they cannot be read.
pub(crate) fn without(mut bytes: Vec<u8>, names: &[&str]) -> Option<Vec<u8>> {
    let btf = Btf::parse(&bytes).ok()?;
    let is_wanted = |name: &str| {
        let helper = name.strip_prefix(PREFIX);
        helper.is_some_and(|helper| names.contains(&helper))
    };

    let is_of_helpers = |ty: &Type<'_, '_>| ty.kind.is_enumeration() && ty.name() == HELPERS;
    let entries = btf
        .types()
        .filter(is_of_helpers)
        .flat_map(|ty| ty.entries());
    let entries = entries.filter(|entry| is_wanted(entry.name));
    let places: Vec<usize> = entries.map(|entry| entry.name_place).collect();
    for place in places {
        bytes.get_mut(place..place + 4)?.fill(0);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_helpers_and_no_others_are_missing() {
        let Ok(bytes) = std::fs::read(VMLINUX) else {
            println!("skipped: the kernel has no BTF");
            return;
        };
        let helpers = |bytes: &[u8]| -> Vec<String> {
            let btf = Btf::parse(bytes).expect("types");
            let found = btf.types().filter(|ty| ty.name() == HELPERS);
            let names = found.flat_map(|ty| ty.entries().map(|entry| entry.name.to_owned()));
            names.collect()
        };
        let mut expected = helpers(&bytes);
        for name in &mut expected {
            if ["BPF_FUNC_loop", "BPF_FUNC_find_vma"].contains(&name.as_str()) {
                name.clear();
            }
        }
        let found = without(bytes, &["find_vma", "loop"]).expect("types");
        assert_eq!(helpers(&found), expected);
        assert!(expected.iter().any(String::is_empty));
    }
}
