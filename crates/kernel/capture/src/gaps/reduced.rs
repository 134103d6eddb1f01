//! A copy of the kernel's types with those only that relocations ask about. For each type that programs name, libbpf goes
//! through all types that it is given.

use crate::gaps::btf::{Btf, Type, TypeKind};
use std::collections::{BTreeSet, HashMap};

/// The beginning of the header: magic number, version, no flags, length of the header, offset of the types.
const HEADER: [u8; 12] = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0];
/// Offset of the id of what a pointer points to.
const TARGET: usize = 8;

/// Types with ids of their own.
pub(crate) struct Reduced {
    bytes: Vec<u8>,
    kernel_ids: Vec<u32>,
}

impl Reduced {
    /// The types with these names, and those of their members. All pointers are pointers to void: an access ends where a
    /// pointer is followed.
    pub(crate) fn of(kernel: &Btf<'_>, names: &BTreeSet<String>) -> Reduced {
        let mut copy = Copy {
            kernel,
            kernel_ids: Vec::new(),
            ids: HashMap::new(),
            types: Vec::new(),
            texts: vec![0],
            places: HashMap::new(),
        };

        for ty in kernel.types().filter(may_be_named) {
            if names.contains(ty.name()) {
                copy.id_of(ty);
            }
        }

        // This adds the types of members.
        let mut written = 0;
        while let Some(id) = copy.kernel_ids.get(written) {
            if let Some(ty) = kernel.get(*id) {
                copy.write(ty);
            }
            written += 1;
        }

        copy.finish()
    }

    /// The types in the format that the kernel's have.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Id in the kernel of the type with this id here.
    pub(crate) fn kernel_id(&self, id: u32) -> Option<u32> {
        let place = usize::try_from(id).ok()?.checked_sub(1)?;
        self.kernel_ids.get(place).copied()
    }
}

/// Whether a relocation may ask about a type of this kind.
fn may_be_named(ty: &Type<'_, '_>) -> bool {
    let is_plain = matches!(ty.kind, TypeKind::Int | TypeKind::Typedef);
    is_plain || ty.kind.is_composite() || ty.kind.is_enumeration()
}

/// A copy that is being made.
struct Copy<'a, 'b> {
    kernel: &'b Btf<'a>,
    /// Ids in the kernel, in the order of the copy's.
    kernel_ids: Vec<u32>,
    /// Ids in the copy, by the kernel's; 0 stands for all pointers.
    ids: HashMap<u32, u32>,
    types: Vec<u8>,
    texts: Vec<u8>,
    /// Offsets in `texts` of names, by the kernel's offsets.
    places: HashMap<u32, u32>,
}

impl Copy<'_, '_> {
    /// Id in the copy of one of the kernel's types.
    fn id_of(&mut self, ty: Type<'_, '_>) -> u32 {
        let key = match ty.kind {
            TypeKind::Pointer => 0,
            _ => ty.id,
        };
        *self.ids.entry(key).or_insert_with(|| {
            self.kernel_ids.push(ty.id);
            self.kernel_ids.len() as u32
        })
    }

    fn write(&mut self, ty: Type<'_, '_>) {
        let mut bytes = ty.bytes().to_vec();
        for place in ty.places_of_names() {
            change(&mut bytes, place, |name| self.place_of(name));
        }

        if ty.kind == TypeKind::Pointer {
            change(&mut bytes, TARGET, |_| 0);
        } else {
            for place in ty.places_of_ids() {
                let kernel = self.kernel;
                change(&mut bytes, place, |id| {
                    kernel.get(id).map_or(0, |ty| self.id_of(ty))
                });
            }
        }

        self.types.extend(bytes);
    }

    /// Offset in the copy of the name at an offset in the kernel's types.
    fn place_of(&mut self, name: u32) -> u32 {
        let text = self.kernel.text(name);
        if text.is_empty() {
            return 0;
        }
        *self.places.entry(name).or_insert_with(|| {
            let place = self.texts.len() as u32;
            self.texts.extend(text.bytes().chain([0]));
            place
        })
    }

    fn finish(self) -> Reduced {
        let [types, texts] = [self.types.len(), self.texts.len()].map(|len| len as u32);
        let mut bytes = HEADER.to_vec();
        for word in [types, types, texts] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.types);
        bytes.extend(self.texts);
        Reduced {
            bytes,
            kernel_ids: self.kernel_ids,
        }
    }
}

/// Changes the word at a place.
fn change(bytes: &mut [u8], place: usize, to: impl FnOnce(u32) -> u32) {
    if let Some(word) = bytes
        .get_mut(place..)
        .and_then(<[u8]>::first_chunk_mut::<4>)
    {
        *word = to(u32::from_le_bytes(*word)).to_le_bytes();
    }
}
