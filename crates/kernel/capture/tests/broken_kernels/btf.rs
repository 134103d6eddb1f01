//! The kernel's types with some names changed.

use capture::btf::{Btf, Type, TypeKind};
use std::collections::BTreeSet;

/// The new name.
const GONE: &[u8] = b"tarsier_gone\0";
/// Offset of the header's length of the string section, which is the last section.
const STRINGS_LEN: usize = 20;
/// Depth to which unnamed structures inside structures are searched.
const DEPTH_MAX: usize = 8;

pub(crate) struct Kernel {
    bytes: Vec<u8>,
}

impl Kernel {
    /// Reads the types of the running kernel.
    pub(crate) fn read() -> Kernel {
        let bytes = std::fs::read("/sys/kernel/btf/vmlinux").expect("the kernel has BTF");
        assert_eq!(bytes.last(), Some(&0), "strings come last");
        Kernel { bytes }
    }

    pub(crate) fn types(&self) -> Btf<'_> {
        Btf::parse(&self.bytes).expect("the kernel's types can be read")
    }

    /// The types with another name at these offsets; nothing moves.
    pub(crate) fn renamed(&self, places: &BTreeSet<usize>) -> Vec<u8> {
        let mut changed = self.bytes.clone();
        let word = |at: usize| self.bytes[at..at + 4].try_into().map(u32::from_le_bytes);
        let len = word(STRINGS_LEN).expect("four bytes");
        for &place in places {
            changed[place..place + 4].copy_from_slice(&len.to_le_bytes());
        }
        let new_len = len + GONE.len() as u32;
        changed[STRINGS_LEN..STRINGS_LEN + 4].copy_from_slice(&new_len.to_le_bytes());
        changed.extend_from_slice(GONE);
        changed
    }
}

/// Offsets of the names of members and enumerators called `name` in all types called `ty`; in all enumerations if
/// `ty` is empty.
pub(crate) fn members(btf: &Btf<'_>, ty: &str, name: &str) -> BTreeSet<usize> {
    let mut places = BTreeSet::new();
    for found in btf.types() {
        let is_any = ty.is_empty() && found.kind.is_enumeration();
        if is_any || found.name() == ty {
            let is_composite = found.kind.is_composite() || found.kind == TypeKind::Typedef;
            if is_composite || found.kind.is_enumeration() {
                add_members(btf, found, name, DEPTH_MAX, &mut places);
            }
        }
    }
    places
}

fn add_members(
    btf: &Btf<'_>,
    ty: Type<'_, '_>,
    name: &str,
    depth: usize,
    places: &mut BTreeSet<usize>,
) {
    let plain = if depth > 0 { btf.plain(ty.id) } else { None };
    let Some(plain) = plain else {
        return;
    };
    let is_enumeration = plain.kind.is_enumeration();
    for entry in plain.entries() {
        if entry.name == name {
            places.insert(entry.name_place);
        }
        let inner = if is_enumeration {
            None
        } else {
            btf.plain(entry.ty)
        };
        let inner = inner.filter(|ty| ty.kind.is_composite() && ty.name().is_empty());
        if let Some(inner) = inner {
            add_members(btf, inner, name, depth - 1, places);
        }
    }
}

/// Offsets of the names of all types with this kind and name.
pub(crate) fn types(btf: &Btf<'_>, kind: TypeKind, name: &str) -> BTreeSet<usize> {
    let found = btf
        .types()
        .filter(|ty| ty.kind == kind && ty.name() == name);
    found.map(|ty| ty.name_place()).collect()
}
