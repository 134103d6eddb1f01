//! Facts about the task of a call that only Tarsier's own fields of rules ask about.

use crate::object_id::ObjectId;
use abi::Field;
use identity::Place;

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
    /// The innermost container.
    pub container: WorkloadName<'a>,
    /// The past of the process.
    pub past: TaskPast<'a>,
}

impl<'a> TaskWorkload<'a> {
    /// Nothing is known.
    pub const UNKNOWN: TaskWorkload<'static> = TaskWorkload {
        unit: WorkloadName::Unknown,
        slice: WorkloadName::Unknown,
        container: WorkloadName::Unknown,
        past: TaskPast::UNKNOWN,
    };

    /// The workload of a task in this cgroup, whose past is not known. If the path is cut, containers may be missing.
    pub fn at(place: &'a Place<'_>, is_cut: bool) -> TaskWorkload<'a> {
        let workload = &place.workload;
        let name = |name: Option<&'a [u8]>| name.map_or(WorkloadName::Nothing, WorkloadName::Is);
        let container = workload.container.as_ref();
        TaskWorkload {
            unit: name(workload.unit.as_deref()),
            slice: name(workload.slice.as_deref()),
            container: match is_cut {
                true => WorkloadName::Unknown,
                false => name(container.map(|container| &*container.id)),
            },
            past: TaskPast::UNKNOWN,
        }
    }

    pub(crate) fn name(&self, field: Field) -> WorkloadName<'a> {
        match field {
            Field::Unit => self.unit,
            Field::Slice => self.slice,
            _ => self.container,
        }
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
