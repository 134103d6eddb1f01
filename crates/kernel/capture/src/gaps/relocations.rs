//! Requirements of the programs on the kernel's types: the CO-RE relocations of the BPF object (`.BTF.ext`), each with
//! its access by names. For the encoding of accesses see libbpf's relo_core.c, `bpf_core_parse_spec()`.

use crate::gaps::btf::{Btf, Bytes, Malformed, Type, TypeKind};
use crate::gaps::elf::{Elf, ElfFunction};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

const MAGIC: u16 = 0xeb9f;
const INSTRUCTION_BYTES: u32 = 8;

/// Question that a relocation asks: `enum bpf_core_relo_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The place of a member, its size, its signedness, or the position of its bits.
    Field,
    /// Whether a member exists; the answer may be no.
    FieldExists,
    /// The id of a type.
    TypeId,
    /// The size of a type.
    TypeSize,
    /// Whether a type exists; the answer may be no.
    TypeExists,
    /// The value of an enumerator.
    Enumerator,
    /// Whether an enumerator exists; the answer may be no.
    EnumeratorExists,
    /// The id of a type in the object itself, which does not depend on the kernel.
    Local,
}

impl Question {
    fn of(kind: u32) -> Option<Question> {
        Some(match kind {
            0 | 1 | 3 | 4 | 5 => Question::Field,
            2 => Question::FieldExists,
            6 => Question::Local,
            7 => Question::TypeId,
            9 => Question::TypeSize,
            8 | 12 => Question::TypeExists,
            10 => Question::EnumeratorExists,
            11 => Question::Enumerator,
            _ => return None,
        })
    }
}

/// The type of a member without its typedefs, as far as a kernel's member has to match it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberForm {
    Composite,
    /// An enumeration with this name, or a type with this name that is only declared.
    Named(TypeKind, String),
    Array(Box<MemberForm>),
    Other(TypeKind),
}

impl MemberForm {
    pub(crate) fn of(btf: &Btf<'_>, id: u32) -> Option<MemberForm> {
        const DIMENSIONS_MAX: usize = 8;
        let mut ty = btf.plain(id)?;
        let mut dimensions = 0;
        while let Some(element) = ty.element() {
            ty = btf.plain(element)?;
            dimensions += 1;
            if dimensions > DIMENSIONS_MAX {
                return None;
            }
        }

        let form = match ty.kind {
            kind if kind.is_composite() => MemberForm::Composite,
            kind if kind.is_enumeration() => {
                MemberForm::Named(TypeKind::Enum, ty.name().to_owned())
            }
            TypeKind::Forward => MemberForm::Named(TypeKind::Forward, ty.name().to_owned()),
            kind => MemberForm::Other(kind),
        };
        Some((0..dimensions).fold(form, |form, _| MemberForm::Array(Box::new(form))))
    }

    /// Whether libbpf accepts one form in place of the other: `bpf_core_fields_are_compat()`.
    pub(crate) fn fits(&self, other: &MemberForm) -> bool {
        match (self, other) {
            (MemberForm::Named(kind, name), MemberForm::Named(other_kind, other)) => {
                let is_one = plain_name(name) == plain_name(other);
                kind == other_kind && (is_one || name.is_empty() || other.is_empty())
            }
            (MemberForm::Array(element), MemberForm::Array(other)) => element.fits(other),
            (one, other) => one == other,
        }
    }
}

/// A step of an access, from a type towards what the relocation asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessStep {
    Member { member: Member, form: MemberForm },
    Element,
}

/// A member that programs read, such as `task_struct.loginuid`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Name of the type, with its flavour (`___…`) if it has one.
    pub ty: String,
    /// Name of the member.
    pub member: String,
}

impl Member {
    pub(crate) fn new(ty: &str, member: &str) -> Member {
        Member {
            ty: ty.to_owned(),
            member: member.to_owned(),
        }
    }

    /// The name of the type in the kernel, without its flavour.
    pub fn kernel_type(&self) -> &str {
        plain_name(&self.ty)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kernel_type(), self.member)
    }
}

/// A type's name without its flavour.
pub(crate) fn plain_name(name: &str) -> &str {
    match name.find("___") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// One relocation.
#[derive(Clone, Debug)]
pub struct Relocation {
    /// The program, or the function that programs call.
    pub function: String,
    /// Index of the instruction in the function.
    pub instruction: u32,
    /// Question that the relocation asks.
    pub question: Question,
    /// Name of the type where the access starts, with its flavour.
    pub ty: String,
    pub(crate) kind: TypeKind,
    pub(crate) steps: Vec<AccessStep>,
    /// Name of the enumerator, for relocations on enumerators only.
    pub enumerator: Option<String>,
}

impl Relocation {
    /// The members on the access path, or the enumerator if the relocation is about one.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        let steps = self.steps.iter().filter_map(|step| match step {
            AccessStep::Member { member, .. } => Some(member.clone()),
            AccessStep::Element => None,
        });
        let enumerator = self.enumerator.iter();
        steps.chain(enumerator.map(|name| Member::new(&self.ty, name)))
    }
}

/// Formats the whole access, such as `task_struct.loginuid.val`.
impl fmt::Display for Relocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ty)?;
        for step in &self.steps {
            match step {
                AccessStep::Member { member, .. } => write!(f, ".{}", member.member)?,
                AccessStep::Element => f.write_str("[]")?,
            }
        }
        self.enumerator
            .iter()
            .try_for_each(|name| write!(f, ".{name}"))
    }
}

/// All relocations of an object.
pub fn of(object: &[u8]) -> Result<Vec<Relocation>, Malformed> {
    chosen(object, |_| true)
}

/// The relocations of the programs of the eBPF engines, with only the first of several that ask the same.
pub(crate) fn distinct_of_programs() -> Result<Vec<Relocation>, Malformed> {
    // Type, access and question.
    let mut seen = HashSet::new();
    chosen(&bpf::tarsier(), |record| {
        seen.insert([4, 8, 12].map(|at| record.u32(at)))
    })
}

fn chosen(
    object: &[u8],
    mut is_chosen: impl FnMut(Bytes<'_>) -> bool,
) -> Result<Vec<Relocation>, Malformed> {
    let elf = Elf::parse(object)?;
    let btf = Btf::parse(elf.section(".BTF")?.bytes.0)?;
    let functions = elf.functions()?;
    let ext = elf.section(".BTF.ext")?.bytes;

    let mut found = Vec::new();
    each_record(ext, |section, record| {
        if !is_chosen(record) {
            return Some(());
        }
        found.push(relocation(&btf, &functions, btf.text(section), record)?);
        Some(())
    })?;
    Ok(found)
}

/// What an object's relocations need of the kernel's types.
pub(crate) struct NeededTypes {
    /// Names of the types where accesses start, without flavours.
    pub(crate) names: BTreeSet<String>,
    /// Indices of the instructions that get ids of types, by the type of their function in the object.
    pub(crate) ids: BTreeMap<u32, Vec<u32>>,
}

impl NeededTypes {
    pub(crate) fn of(object: &[u8]) -> Result<NeededTypes, Malformed> {
        let elf = Elf::parse(object)?;
        let btf = Btf::parse(elf.section(".BTF")?.bytes.0)?;
        let functions = elf.functions()?;
        let (mut roots, mut ids) = (BTreeSet::new(), Vec::new());

        each_record(elf.section(".BTF.ext")?.bytes, |section, record| {
            roots.insert(record.u32(4)?);
            if Question::of(record.u32(12)?)? == Question::TypeId {
                ids.push(relocation(&btf, &functions, btf.text(section), record)?);
            }
            Some(())
        })?;

        let mut needed = NeededTypes {
            names: BTreeSet::new(),
            ids: BTreeMap::new(),
        };
        let roots = roots.iter().filter_map(|id| btf.get(*id));
        needed
            .names
            .extend(roots.map(|ty| plain_name(ty.name()).to_owned()));

        for function in btf.types().filter(|ty| ty.kind == TypeKind::Function) {
            let of_function = ids.iter().filter(|r| r.function == function.name());
            let instructions: Vec<u32> = of_function.map(|r| r.instruction).collect();
            if !instructions.is_empty() {
                needed.ids.insert(function.id, instructions);
            }
        }
        Ok(needed)
    }
}

/// All relocations of the programs of the eBPF engines.
pub fn of_programs() -> Result<Vec<Relocation>, Malformed> {
    of(&bpf::tarsier())
}

/// The distinct members and enumerators on the access paths of relocations.
pub fn members(relocations: &[Relocation]) -> BTreeSet<Member> {
    relocations.iter().flat_map(Relocation::members).collect()
}

/// The place that a program is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachTarget<'a> {
    /// Name of the program.
    pub program: &'a str,
    /// `tp_btf`, `fentry` or `fexit`.
    pub kind: &'a str,
    /// Name of the tracepoint or function.
    pub name: &'a str,
}

impl AttachTarget<'_> {
    /// Whether this is a tracepoint, not a function.
    pub fn is_tracepoint(&self) -> bool {
        self.kind == "tp_btf"
    }
}

/// The places of the object's programs whose section names one.
pub fn targets(object: &[u8]) -> Result<Vec<AttachTarget<'_>>, Malformed> {
    let functions = Elf::parse(object)?.functions()?;
    Ok(functions
        .into_iter()
        .filter_map(|function| {
            let (kind, name) = function.section.split_once('/')?;
            // Iterators are not attached to a place.
            let kind = Some(kind).filter(|kind| *kind != "iter")?;
            let program = function.name;
            Some(AttachTarget {
                program,
                kind,
                name,
            })
        })
        .collect())
}

/// Calls a function for each record of `.BTF.ext`, with the name of the record's section (as an offset).
fn each_record(
    ext: Bytes<'_>,
    mut take: impl FnMut(u32, Bytes<'_>) -> Option<()>,
) -> Result<(), Malformed> {
    let malformed = |offset| Malformed {
        what: ".BTF.ext",
        offset,
    };

    let word = |offset: usize| ext.u32(offset).ok_or(malformed(offset));
    if ext.u16(0) != Some(MAGIC) {
        return Err(malformed(0));
    }

    // A header of an older format has no relocations (libbpf's struct btf_ext_header).
    let header = word(4)?;
    if header < 32 {
        return Ok(());
    }

    let mut place = header.saturating_add(word(24)?) as usize;
    let end = place.saturating_add(word(28)? as usize);
    if place == end {
        return Ok(());
    }
    let size = word(place)? as usize;
    place += 4;
    if size < 16 {
        return Err(malformed(place));
    }

    while place < end {
        let (section, count) = (word(place)?, word(place + 4)?);
        place += 8;
        for _ in 0..count {
            let record = ext.part(place, size).ok_or(malformed(place))?;
            take(section, record).ok_or(malformed(place))?;
            place += size;
        }
    }
    Ok(())
}

fn relocation(
    btf: &Btf<'_>,
    functions: &[ElfFunction<'_>],
    section: &str,
    record: Bytes<'_>,
) -> Option<Relocation> {
    let offset = record.u32(0)?;
    let is_in = |f: &&ElfFunction<'_>| {
        let end = f.start.saturating_add(f.size);
        f.section == section && (f.start..end).contains(&u64::from(offset))
    };

    let function = functions.iter().find(is_in)?;
    let ty = btf.get(record.u32(4)?)?;
    let question = Question::of(record.u32(12)?)?;
    let access = btf.text(record.u32(8)?).split(':');
    let access: Vec<usize> = access.map(|n| n.parse().ok()).collect::<Option<_>>()?;

    let mut steps = Vec::new();
    let mut enumerator = None;
    match question {
        Question::Field | Question::FieldExists => steps = self::steps(btf, ty, access.get(1..)?)?,
        Question::Enumerator | Question::EnumeratorExists => {
            let plain = btf.plain(ty.id)?;
            enumerator = Some(plain.entries().nth(*access.first()?)?.name.to_owned());
        }
        Question::TypeId | Question::TypeSize | Question::TypeExists | Question::Local => {}
    }

    Some(Relocation {
        function: function.name.to_owned(),
        instruction: (offset - u32::try_from(function.start).ok()?) / INSTRUCTION_BYTES,
        question,
        ty: ty.name().to_owned(),
        kind: ty.kind,
        steps,
        enumerator,
    })
}

/// The members on the path that `access` describes. Unnamed members are skipped.
fn steps(btf: &Btf<'_>, root: Type<'_, '_>, access: &[usize]) -> Option<Vec<AccessStep>> {
    let mut owner = root.name().to_owned();
    let mut ty = btf.plain(root.id)?;
    let mut steps = Vec::new();
    for &index in access {
        let next = if ty.kind.is_composite() {
            let entry = ty.entries().nth(index)?;
            if !entry.name.is_empty() {
                steps.push(AccessStep::Member {
                    member: Member::new(&owner, entry.name),
                    form: MemberForm::of(btf, entry.ty)?,
                });
            }
            entry.ty
        } else {
            steps.push(AccessStep::Element);
            ty.element()?
        };

        if let Some(name) = type_name(btf, next) {
            owner = name;
        }
        ty = btf.plain(next)?;
    }
    Some(steps)
}

/// The name of a type, or of the typedef that names it.
fn type_name(btf: &Btf<'_>, id: u32) -> Option<String> {
    const TYPEDEFS_MAX: usize = 32;
    let plain = btf.plain(id)?;
    if !plain.name().is_empty() {
        return Some(plain.name().to_owned());
    }

    let mut ty = btf.get(id)?;
    for _ in 0..TYPEDEFS_MAX {
        if ty.kind == TypeKind::Typedef {
            return Some(ty.name().to_owned());
        }
        if ty.id == plain.id {
            return None;
        }
        ty = btf.get(ty.target())?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_of_the_object_have_their_names() {
        let found = of(&bpf::tarsier()).unwrap();
        let paths: BTreeSet<String> = found.iter().map(Relocation::to_string).collect();
        for path in [
            "task_struct.loginuid.val",
            "io_kiocb.cqe.fd",
            "cred.uid.val",
        ] {
            assert!(paths.contains(path), "{path} is not in {paths:?}");
        }
        let members = members(&found);
        assert!(members.contains(&Member::new("kuid_t", "val")));
        assert!(members.contains(&Member::new("dentry___iname", "d_iname")));
        let functions: BTreeSet<&str> = found.iter().map(|r| r.function.as_str()).collect();
        assert!(functions.contains("sys_exit") && functions.contains("walk_step"));
    }

    #[test]
    fn a_cut_or_changed_object_does_no_harm() {
        let programs = bpf::tarsier();
        for len in (0..programs.len()).step_by(4999) {
            assert!(of(&programs[..len]).is_err());
        }
        for place in (0..programs.len()).step_by(9973).chain(0..64) {
            let mut changed = programs.to_vec();
            changed[place] ^= 0xff;
            let _ = (of(&changed), targets(&changed));
        }
    }

    #[test]
    fn programs_name_their_places() {
        let programs = bpf::tarsier();
        let places = targets(&programs).unwrap();
        let has = |program, kind, name| {
            let place = AttachTarget {
                program,
                kind,
                name,
            };
            places.contains(&place)
        };
        assert!(has("sys_exit", "tp_btf", "sys_exit"));
        assert!(has("after_do_filp_open", "fexit", "do_filp_open"));
    }
}
