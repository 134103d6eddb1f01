//! Audit rules: text as auditctl takes it, the kernel's bytes, and what is between them.

mod model;

pub use model::{Action, Condition, List, Op, Rule, Source, SyscallSet, Value};
