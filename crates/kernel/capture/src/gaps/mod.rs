//! Finds parts that the programs use and the running kernel lacks, and the features that are less exact without them.

pub mod btf;
mod elf;
mod features;
pub(crate) mod reduced;
pub mod relocations;

use crate::attach::vfs_hooks;
use crate::gaps::btf::{Btf, Malformed, Type, TypeKind};
use crate::gaps::relocations::{
    plain_name, AccessStep, AttachTarget, Member, MemberForm, Relocation,
};
use crate::kernel::kernel_btf::{self, Types};
use features::{Feature, Need};
use plan::Gap;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

/// Depth to which unnamed structures inside structures are searched.
const DEPTH_MAX: usize = 16;

/// A gap, and how much depends on it.
pub(crate) struct RatedGap {
    gap: Gap,
    need: Need,
}

/// Gaps of the running kernel, for any engine.
static FOUND: OnceLock<Result<Vec<RatedGap>, Malformed>> = OnceLock::new();

/// The gaps of the running kernel that matter to the engine, essential ones first; none if its types cannot be
/// read.
pub(crate) fn of_this_kernel(trampoline: bool) -> Result<Vec<Gap>, Malformed> {
    let Some(types) = kernel_btf::of_this_kernel() else {
        return Ok(Vec::new());
    };
    let of_any_engine = FOUND.get_or_init(|| of(&types)).as_ref();
    let of_any_engine = of_any_engine.map_err(|malformed| *malformed)?;
    let matters = |rated: &&RatedGap| trampoline || rated.need != Need::Trampoline;
    let mut gaps: Vec<Gap> = of_any_engine
        .iter()
        .filter(matters)
        .map(|rated| rated.gap.clone())
        .collect();

    // Only the trampoline engine hooks functions.
    if trampoline {
        let programs = bpf::tarsier();
        let targets = relocations::targets(&programs)?;
        let functions = targets.iter().filter(|target| !target.is_tracepoint());
        let missing = missing_names(functions, |target| {
            vfs_hooks::is_there(&types, target.program)
        });
        for name in missing.into_iter().filter(|name| has_call(&types, name)) {
            let feature = features::of_function(name);
            gaps.push(rated_gap(format!("function {name}"), feature).gap);
        }
    }

    gaps.sort_by_key(|gap| !gap.essential);
    Ok(gaps)
}

/// The members, tracepoints and enumerators that a kernel with these types lacks, for any engine.
pub(crate) fn of(types: &Types) -> Result<Vec<RatedGap>, Malformed> {
    let relocations = relocations::distinct_of_programs()?;
    let kernel = IndexedTypes::of(Btf::parse(types.bytes())?, &relocations);
    let mut gaps = Vec::new();

    for member in ReadMembers::of(&relocations, &kernel).missing() {
        if has_call(types, member.kernel_type()) {
            gaps.push(rated_gap(member.to_string(), of_member(&member)));
        }
    }

    let programs = bpf::tarsier();
    let targets = relocations::targets(&programs)?;
    let tracepoints = targets.iter().filter(|target| target.is_tracepoint());
    let missing = missing_names(tracepoints, |target| types.has_tracepoint(target.name));
    for name in missing.into_iter().filter(|name| has_call(types, name)) {
        let feature = features::of_tracepoint(name);
        gaps.push(rated_gap(format!("tracepoint {name}"), feature));
    }

    for (name, feature) in features::ENUMERATORS {
        if !kernel.has_enumerator(name) {
            gaps.push(rated_gap(name.to_owned(), Some(feature)));
        }
    }
    Ok(gaps)
}

/// Whether the kernel has the call that a function, tracepoint or type is for, if it is for one.
fn has_call(types: &Types, name: &str) -> bool {
    features::call_of(name).is_none_or(|call| types.has_call(call))
}

/// Names of places that do not exist under any of their names.
fn missing_names<'a>(
    places: impl Iterator<Item = &'a AttachTarget<'a>> + Clone,
    is_there: impl Fn(&AttachTarget<'_>) -> bool,
) -> BTreeSet<&'a str> {
    let there = places.clone().filter(|place| is_there(place));
    let there: BTreeSet<&str> = there.map(|place| place.name).collect();
    let is_missing = |name: &&str| !features::names(name).any(|name| there.contains(name));
    places.map(|place| place.name).filter(is_missing).collect()
}

/// The members that the running kernel has and that programs read; of several forms, the one that it has.
pub(crate) fn members_in_use() -> Result<BTreeSet<Member>, Malformed> {
    let Some(types) = kernel_btf::of_this_kernel() else {
        return Ok(BTreeSet::new());
    };
    let relocations = relocations::of_programs()?;
    let kernel = IndexedTypes::of(Btf::parse(types.bytes())?, &relocations);
    Ok(ReadMembers::of(&relocations, &kernel).present)
}

fn rated_gap(name: String, feature: Option<Feature>) -> RatedGap {
    // A test checks that everything has an entry.
    let (feature, need) = feature.unwrap_or(("a part of the records", Need::Useful));
    let essential = need == Need::Essential;
    let gap = Gap {
        name,
        feature,
        essential,
    };
    RatedGap { gap, need }
}

/// Whether the kernel has a tracepoint that `tp_btf` programs can be attached to.
pub(crate) fn is_there(tracepoint: &str) -> bool {
    // Without types, libbpf reports what is wrong.
    kernel_btf::of_this_kernel().is_none_or(|types| types.has_tracepoint(tracepoint))
}

fn of_member(member: &Member) -> Option<Feature> {
    features::of_member(member.kernel_type(), &member.member)
}

/// The kernel's types, indexed by the names that are needed.
struct IndexedTypes<'a> {
    btf: Btf<'a>,
    names: HashMap<&'a str, Vec<u32>>,
}

impl<'a> IndexedTypes<'a> {
    fn of(btf: Btf<'a>, relocations: &[Relocation]) -> IndexedTypes<'a> {
        let wanted: HashSet<&str> = relocations.iter().map(|r| plain_name(&r.ty)).collect();

        let mut names: HashMap<&str, Vec<u32>> = HashMap::new();
        for ty in btf.types() {
            let has_members = ty.kind.is_composite() || ty.kind.is_enumeration();
            if (has_members || ty.kind == TypeKind::Typedef) && wanted.contains(ty.name()) {
                names.entry(ty.name()).or_default().push(ty.id);
            }
        }
        IndexedTypes { btf, names }
    }

    fn named(&self, kind: TypeKind, name: &str) -> impl Iterator<Item = Type<'a, '_>> {
        let ids = self.names.get(name).map_or(&[][..], Vec::as_slice);
        let types = ids.iter().filter_map(|id| self.btf.get(*id));
        types.filter(move |ty| {
            ty.kind == kind || (ty.kind.is_enumeration() && kind.is_enumeration())
        })
    }

    fn has_enumerator(&self, name: &str) -> bool {
        let mut enumerations = self.btf.types().filter(|ty| ty.kind.is_enumeration());
        enumerations.any(|ty| ty.entries().any(|entry| entry.name == name))
    }

    /// The type of the member with this name and a matching form; members of unnamed members are included.
    fn member(&self, ty: Type<'a, '_>, name: &str, form: &MemberForm, depth: usize) -> Option<u32> {
        if depth == 0 {
            return None;
        }

        for entry in ty.entries() {
            if entry.name == name {
                let fits =
                    MemberForm::of(&self.btf, entry.ty).is_some_and(|found| form.fits(&found));
                return fits.then_some(entry.ty);
            }

            // ReadMembers of an unnamed member are named as if they were the outer type's.
            if entry.name.is_empty() {
                let inner = self.btf.plain(entry.ty);
                let inner = inner.filter(|inner| inner.kind.is_composite());
                if let Some(found) = inner.and_then(|i| self.member(i, name, form, depth - 1)) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Number of steps of a relocation that the kernel can follow.
    fn steps_of(&self, relocation: &Relocation, root: Type<'a, '_>) -> usize {
        let mut ty = root.id;
        for (done, step) in relocation.steps.iter().enumerate() {
            let next = self.btf.plain(ty).and_then(|plain| match step {
                AccessStep::Element => plain.element(),
                AccessStep::Member { member, form } => {
                    self.member(plain, &member.member, form, DEPTH_MAX)
                }
            });

            match next {
                Some(next) => ty = next,
                None => return done,
            }
        }
        relocation.steps.len()
    }
}

/// The members that programs read, divided into those that the kernel has and those that it lacks, without
/// flavours; and those that it has, with their flavours.
#[derive(Default)]
struct ReadMembers {
    missing: BTreeSet<Member>,
    present: BTreeSet<Member>,
    flavours: BTreeSet<Member>,
}

impl ReadMembers {
    fn of(relocations: &[Relocation], kernel: &IndexedTypes<'_>) -> ReadMembers {
        let mut members = ReadMembers::default();
        // Most accesses are made in many places.
        let mut paths = HashSet::new();
        for relocation in relocations {
            if !paths.insert(relocation.to_string()) {
                continue;
            }

            let roots = kernel.named(relocation.kind, plain_name(&relocation.ty));
            if let Some(enumerator) = &relocation.enumerator {
                let mut roots = roots;
                let is_there = roots.any(|ty| ty.entries().any(|entry| entry.name == *enumerator));
                members.add(&Member::new(&relocation.ty, enumerator), is_there);
                continue;
            }

            // The first step that the kernel cannot follow names a member that it lacks; those after it are
            // unknown.
            let done = roots.map(|root| kernel.steps_of(relocation, root)).max();
            let done = done.unwrap_or(0);
            for (i, step) in relocation.steps.iter().enumerate().take(done + 1) {
                if let AccessStep::Member { member, .. } = step {
                    members.add(member, i < done);
                }
            }
        }
        members
    }

    fn add(&mut self, member: &Member, is_there: bool) {
        let plain = Member::new(member.kernel_type(), &member.member);

        if !is_there {
            self.missing.insert(plain);
            return;
        }
        self.present.insert(plain);
        self.flavours.insert(member.clone());
    }

    /// The members of which no form exists.
    fn missing(&self) -> Vec<Member> {
        let missing = self.missing.difference(&self.present);
        let missing = missing.filter(|member| !self.has_other(member));
        missing.cloned().collect()
    }

    fn has_other(&self, member: &Member) -> bool {
        let own = (member.ty.as_str(), member.member.as_str());
        let mut forms = features::ALTERNATIVES.iter();
        forms.any(|forms| {
            let is_there = |form: &(&str, &str)| {
                let (ty, name) = (plain_name(form.0), form.1);
                let is_any = form.0 == ty && self.present.contains(&Member::new(ty, name));
                is_any || self.flavours.contains(&Member::new(form.0, name))
            };
            forms.contains(&own) && forms.iter().any(is_there)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_that_the_programs_read_has_a_feature() {
        let relocations = relocations::of_programs().unwrap();
        let members = relocations::members(&relocations);
        let without: Vec<String> = members
            .iter()
            .filter(|member| of_member(member).is_none())
            .map(Member::to_string)
            .collect();
        assert!(
            without.is_empty(),
            "no entry in gaps/features.rs: {without:?}"
        );
        for AttachTarget { kind, name, .. } in relocations::targets(&bpf::tarsier()).unwrap() {
            let feature = match kind {
                "tp_btf" => features::of_tracepoint(name),
                _ => features::of_function(name),
            };
            assert!(
                feature.is_some(),
                "no entry in gaps/features.rs: {kind}/{name}"
            );
        }
    }

    #[test]
    fn every_flavour_is_a_form_of_another_member() {
        let relocations = relocations::of_programs().unwrap();
        let members = relocations::members(&relocations);
        for flavoured in members.iter().filter(|m| m.ty != m.kernel_type()) {
            let own = (flavoured.kernel_type(), flavoured.member.as_str());
            let is_same = members.contains(&Member::new(own.0, own.1));
            let mut forms = features::ALTERNATIVES.iter().copied().flatten();
            let is_other = forms.any(|form| (plain_name(form.0), form.1) == own);
            assert!(is_same || is_other, "{}.{}", flavoured.ty, flavoured.member);
        }
    }

    #[test]
    fn types_without_the_others_answer_relocations_as_all_do() {
        let Some(types) = kernel_btf::of_this_kernel() else {
            println!("skipped: the kernel has no BTF");
            return;
        };
        let relocations = relocations::of_programs().unwrap();
        let asked = relocations::NeededTypes::of(&bpf::tarsier()).unwrap();
        let all = Btf::parse(types.bytes()).unwrap();
        let reduced = reduced::Reduced::of(&all, &asked.names);
        let answers = |bytes: &[u8]| {
            let kernel = IndexedTypes::of(Btf::parse(bytes).unwrap(), &relocations);
            let members = ReadMembers::of(&relocations, &kernel);
            [members.missing, members.present, members.flavours]
        };
        assert_eq!(answers(types.bytes()), answers(reduced.bytes()));
        assert!(reduced.bytes().len() * 8 < types.bytes().len());
    }

    #[test]
    fn this_kernel_has_what_every_record_needs() {
        if kernel_btf::of_this_kernel().is_none() {
            println!("skipped: the kernel has no BTF");
            return;
        }
        let start = std::time::Instant::now();
        let gaps = of_this_kernel(true).unwrap();
        println!("looked for gaps in {:?}: {gaps:#?}", start.elapsed());
        assert!(gaps.iter().all(|gap| !gap.essential), "{gaps:?}");
    }
}
