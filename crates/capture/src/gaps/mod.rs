//! What the running kernel lacks of what the programs use, and what is less exact without it.

mod features;

use crate::btf::{Btf, Kind, Malformed, Type};
use crate::relocations::{self, plain_name, Form, Member, Relocation, Step};
use crate::tracepoint::OBJECT;
use crate::types;
use features::{Feature, Need};
use plan::Gap;
use std::collections::{BTreeSet, HashMap};

/// Structures in structures without a name that are looked into.
const DEPTH_MAX: usize = 16;

/// The gaps of the running kernel that matter to the engine; none where its types cannot be read.
pub(crate) fn of_this_kernel(trampoline: bool) -> Result<Vec<Gap>, Malformed> {
    let Some(types) = types::of_this_kernel() else {
        return Ok(Vec::new());
    };
    let kernel = Kernel::of(Btf::parse(types.bytes())?);
    let relocations = relocations::of(OBJECT)?;
    let members = missing_members(&relocations, &kernel);
    let members = members
        .iter()
        .filter_map(|member| gap(member.to_string(), of_member(member), trampoline));
    let mut gaps: Vec<Gap> = members.collect();
    let places = relocations::places(OBJECT)?;
    for (kind, name) in places {
        let gap = match kind {
            "tp_btf" if !has_tracepoint(&kernel, name) => {
                let feature = features::of_tracepoint(name);
                gap(format!("tracepoint {name}"), feature, trampoline)
            }
            "fentry" | "fexit" if !kernel.has(Kind::Function, name) => {
                let feature = features::of_function(name);
                gap(format!("function {name}"), feature, trampoline)
            }
            _ => None,
        };
        gaps.extend(gap);
    }
    gaps.dedup_by(|one, other| one.name == other.name);
    // What decides first.
    gaps.sort_by_key(|gap| !gap.essential);
    Ok(gaps)
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

fn gap(name: String, feature: Option<Feature>, trampoline: bool) -> Option<Gap> {
    // That everything has an entry is tested.
    let (feature, need) = feature.unwrap_or(("a part of the records", Need::Useful));
    (trampoline || need != Need::Trampoline).then_some(Gap {
        name,
        feature,
        essential: need == Need::Essential,
    })
}

fn of_member(member: &Member) -> Option<Feature> {
    features::of_member(member.kernel_type(), &member.member)
}

/// The kernel's types by name.
struct Kernel<'a> {
    btf: Btf<'a>,
    names: HashMap<&'a str, Vec<u32>>,
}

impl<'a> Kernel<'a> {
    fn of(btf: Btf<'a>) -> Kernel<'a> {
        let mut names: HashMap<&str, Vec<u32>> = HashMap::new();
        for ty in btf.types() {
            let is_wanted = ty.kind.is_composite() || ty.kind.is_enumeration();
            if is_wanted || matches!(ty.kind, Kind::Typedef | Kind::Function) {
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
    for relocation in relocations {
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
        let relocations = relocations::of(OBJECT).unwrap();
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
        for (kind, name) in relocations::places(OBJECT).unwrap() {
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
        let relocations = relocations::of(OBJECT).unwrap();
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
