//! Reads type information (BTF) from bytes: that of the BPF object and that of the kernel. It never panics on
//! malformed input. The format is described in Documentation/bpf/btf.rst.

use thiserror::Error;

const MAGIC: u16 = 0xeb9f;
/// Limit of modifiers and typedefs that are followed; more are taken as a loop.
const MODIFIERS_MAX: usize = 32;

/// Bytes that do not have the expected format.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{what} at byte {offset} does not match the format")]
pub struct Malformed {
    /// The part that is wrong.
    pub what: &'static str,
    /// Offset of the part in bytes.
    pub offset: usize,
}

/// Little-endian numbers and text at offsets; `None` past the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        let end = offset.checked_add(N)?;
        self.0.get(offset..end)?.try_into().ok()
    }

    pub(crate) fn u16(self, offset: usize) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(self, offset: usize) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(self, offset: usize) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }

    pub(crate) fn part(self, offset: usize, len: usize) -> Option<Bytes<'a>> {
        let end = offset.checked_add(len)?;
        self.0.get(offset..end).map(Bytes)
    }

    /// The text at `offset`, up to a NUL.
    pub(crate) fn text(self, offset: usize) -> Option<&'a str> {
        let rest = self.0.get(offset..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

/// Kinds of types: BTF_KIND_* of linux/btf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TypeKind {
    Void,
    Int,
    Pointer,
    Array,
    Struct,
    Union,
    Enum,
    Forward,
    Typedef,
    Volatile,
    Const,
    Restrict,
    Function,
    Prototype,
    Variable,
    Section,
    Float,
    DeclTag,
    TypeTag,
    Enum64,
}

const KINDS: [TypeKind; 20] = [
    TypeKind::Void,
    TypeKind::Int,
    TypeKind::Pointer,
    TypeKind::Array,
    TypeKind::Struct,
    TypeKind::Union,
    TypeKind::Enum,
    TypeKind::Forward,
    TypeKind::Typedef,
    TypeKind::Volatile,
    TypeKind::Const,
    TypeKind::Restrict,
    TypeKind::Function,
    TypeKind::Prototype,
    TypeKind::Variable,
    TypeKind::Section,
    TypeKind::Float,
    TypeKind::DeclTag,
    TypeKind::TypeTag,
    TypeKind::Enum64,
];

impl TypeKind {
    /// Number of bytes after the three words that every type has.
    fn extra(self, entries: usize) -> usize {
        match self {
            TypeKind::Int | TypeKind::Variable | TypeKind::DeclTag => 4,
            TypeKind::Array => 12,
            TypeKind::Struct | TypeKind::Union | TypeKind::Section | TypeKind::Enum64 => {
                12 * entries
            }
            TypeKind::Enum | TypeKind::Prototype => 8 * entries,
            _ => 0,
        }
    }

    /// Whether this is a structure or a union.
    pub fn is_composite(self) -> bool {
        matches!(self, TypeKind::Struct | TypeKind::Union)
    }

    /// Whether this is an enumeration.
    pub fn is_enumeration(self) -> bool {
        matches!(self, TypeKind::Enum | TypeKind::Enum64)
    }

    fn is_modifier(self) -> bool {
        use TypeKind::*;
        matches!(self, Typedef | Volatile | Const | Restrict | TypeTag)
    }
}

/// Types by id, from 1; id 0 is void.
#[derive(Debug)]
pub struct Btf<'a> {
    all: Bytes<'a>,
    strings: Bytes<'a>,
    /// Offset of each type.
    places: Vec<usize>,
}

/// One type.
#[derive(Clone, Copy, Debug)]
pub struct Type<'a, 'b> {
    btf: &'b Btf<'a>,
    /// The type's id.
    pub id: u32,
    place: usize,
    /// The type's kind.
    pub kind: TypeKind,
    entries: usize,
}

/// A named entry of a type: a member or an enumerator.
#[derive(Clone, Copy, Debug)]
pub struct TypeEntry<'a> {
    /// Name of the entry; empty if it has none.
    pub name: &'a str,
    /// Id of the member's type.
    pub ty: u32,
    /// Offset, in all bytes, of the field that contains the name's offset.
    pub name_place: usize,
}

impl<'a> Btf<'a> {
    /// Parses the header and finds all types.
    pub fn parse(bytes: &'a [u8]) -> Result<Btf<'a>, Malformed> {
        let all = Bytes(bytes);
        let malformed = |what, offset| Malformed { what, offset };
        if all.u16(0) != Some(MAGIC) {
            return Err(malformed("the magic number of BTF", 0));
        }

        let word = |offset| {
            let word = all.u32(offset).map(|word| word as usize);
            word.ok_or(malformed("the header of BTF", offset))
        };

        let header = word(4)?;
        let (first, len) = (header.saturating_add(word(8)?), word(12)?);
        let strings = all.part(header.saturating_add(word(16)?), word(20)?);
        let strings = strings.ok_or(malformed("the section of strings", 16))?;
        let end = first.saturating_add(len);

        let mut btf = Btf {
            all: all
                .part(0, end)
                .ok_or(malformed("the section of types", 8))?,
            strings,
            places: Vec::new(),
        };

        let mut place = first;
        while place < end {
            let malformed = malformed("a type", place);
            let (kind, entries) = btf.info(place).ok_or(malformed)?;
            btf.places.push(place);
            place += 12 + kind.extra(entries);
            if place > end {
                return Err(malformed);
            }
        }
        Ok(btf)
    }

    fn info(&self, place: usize) -> Option<(TypeKind, usize)> {
        let info = self.all.u32(place + 4)?;
        let kind = KINDS.get(info as usize >> 24 & 0x1f)?;
        self.all.u32(place + 8)?;
        Some((*kind, (info & 0xffff) as usize))
    }

    /// The text at this offset of the string section; empty if there is none.
    pub fn text(&self, offset: u32) -> &'a str {
        self.strings.text(offset as usize).unwrap_or_default()
    }

    /// The type with this id; `None` for void.
    pub fn get(&self, id: u32) -> Option<Type<'a, '_>> {
        let place = *self.places.get((id as usize).checked_sub(1)?)?;
        let (kind, entries) = self.info(place)?;
        Some(Type {
            btf: self,
            id,
            place,
            kind,
            entries,
        })
    }

    /// All types.
    pub fn types(&self) -> impl Iterator<Item = Type<'a, '_>> {
        (1..=self.places.len() as u32).filter_map(|id| self.get(id))
    }

    /// The type after removing modifiers and typedefs.
    pub fn plain(&self, id: u32) -> Option<Type<'a, '_>> {
        let mut ty = self.get(id)?;
        for _ in 0..MODIFIERS_MAX {
            if !ty.kind.is_modifier() {
                return Some(ty);
            }
            ty = self.get(ty.target())?;
        }
        None
    }
}

impl<'a, 'b> Type<'a, 'b> {
    /// Name of the type; empty if it has none.
    pub fn name(&self) -> &'a str {
        self.btf.text(self.word(0))
    }

    /// Offset, in all bytes, of the field that contains the name's offset.
    pub fn name_place(&self) -> usize {
        self.place
    }

    fn word(&self, offset: usize) -> u32 {
        self.btf.all.u32(self.place + offset).unwrap_or_default()
    }

    /// Id of the type that this one refers to.
    pub fn target(&self) -> u32 {
        self.word(8)
    }

    /// Id of the type of an array's elements.
    pub fn element(&self) -> Option<u32> {
        (self.kind == TypeKind::Array).then(|| self.word(12))
    }

    /// The type as it is stored.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        let end = self.place + 12 + self.kind.extra(self.entries);
        self.btf.all.0.get(self.place..end).unwrap_or_default()
    }

    /// Offsets, in [`Type::bytes`], of names.
    pub(crate) fn places_of_names(&self) -> impl Iterator<Item = usize> + 'b {
        let place = self.place;
        let entries = self.entries().map(move |entry| entry.name_place - place);
        std::iter::once(0).chain(entries)
    }

    /// Offsets, in [`Type::bytes`], of ids of other types.
    pub(crate) fn places_of_ids(&self) -> impl Iterator<Item = usize> + 'b {
        use TypeKind::*;
        let own: &[usize] = match self.kind {
            Array => &[12, 16],
            kind if kind.is_modifier() => &[8],
            Pointer | Function | Prototype | Variable | DeclTag => &[8],
            _ => &[],
        };

        let has_ids = self.kind.is_composite() || self.kind == Prototype;
        let place = self.place;
        let entries = self.entries().filter(move |_| has_ids);
        let of_entries = entries.map(move |entry| entry.name_place + 4 - place);
        own.iter().copied().chain(of_entries)
    }

    /// Members of a structure or union, enumerators of an enumeration, or arguments of a prototype.
    pub fn entries(&self) -> impl Iterator<Item = TypeEntry<'a>> + 'b {
        let size = self.kind.extra(1);
        let has_entries = self.kind.is_composite()
            || self.kind.is_enumeration()
            || self.kind == TypeKind::Prototype;
        let count = if has_entries { self.entries } else { 0 };

        let (btf, first) = (self.btf, self.place + 12);
        (0..count).filter_map(move |i| {
            let name_place = first + i * size;
            Some(TypeEntry {
                name: btf.text(btf.all.u32(name_place)?),
                ty: btf.all.u32(name_place + 4)?,
                name_place,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_or_changed_bytes_do_no_harm() {
        let Ok(whole) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            println!("skipped: the kernel has no BTF");
            return;
        };
        let btf = Btf::parse(&whole).unwrap();
        let task = btf
            .types()
            .find(|ty| ty.kind == TypeKind::Struct && ty.name() == "task_struct");
        assert!(task.unwrap().entries().any(|member| member.name == "tgid"));
        for len in [0, 1, 7, 23, 24, 100, whole.len() / 2, whole.len() - 1] {
            let _ = Btf::parse(&whole[..len]);
        }
        let mut small = whole[..4096].to_vec();
        small[12..16].copy_from_slice(&2000u32.to_le_bytes());
        small[16..20].copy_from_slice(&2000u32.to_le_bytes());
        small[20..24].copy_from_slice(&2000u32.to_le_bytes());
        for place in 24..1024 {
            let mut changed = small.clone();
            changed[place] ^= 0xff;
            if let Ok(btf) = Btf::parse(&changed) {
                for ty in btf.types() {
                    let _ = (ty.name(), ty.entries().count(), btf.plain(ty.id));
                }
            }
        }
    }
}
