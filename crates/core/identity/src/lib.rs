//! Unit, container and pod of a process, read from the path of its cgroup.
//!
//! Pure: nothing here reads the system. The makers of cgroups choose the names in a path, so it is
//! hostile input: each question takes one pass, nothing panics, and a name counts only for what its
//! place in the path allows.

mod container;
mod escape;
mod place;
mod pod;
mod unit;

pub use container::{Container, Runtime};
pub use place::Place;
pub use unit::{is_slice, is_unit};

use std::borrow::Cow;

/// Unit, container and pod in the path of a cgroup. Text is as systemd and the container runtimes
/// show it, with their escapes undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload<'a> {
    /// The system unit, such as `ssh.service` or `session-2.scope`: the outermost one, which only the host's manager
    /// can have made.
    pub unit: Option<Cow<'a, [u8]>>,
    /// The innermost slice above the unit; of a path without a unit, the innermost of its first slices.
    pub slice: Option<Cow<'a, [u8]>>,
    /// The unit of a user's manager, below `user@UID.service`.
    pub user_unit: Option<Cow<'a, [u8]>>,
    /// The innermost container.
    pub container: Option<Container<'a>>,
    /// Id of the outermost container, if the innermost one is nested in it. Processes in a
    /// container may have chosen the names below it.
    pub outer: Option<Cow<'a, [u8]>>,
    /// Uid of the Kubernetes pod, or id of the podman pod: the innermost.
    pub pod: Option<Cow<'a, [u8]>>,
}

impl<'a> Workload<'a> {
    /// Reads a path such as `/system.slice/ssh.service`, as seen from the root of the cgroup2 hierarchy.
    pub fn of(path: &'a [u8]) -> Workload<'a> {
        let names = || path.split(|&byte| byte == b'/').filter(|n| !n.is_empty());
        let units = unit::units(names());
        let containers = container::containers(names());
        Workload {
            unit: units.unit.map(Cow::Borrowed),
            slice: units.slice.map(Cow::Borrowed),
            user_unit: units.user_unit.map(Cow::Borrowed),
            outer: containers.outer,
            container: containers.inner,
            pod: pod::pod(names()),
        }
    }

    /// Number of the login session (sd_pid_get_session(3)), if the unit is the scope of one.
    pub fn session(&self) -> Option<&[u8]> {
        let name = self.unit.as_deref()?.strip_prefix(b"session-")?;
        name.strip_suffix(b".scope").filter(|id| !id.is_empty())
    }

    /// Whether the path names no unit, container or pod.
    pub fn is_empty(&self) -> bool {
        *self == Workload::default()
    }
}
