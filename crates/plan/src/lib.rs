//! The plan: rules and what a host can do, turned into hooks, match tables, cost and exactness.
//! Pure data, made without I/O; see docs/architecture.md.

mod capabilities;
mod conditions;
mod evaluate;
mod exactness;
mod explain;
mod facts;
mod hooks;
mod plan;
mod shape;
pub mod tables;

pub use capabilities::Capabilities;
pub use conditions::{BitOp, Candidate, Executables, Fact, Test, FACTS};
pub use evaluate::{
    calls_of, decide, decide_names, is_label, lies_below, needs_names, Decision, Entries,
};
pub use exactness::Exactness;
pub use explain::{explain, Explanation};
pub use facts::{
    audit_result, Entry, Facts, Identities, Inode, Name, ObjectId, PathIdentity,
};
pub use hooks::{Hooks, SysExit, PER_SYSCALL_NS, TP_BTF_NS};
pub use plan::{list_rules, records_something, CallPlan, Plan, RuleNote};
pub use shape::{shape, shape_of_name, Kind, NameUse, PathArg, Shape, NONE};
