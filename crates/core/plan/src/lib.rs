//! The plan for a rule set on a host: hooks, match tables, cost and exactness. Pure data, made
//! without I/O; see docs/internals/architecture.md.

mod call_plan;
mod capabilities;
mod conditions;
mod decided;
mod entries;
mod evaluate;
mod exactness;
mod executables;
mod explain;
mod explain_call;
mod facts;
mod gate;
mod hooks;
mod kernel;
mod labelling;
mod lint;
mod mark_key;
mod marks;
mod object_id;
mod objects;
mod optimise;
mod past;
mod plan;
mod price;
mod records;
mod shadow;
mod subject;
pub mod tables;
mod task;
#[cfg(test)]
mod test_rule;
pub mod uring;
mod workload;

pub use abi::{
    shape, ByFlag, CallNames, NameUse, ObjectClass, PathArg, Shape, ShapeKind, NONE, PARENT_LOOKUP,
};
pub use call_plan::CallPlan;
pub use capabilities::{Capabilities, Form, Gap, IoUring, Preemption};
pub use conditions::{BitOp, Candidate, Fact, Test, FACTS};
pub use decided::DecidedIn;
pub use entries::{calls_of, Entries};
pub use evaluate::{
    audits_task, decide, decide_names, decide_operation, is_label, is_task_field, leaves_out,
    needs_names, Decision,
};
pub use exactness::{Exactness, TRACEPOINT_NOTES, TRAMPOLINE_NOTES};
pub use executables::Executables;
pub use explain::{explain, Explanation, RuleExplanation, Totals};
pub use explain_call::{explain_call, CallExplanation, CandidateExplanation, LookupExplanation};
pub use facts::{
    lies_below, Entry, Executable, Facts, Identities, Inode, MountBelow, Name, ObjectId,
    PathIdentity, Proven,
};
pub use gate::{Gate, GateExplanation};
pub use hooks::{Hooks, SysExit, FUNCTIONS_MAX, PER_SYSCALL_MAX, PER_SYSCALL_NS, TP_BTF_NS};
pub use kernel::{explain_kernel, KERNEL_NOTES};
pub use labelling::with_labels;
pub use lint::{lint, lint_settings, Finding, Lint};
pub use marks::{value as mark_value, Hit, Marks, Seen};
pub use optimise::{
    lead_with_never, optimise, Cost, Effort, Optimised, Proof, Saving, Step, StepKind,
};
pub use past::{
    asks_past, PastNames, ProcessClass, ANCESTORS_ARE_OPEN, LABELS_ARE_OPEN, OWN_IS_OPEN,
    PAST_NAMES_MAX,
};
pub use plan::{records_something, Plan, Platform, RuleNote};
pub use price::{predict, CallPrice, CallRates, Prediction, EVENT_NS, NULL_CALL_NS};
pub use records::{excluded, user_drops, RecordFilter, Sender};
pub use subject::{SecurityModule, Subject};
pub use task::{RunExe, TaskContainers, TaskPast, TaskWorkload, WorkloadName};
pub use workload::{
    asks_cgroup, asks_own, WorkloadClass, WorkloadNames, IS_DELEGATED, IS_LXC, IS_MACHINE,
    IS_SETTLED, NAMES_MAX,
};
