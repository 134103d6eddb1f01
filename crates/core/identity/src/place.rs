//! A cgroup's facts on which the workloads of further cgroups below it depend.

use crate::container::{by_maker, is_machine};
use crate::escape::without_mark;
use crate::unit::is_slice;
use crate::Workload;
use std::borrow::Cow;

/// A cgroup: its workload, and what decides the workload of cgroups that are made in it, together with their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The workload of the cgroup's own processes.
    pub workload: Workload<'a>,
    /// Unit and slice of the cgroups below are those of this one.
    pub is_settled: bool,
    /// Each cgroup directly below is that of a container of LXC.
    pub is_lxc: bool,
    /// The cgroup is that of a machine: its `supervisor` is not in the container.
    pub is_machine: bool,
    /// Whether root of the host gave the last name, and all before it.
    pub is_of_root: bool,
    /// Whether unit and slice are names that root of the host gave.
    pub is_unit_proven: bool,
    /// Id of the container that root of the host made.
    pub made: Option<Cow<'a, [u8]>>,
    /// Ids of containers in that one, or in none, whose names others may have chosen, outermost first.
    pub claimed: Vec<Cow<'a, [u8]>>,
}

impl<'a> Place<'a> {
    /// Reads a path, as [`Workload::of`] does. `of_root`: bytes at its begin whose names root of the host gave. The
    /// names behind them may come from anybody.
    pub fn of(path: &'a [u8], of_root: usize) -> Place<'a> {
        let names = || {
            let names = path.split(|&byte| byte == b'/');
            names.filter(|name| !name.is_empty()).map(without_mark)
        };
        let last = names().next_back().unwrap_or_default();
        let (made, claimed) = by_maker(path, of_root);
        let of_root = path.get(..of_root).unwrap_or(path);
        let settles = |name: &[u8]| !name.is_empty() && !is_slice(without_mark(name));

        Place {
            workload: Workload::of(path),
            is_settled: names().any(|name| !is_slice(name)),
            is_lxc: last == b"lxc",
            is_machine: is_machine(last),
            is_of_root: of_root.len() == path.len(),
            is_unit_proven: of_root.len() == path.len()
                || of_root.split(|&byte| byte == b'/').any(settles),
            made,
            claimed,
        }
    }

    /// Whether all that rules ask about comes from names that root of the host gave.
    pub fn is_proven(&self) -> bool {
        self.is_unit_proven && self.claimed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_what_names_below_it_mean() {
        let of = |path: &'static str| Place::of(path.as_bytes(), path.len());
        let settled = |path: &'static str| of(path).is_settled;
        assert!(!settled("/") && !settled("/a.slice/a-b.slice"));
        assert!(settled("/a.slice/other") && settled("/x/a.slice"));
        assert!(of("/a/_lxc").is_lxc && !of("/lxc/a").is_lxc);
        assert!(of("/machine-b.scope").is_machine);
    }

    #[test]
    fn only_the_first_container_is_proven_and_only_by_names_that_root_gave() {
        let of = |path: &'static str, of_root: &str| {
            let place = Place::of(path.as_bytes(), of_root.len());
            let made = place.made.as_deref().map(<[u8]>::to_vec);
            let claimed: Vec<&[u8]> = place.claimed.iter().map(|id| &**id).collect();
            (made, claimed.join(&b' '), place.is_proven())
        };
        let some = |id: &str| Some(id.as_bytes().to_vec());
        let path = "/lxc.payload.a/x.service/lxc.payload.b";
        assert_eq!(of(path, path), (some("a"), b"b".to_vec(), false));
        assert_eq!(
            of(path, "/lxc.payload.a"),
            (some("a"), b"b".to_vec(), false)
        );
        assert_eq!(of(path, ""), (None, b"a b".to_vec(), false));
        let machine = "/machine-b.scope/supervisor";
        assert_eq!(of(machine, machine), (None, Vec::new(), true));
        assert_eq!(
            of(machine, "/machine-b.scope"),
            (some("b"), Vec::new(), true)
        );
        // A name that root did not give makes no unit.
        let path = "/a.slice/b.service";
        assert_eq!(of(path, "/a.slice"), (None, Vec::new(), false));
        let path = "/a.slice/b.service/c";
        assert_eq!(of(path, "/a.slice/b.service"), (None, Vec::new(), true));
    }
}
