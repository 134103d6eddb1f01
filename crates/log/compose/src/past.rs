//! The past of a process: its labels, and the executables of its ancestors.

use plan::{RunExe, TaskPast};

/// The past of a process as rules compare it, as far as it is known.
pub(crate) struct Past<'a> {
    pub(crate) labels: Vec<&'a [u8]>,
    pub(crate) are_all_labels: bool,
    pub(crate) ancestors: Vec<RunExe<'a>>,
    pub(crate) are_all_ancestors: bool,
}

impl Past<'_> {
    pub(crate) fn of_task(&self) -> TaskPast<'_> {
        TaskPast {
            labels: &self.labels,
            are_all_labels: self.are_all_labels,
            ancestors: &self.ancestors,
            are_all_ancestors: self.are_all_ancestors,
        }
    }
}
