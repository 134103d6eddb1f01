//! A cgroup's facts on which the workloads of further cgroups below it depend.

use crate::container::{containers, is_machine};
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
    /// Id of the container that such a supervisor is in.
    pub above: Option<Cow<'a, [u8]>>,
}

impl<'a> Place<'a> {
    /// Reads a path, as [`Workload::of`] does.
    pub fn of(path: &'a [u8]) -> Place<'a> {
        let names = || {
            let names = path.split(|&byte| byte == b'/');
            names.filter(|name| !name.is_empty()).map(without_mark)
        };
        let last = names().next_back().unwrap_or_default();
        let marked = path.split(|&byte| byte == b'/').filter(|n| !n.is_empty());
        Place {
            workload: Workload::of(path),
            is_settled: names().any(|name| !is_slice(name)),
            is_lxc: last == b"lxc",
            is_machine: is_machine(last),
            above: containers(marked).1.inner.map(|container| container.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_says_what_names_below_it_mean() {
        let settled = |path: &str| Place::of(path.as_bytes()).is_settled;
        assert!(!settled("/") && !settled("/a.slice/a-b.slice"));
        assert!(settled("/a.slice/other") && settled("/x/a.slice"));
        assert!(Place::of(b"/a/_lxc").is_lxc && !Place::of(b"/lxc/a").is_lxc);
        let machine = Place::of(b"/lxc.payload.a/machine-b.scope");
        assert!(machine.is_machine);
        assert_eq!(machine.above.as_deref(), Some(&b"a"[..]));
        // The supervisor is in what is above the machine, and has nothing above itself.
        let supervisor = Place::of(b"/lxc.payload.a/machine-b.scope/supervisor");
        let container = supervisor.workload.container.map(|c| c.id.into_owned());
        assert_eq!(container.as_deref(), Some(&b"a"[..]));
        assert_eq!(supervisor.above, None);
    }
}
