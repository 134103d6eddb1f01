//! What the running kernel lacks of what the programs use, and what is less exact without it.

mod features;

use crate::btf::{Btf, Kind, Malformed, Type};
use crate::relocations::{self, plain_name, Form, Member, Relocation, Step};
use crate::types;
use features::{Feature, Need};
use plan::Gap;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Structures in structures without a name that are looked into.
const DEPTH_MAX: usize = 16;

/// A gap, and how much depends on what is missing.
pub(crate) struct Found {
    gap: Gap,
    need: Need,
}

/// The gaps of the running kernel that matter to the engine; none where its types cannot be read.
pub(crate) fn of_this_kernel(trampoline: bool) -> Result<Vec<Gap>, Malformed> {
    let Some(types) = types::of_this_kernel() else {
        return Ok(Vec::new());
    };
    let found = types.gaps()?.iter();
    let matters = |found: &&Found| trampoline || found.need != Need::Trampoline;
    Ok(found.filter(matters).map(|f| f.gap.clone()).collect())
}

/// What a kernel with these types lacks for any engine, the essential first.
pub(crate) fn of(types: &[u8]) -> Result<Vec<Found>, Malformed> {
    let relocations = relocations::of_programs()?;
    let places = relocations::places_of_programs()?;
    let kernel = Kernel::of(Btf::parse(types)?, &wanted(&relocations, &places));
    let members = missing_members(&relocations, &kernel);
    let members = members.iter().map(|m| found(m.to_string(), of_member(m)));
    let mut gaps: Vec<Found> = members.collect();
    for (kind, name) in places {
        if kind == "tp_btf" && !has_tracepoint(&kernel, name) {
            let feature = features::of_tracepoint(name);
            gaps.push(found(format!("tracepoint {name}"), feature));
        } else if kind != "tp_btf" && !kernel.has(Kind::Function, name) {
            gaps.push(found(
                format!("function {name}"),
                features::of_function(name),
            ));
        }
    }
    for (name, feature) in features::ENUMERATORS {
        if !kernel.has_enumerator(name) {
            gaps.push(found(name.to_owned(), Some(feature)));
        }
    }
    // A function may be hooked at both of its ends.
    let mut names = BTreeSet::new();
    gaps.retain(|found| names.insert(found.gap.name.clone()));
    gaps.sort_by_key(|found| !found.gap.essential);
    Ok(gaps)
}

fn found(name: String, feature: Option<Feature>) -> Found {
    // That everything has an entry is tested.
    let (feature, need) = feature.unwrap_or(("a part of the records", Need::Useful));
    let essential = need == Need::Essential;
    let gap = Gap {
        name,
        feature,
        essential,
    };
    Found { gap, need }
}

/// Names of types that are looked for.
fn wanted(
    relocations: &[Relocation],
    places: &BTreeSet<(&'static str, &'static str)>,
) -> HashSet<String> {
    let types = relocations.iter().map(|r| plain_name(&r.ty).to_owned());
    let places = places.iter().map(|(kind, name)| match *kind {
        "tp_btf" => typedef_of(name),
        _ => (*name).to_owned(),
    });
    types.chain(places).collect()
}

/// Whether the kernel has a tracepoint that `tp_btf` programs can be attached to.
pub(crate) fn is_there(tracepoint: &str) -> bool {
    use libbpf_rs::btf::types::Typedef;
    let Some(types) = types::of_this_kernel() else {
        // libbpf says it better.
        return true;
    };
    let name = typedef_of(tracepoint);
    types.btf().type_by_name::<Typedef<'_>>(&name).is_some()
}

fn typedef_of(tracepoint: &str) -> String {
    format!("btf_trace_{tracepoint}")
}

fn has_tracepoint(kernel: &Kernel<'_>, name: &str) -> bool {
    let forms = features::TRACEPOINT_ALTERNATIVES.iter();
    let forms = forms.copied().find(|forms| forms.contains(&name));
    let mut forms = forms.unwrap_or_default().iter().copied().chain([name]);
    forms.any(|name| kernel.has(Kind::Typedef, &typedef_of(name)))
}

fn of_member(member: &Member) -> Option<Feature> {
    features::of_member(member.kernel_type(), &member.member)
}

/// The kernel's types, those that are looked for by name.
struct Kernel<'a> {
    btf: Btf<'a>,
    names: HashMap<&'a str, Vec<u32>>,
}

impl<'a> Kernel<'a> {
    fn of(btf: Btf<'a>, wanted: &HashSet<String>) -> Kernel<'a> {
        let mut names: HashMap<&str, Vec<u32>> = HashMap::new();
        for ty in btf.types() {
            let has_members = ty.kind.is_composite() || ty.kind.is_enumeration();
            let may_be = has_members || matches!(ty.kind, Kind::Typedef | Kind::Function);
            if may_be && wanted.contains(ty.name()) {
                names.entry(ty.name()).or_default().push(ty.id);
            }
        }
        Kernel { btf, names }
    }

    fn has(&self, kind: Kind, name: &str) -> bool {
        self.named(kind, name).next().is_some()
    }

    fn named(&self, kind: Kind, name: &str) -> impl Iterator<Item = Type<'a, '_>> {
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

    /// The type of the member with this name and a form that fits, also inside members without a name.
    fn member(&self, ty: Type<'a, '_>, name: &str, form: &Form, depth: usize) -> Option<u32> {
        if depth == 0 {
            return None;
        }
        for entry in ty.entries() {
            if entry.name == name {
                let fits = Form::of(&self.btf, entry.ty).is_some_and(|found| form.fits(&found));
                return fits.then_some(entry.ty);
            }
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

    /// How many steps of a relocation the kernel can go.
    fn steps_of(&self, relocation: &Relocation, root: Type<'a, '_>) -> usize {
        let mut ty = root.id;
        for (done, step) in relocation.steps.iter().enumerate() {
            let next = self.btf.plain(ty).and_then(|plain| match step {
                Step::Element => plain.element(),
                Step::Member { member, form } => {
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

/// Members of which no form is there.
fn missing_members(relocations: &[Relocation], kernel: &Kernel<'_>) -> Vec<Member> {
    let mut missing = BTreeSet::new();
    let mut present = BTreeSet::new();
    let plain = |member: &Member| Member::new(member.kernel_type(), &member.member);
    // Most accesses are made in many places.
    let mut paths = HashSet::new();
    for relocation in relocations {
        if !paths.insert(relocation.to_string()) {
            continue;
        }
        let name = plain_name(&relocation.ty);
        let roots = kernel.named(relocation.kind, name);
        if let Some(enumerator) = &relocation.enumerator {
            let mut roots = roots;
            let is_there = roots.any(|ty| ty.entries().any(|entry| entry.name == *enumerator));
            let set = if is_there { &mut present } else { &mut missing };
            set.insert(Member::new(name, enumerator));
            continue;
        }
        let done = roots.map(|root| kernel.steps_of(relocation, root)).max();
        let done = done.unwrap_or(0);
        for (i, step) in relocation.steps.iter().enumerate().take(done + 1) {
            if let Step::Member { member, .. } = step {
                let set = if i < done { &mut present } else { &mut missing };
                set.insert(plain(member));
            }
        }
    }
    let has_other = |member: &Member| {
        let is_it = |form: &(&str, &str)| *form == (member.ty.as_str(), member.member.as_str());
        let forms = features::ALTERNATIVES.iter();
        let mut forms = forms.filter(|forms| forms.iter().any(is_it)).copied();
        forms.any(|forms| {
            let mut forms = forms.iter();
            forms.any(|form| present.contains(&Member::new(form.0, form.1)))
        })
    };
    let missing = missing.difference(&present);
    missing.filter(|m| !has_other(m)).cloned().collect()
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
        for (kind, name) in relocations::places_of_programs().unwrap() {
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
            let mut forms = features::ALTERNATIVES.iter();
            let is_other = forms.any(|forms| forms.contains(&own));
            assert!(is_same || is_other, "{}.{}", flavoured.ty, flavoured.member);
        }
    }

    #[test]
    fn this_kernel_has_what_every_record_needs() {
        if types::of_this_kernel().is_none() {
            println!("skipped: the kernel has no BTF");
            return;
        }
        let start = std::time::Instant::now();
        let gaps = of_this_kernel(true).unwrap();
        println!("looked for gaps in {:?}: {gaps:#?}", start.elapsed());
        assert!(gaps.iter().all(|gap| !gap.essential), "{gaps:?}");
    }
}
