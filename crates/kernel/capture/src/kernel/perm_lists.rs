//! Finds which edition of the lists of calls for `perm=` this kernel has. The edition is read from the list
//! itself, in the kernel's memory. If that is not readable, it is derived from a call that was introduced together
//! with the longer lists.

use crate::kernel::kallsyms;
use crate::kernel::memory::{KernelMemory, ReadMemory};
use crate::kernel::symbol_names::READ_CALLS;
use abi::{Arch, PermLists};
use std::sync::OnceLock;

/// Marks the end of the list.
const END: u32 = u32::MAX;
const LEN_MAX: usize = 64;
/// A call that only kernels with the longer lists have.
const NEW_CALL: &str = "sys_fchroot";

/// The edition of the running kernel.
pub(crate) fn of_this_kernel() -> PermLists {
    static FOUND: OnceLock<PermLists> = OnceLock::new();
    *FOUND.get_or_init(find)
}

fn find() -> PermLists {
    let (mut lists, mut has_new_call) = (Vec::new(), false);
    let read = kallsyms::of_this_kernel().and_then(|lines| {
        kallsyms::each(lines, |symbol| {
            if symbol.name == READ_CALLS && symbol.address != 0 {
                lists.push(symbol.address);
            }
            has_new_call |= symbol.name.starts_with("__") && symbol.name.ends_with(NEW_CALL);
        })
    });
    let memory = read.ok().and_then(|()| KernelMemory::open());
    let listed = memory.and_then(|memory| {
        let mut copies = lists
            .into_iter()
            .filter_map(|address| memory.bytes(address, LEN_MAX * size_of::<u32>()));
        copies.find_map(|copy| edition(&copy, Arch::native()))
    });
    listed.unwrap_or(if has_new_call {
        PermLists::Long
    } else {
        PermLists::Short
    })
}

/// The edition of the list in `memory`; `None` if it is something else.
fn edition(memory: &[u8], arch: Arch) -> Option<PermLists> {
    let words = memory.chunks_exact(size_of::<u32>());
    let numbers: Vec<u32> = words
        .filter_map(|word| word.try_into().ok().map(u32::from_ne_bytes))
        .collect();
    let end = numbers.iter().position(|&number| number == END)?;
    let has = |name| abi::syscall_number(arch, name).map(|nr| numbers[..end].contains(&nr));
    if !has("getxattr")? {
        return None;
    }
    Some(if has("statx")? {
        PermLists::Long
    } else {
        PermLists::Short
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(names: &[&str]) -> Vec<u8> {
        let numbers = names
            .iter()
            .map(|name| abi::syscall_number(Arch::X86_64, name).unwrap());
        let words = numbers.chain([END, 0]);
        words.flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn the_kernels_list_tells_the_edition() {
        let of = |names: &[&str]| edition(&memory(names), Arch::X86_64);
        assert_eq!(of(&["readlink", "getxattr"]), Some(PermLists::Short));
        assert_eq!(of(&["getxattr", "stat", "statx"]), Some(PermLists::Long));
        // Another list with this name, and memory without an end mark.
        assert_eq!(of(&["statx"]), None);
        assert_eq!(edition(&memory(&["getxattr"])[..4], Arch::X86_64), None);
    }
}
