//! Audit rules: the text that auditctl reads, the kernel's binary form, and the conversions between them.
//!
//! * [`parse_line`], [`parse_file`], [`parse_args`]: text becomes [`Command`]s.
//! * [`RuleSet`]: commands become the rules in force, as the kernel would have them.
//! * [`load()`]: a file or a directory of rules becomes a [`RuleSet`].
//! * [`list_rules`] and `Display`: rules become the text of `auditctl -l`.
//! * [`to_kernel`], [`from_kernel`]: rules become `struct audit_rule_data` and back.
//!
//! Everything but [`SystemHost`] and [`load()`] is pure: users, groups and paths are looked up
//! through [`Host`].

// There is at most one error per line of rules, for people to read: its size does not matter.
#![allow(clippy::result_large_err)]

mod check;
mod command;
mod error;
mod fault;
mod field;
mod file;
mod host;
mod list;
mod load;
mod merge;
mod model;
mod number;
mod parse;
mod ruleset;
mod suggest;
mod system;
mod wire;
mod words;
mod workload;

pub use check::{check, Refusal};
pub use command::{Command, Dialect, Parsed};
pub use error::{ErrorKind, RuleError, Severity};
pub use file::{parse_file, parse_text, ParsedFile};
pub use host::{Host, PathKind, StaticHost};
pub use list::{list_rule, list_rules, ListStyle};
pub use load::{
    gather, is_own_file, load, read_directory, Gathered, LoadError, Owner, RulesFile, Unread,
    EVERY_KIND, OWN_ONLY, RULES_ONLY,
};
pub use merge::{merge_directory, merge_lines, version_order, MergedLine};
pub use model::{Action, Condition, List, Op, Rule, Source, SyscallSet, Value};
pub use parse::{parse_args, parse_line, parse_line_as, LINE_LEN_MAX};
pub use ruleset::{RuleSet, Settings};
pub use system::SystemHost;
pub use wire::{from_kernel, to_kernel, WireError, FILTER_PREPEND};
pub use workload::{ANY, NONE};
