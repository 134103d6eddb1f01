//! The text of a label, as the kernel makes it: context_struct_to_string() of security/selinux/ss/services.c, and
//! mls_sid_to_context() of mls.c.

use super::layout::KernelLayout;
use crate::kernel::memory::ReadMemory;
use std::cell::RefCell;
use std::collections::HashMap;

/// Number of the label that stands for labels which the policy does not know (SECINITSID_UNLABELED).
const UNLABELED: u32 = 3;
/// The longest name that is taken.
const NAME_MAX: usize = 256;
/// The most words with categories of a level; SELinux allows 1,024 categories.
const NODES_MAX: usize = 64;

/// Places of the kinds of names in the policy's lists (SYM_*, security/selinux/ss/policydb.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Names {
    Roles = 2,
    Types = 3,
    Users = 4,
    Levels = 6,
    Categories = 7,
}

/// Names of a policy that have been read, by kind and place: a label may have a thousand of them, and whoever may choose
/// categories can make any number of such labels.
pub(super) type NamesRead = HashMap<(Names, u32), Vec<u8>>;

/// The text of label `id` under the policy at this address, of which these names have been read.
pub(super) fn of(
    memory: &dyn ReadMemory,
    layout: &KernelLayout,
    policy: u64,
    names: &RefCell<NamesRead>,
    id: u32,
) -> Option<Vec<u8>> {
    let reader = Reader {
        memory,
        layout,
        policy,
        names,
    };
    let entry = reader.entry(id)?;
    let is_known = memory.number(entry + layout.context.len)? == 0;
    let entry = if is_known {
        entry
    } else {
        reader.entry(UNLABELED)?
    };
    reader.text(entry)
}

struct Reader<'m> {
    memory: &'m dyn ReadMemory,
    layout: &'m KernelLayout,
    policy: u64,
    names: &'m RefCell<NamesRead>,
}

impl Reader<'_> {
    /// Address of the entry of a label.
    fn entry(&self, id: u32) -> Option<u64> {
        let (memory, layout) = (self.memory, self.layout);
        let table = memory.address(self.policy + layout.table)?;

        // The kernel's own labels stand in a list, from number 1 on.
        let initial = &layout.initial;
        let index = id.checked_sub(1)?;
        let entry = if index < initial.count {
            let row = table + initial.at + u64::from(index) * initial.bytes;
            if memory.bytes(row + layout.is_set, 1)? != [1] {
                return (id != UNLABELED).then(|| self.entry(UNLABELED))?;
            }
            row + layout.initial_entry
        } else {
            self.in_tree(table, index - initial.count)?
        };
        (memory.number(entry + layout.sid)? == id).then_some(entry)
    }

    /// Address of the entry with this index in the tree: sidtab_do_lookup().
    fn in_tree(&self, table: u64, index: u32) -> Option<u64> {
        let (memory, layout) = (self.memory, self.layout);
        if index >= memory.number(table + layout.count)? {
            return None;
        }

        let (index, in_leaf) = (u64::from(index), layout.entries_in_leaf());
        let (mut level, mut capacity) = (0, in_leaf);
        while index + 1 > capacity {
            capacity <<= KernelLayout::inner_shift();
            level += 1;
        }

        let mut leaf = index / in_leaf;
        let mut node = memory.address(table + layout.roots + 8 * u64::from(level))?;
        while level > 0 {
            level -= 1;
            let shift = level * KernelLayout::inner_shift();
            node = memory.address(node + 8 * (leaf >> shift))?;
            leaf &= (1 << shift) - 1;
        }
        Some(node + index % in_leaf * layout.entry_bytes)
    }

    fn text(&self, entry: u64) -> Option<Vec<u8>> {
        let context = &self.layout.context;
        let number = |place: u64| self.memory.number(entry + place);
        let mut text = self.name(Names::Users, number(context.user)?.checked_sub(1)?)?;
        for (names, place) in [(Names::Roles, context.role), (Names::Types, context.kind)] {
            text.push(b':');
            text.extend(self.name(names, number(place)?.checked_sub(1)?)?);
        }

        if self.memory.number(self.policy + self.layout.has_levels)? == 0 {
            return Some(text);
        }
        let [low, high] = context.levels.map(|place| self.level(entry + place));
        let (low, high) = (low?, high?);
        text.push(b':');
        text.extend(self.level_text(&low)?);
        if high != low {
            text.push(b'-');
            text.extend(self.level_text(&high)?);
        }
        Some(text)
    }

    /// Sensitivity and categories.
    fn level(&self, at: u64) -> Option<(u32, Vec<u32>)> {
        let (memory, bits) = (self.memory, &self.layout.bits);
        let mut categories = Vec::new();
        // No address: no category.
        let pointer = memory.bytes(at + bits.first, 8)?;
        let mut node = u64::from_ne_bytes(pointer.try_into().ok()?);
        let mut left = NODES_MAX;
        while node != 0 {
            left = left.checked_sub(1)?;
            let start = memory.number(node + bits.start)?;
            let map = memory.bytes(node + bits.map, usize::try_from(bits.map_bytes).ok()?)?;
            for (word, at) in map.chunks_exact(8).zip((start..).step_by(64)) {
                let word = u64::from_ne_bytes(word.try_into().ok()?);
                categories.extend(
                    (0..64)
                        .filter(|bit| word >> bit & 1 == 1)
                        .map(|bit| at + bit),
                );
            }
            let next = memory.bytes(node + bits.next, 8)?;
            node = u64::from_ne_bytes(next.try_into().ok()?);
        }
        Some((memory.number(at + bits.sensitivity)?, categories))
    }

    fn level_text(&self, (sensitivity, categories): &(u32, Vec<u32>)) -> Option<Vec<u8>> {
        let mut text = self.name(Names::Levels, sensitivity.checked_sub(1)?)?;
        let runs = categories.chunk_by(|this, next| this + 1 == *next);
        for (place, run) in runs.enumerate() {
            text.push(if place == 0 { b':' } else { b',' });
            text.extend(self.name(Names::Categories, *run.first()?)?);
            if run.len() > 1 {
                // Two that follow each other are no range.
                text.push(if run.len() > 2 { b'.' } else { b',' });
                text.extend(self.name(Names::Categories, *run.last()?)?);
            }
        }
        Some(text)
    }

    /// A name of the policy.
    fn name(&self, names: Names, place: u32) -> Option<Vec<u8>> {
        if let Some(name) = self.names.borrow().get(&(names, place)) {
            return Some(name.clone());
        }
        let name = self.read_name(names, place)?;
        self.names.borrow_mut().insert((names, place), name.clone());
        Some(name)
    }

    fn read_name(&self, names: Names, place: u32) -> Option<Vec<u8>> {
        let memory = self.memory;
        let list = memory.address(self.policy + self.layout.names + 8 * names as u64)?;
        let text = memory.address(list + 8 * u64::from(place))?;
        // Not in one piece: the page behind a short name need not be there.
        let mut name = Vec::new();
        while name.len() < NAME_MAX {
            let at = text + name.len() as u64;
            let bytes = memory.bytes(at, 64 - (at % 64) as usize)?;
            match bytes.iter().position(|&byte| byte == 0) {
                Some(end) => {
                    name.extend_from_slice(&bytes[..end]);
                    return (!name.is_empty()).then_some(name);
                }
                None => name.extend(bytes),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
