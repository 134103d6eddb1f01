//! Sections and functions of an ELF object as clang writes it for BPF: 64 bits, little-endian.

use crate::gaps::btf::{Bytes, Malformed};

const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const STT_FUNC: u8 = 2;

/// A section: its name and contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: Bytes<'a>,
    /// Index of the section that it refers to.
    link: usize,
}

/// A program, or a function that programs call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ElfFunction<'a> {
    pub(crate) name: &'a str,
    pub(crate) section: &'a str,
    /// Offset of its first byte in its section.
    pub(crate) start: u64,
    pub(crate) size: u64,
}

pub(crate) struct Elf<'a> {
    sections: Vec<Section<'a>>,
}

impl<'a> Elf<'a> {
    pub(crate) fn parse(object: &'a [u8]) -> Result<Elf<'a>, Malformed> {
        let malformed = |what, offset| Malformed { what, offset };
        if !object.starts_with(&MAGIC) {
            return Err(malformed("the magic number of ELF", 0));
        }

        let bytes = Bytes(object);
        let header = || {
            let first = usize::try_from(bytes.u64(0x28)?).ok()?;
            let (count, names) = (bytes.u16(0x3c)?, bytes.u16(0x3e)?);
            Some((first, usize::from(count), usize::from(names)))
        };
        let (first, count, names) = header().ok_or(malformed("the header of ELF", 0x28))?;

        let place = |section: usize| first.saturating_add(section * SECTION_HEADER);
        let contents = |section: usize| {
            let at = place(section);
            const NOBITS: u32 = 8;
            let len = match bytes.u32(at + 4)? {
                NOBITS => 0,
                _ => usize::try_from(bytes.u64(at + 32)?).ok()?,
            };
            bytes.part(usize::try_from(bytes.u64(at + 24)?).ok()?, len)
        };

        let section_names = contents(names).ok_or(malformed("the names of sections", 0x3e))?;
        let section = |number: usize| {
            let at = place(number);
            Some(Section {
                name: section_names.text(bytes.u32(at)? as usize)?,
                bytes: contents(number)?,
                link: bytes.u32(at + 40)? as usize,
            })
        };

        let sections = (0..count).map(|n| section(n).ok_or(malformed("a section", place(n))));
        Ok(Elf {
            sections: sections.collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn section(&self, name: &'static str) -> Result<Section<'a>, Malformed> {
        let found = self.sections.iter().find(|section| section.name == name);
        found.copied().ok_or(Malformed {
            what: name,
            offset: 0,
        })
    }

    /// All functions in the symbol table.
    pub(crate) fn functions(&self) -> Result<Vec<ElfFunction<'a>>, Malformed> {
        let table = self.section(".symtab")?;
        let names = self.sections.get(table.link).ok_or(Malformed {
            what: "the names of symbols",
            offset: 0,
        })?;

        let function = |at: usize| {
            let kind = *table.bytes.0.get(at + 4)?;
            if kind & 0xf != STT_FUNC {
                return None;
            }
            let section = table.bytes.u16(at + 6)?;
            Some(ElfFunction {
                name: names.bytes.text(table.bytes.u32(at)? as usize)?,
                section: self.sections.get(usize::from(section))?.name,
                start: table.bytes.u64(at + 8)?,
                size: table.bytes.u64(at + 16)?,
            })
        };

        let places = (0..table.bytes.0.len()).step_by(SYMBOL);
        Ok(places.filter_map(function).collect())
    }
}
