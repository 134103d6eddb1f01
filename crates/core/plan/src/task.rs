//! Facts about the task of a call that only Tarsier's own fields of rules ask about.

use crate::object_id::ObjectId;
use abi::Field;
use identity::Place;
use std::borrow::Cow;

/// Value of one of the fields for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadName<'a> {
    /// The value is not known. A condition then holds for rules that record, and for no others.
    Unknown,
    /// The task is in none.
    Nothing,
    /// The task is in this one.
    Is(&'a [u8]),
}

/// The workload of a task, as rules compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskWorkload<'a> {
    /// The system unit.
    pub unit: WorkloadName<'a>,
    /// The slice.
    pub slice: WorkloadName<'a>,
    /// The containers that it may be in.
    pub containers: TaskContainers<'a>,
    /// The past of the process.
    pub past: TaskPast<'a>,
}

/// The containers that a task may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskContainers<'a> {
    /// The one that root of the host made.
    pub made: WorkloadName<'a>,
    /// Ids of others in that one, whose names anybody may have chosen, outermost first. The task is in any of them or in none.
    pub claimed: &'a [Cow<'a, [u8]>],
}

impl<'a> TaskWorkload<'a> {
    /// Nothing is known.
    pub const UNKNOWN: TaskWorkload<'static> = TaskWorkload {
        unit: WorkloadName::Unknown,
        slice: WorkloadName::Unknown,
        containers: TaskContainers {
            made: WorkloadName::Unknown,
            claimed: &[],
        },
        past: TaskPast::UNKNOWN,
    };

    /// The workload of a task in this cgroup, whose past is not known. If the path is cut, containers may be missing.
    pub fn at(place: &'a Place<'_>, is_cut: bool) -> TaskWorkload<'a> {
        let workload = &place.workload;
        let name = |name: Option<&'a [u8]>, is_proven| match (name, is_proven) {
            (_, false) => WorkloadName::Unknown,
            (None, true) => WorkloadName::Nothing,
            (Some(name), true) => WorkloadName::Is(name),
        };
        TaskWorkload {
            unit: name(workload.unit.as_deref(), place.is_unit_proven),
            slice: name(workload.slice.as_deref(), place.is_unit_proven),
            containers: TaskContainers {
                made: name(place.made.as_deref(), !is_cut),
                claimed: &place.claimed,
            },
            past: TaskPast::UNKNOWN,
        }
    }

    /// Whether unit, slice and container are known from names that only root of the host can have given.
    pub(crate) fn is_proven(&self) -> bool {
        let names = [self.unit, self.slice, self.containers.made];
        !names.contains(&WorkloadName::Unknown) && self.containers.claimed.is_empty()
    }

    /// The values that a field may have.
    pub(crate) fn names(&self, field: Field) -> impl Iterator<Item = WorkloadName<'a>> {
        let (first, claimed) = match field {
            Field::Unit => (self.unit, &[][..]),
            Field::Slice => (self.slice, &[][..]),
            _ => (self.containers.made, self.containers.claimed),
        };
        let claimed = claimed.iter().map(|id| WorkloadName::Is(id));
        std::iter::once(first).chain(claimed)
    }
}

/// The executable of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunExe<'a> {
    /// Its path, as the log shows it.
    pub path: &'a [u8],
    /// The file, when it was executed.
    pub object: ObjectId,
}

/// The past of a task's process, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPast<'a> {
    /// Its labels.
    pub labels: &'a [&'a [u8]],
    /// Whether it has no other labels.
    pub are_all_labels: bool,
    /// The executables that its ancestors ran when they made the next one.
    pub ancestors: &'a [RunExe<'a>],
    /// Whether it has no other ancestors.
    pub are_all_ancestors: bool,
}

impl<'a> TaskPast<'a> {
    /// Nothing is known.
    pub const UNKNOWN: TaskPast<'static> = TaskPast {
        labels: &[],
        are_all_labels: false,
        ancestors: &[],
        are_all_ancestors: false,
    };
}
