//! The accounts that the daemon keeps and logs: costs of rules and makers, losses, breaches, and its own records.

pub(crate) mod cgroups;
pub(crate) mod daemon_records;
pub(crate) mod failure;
pub(crate) mod integrity;
pub(crate) mod kernel_costs;
pub(crate) mod lookup_warnings;
pub(crate) mod losses;
pub(crate) mod maker_costs;
pub(crate) mod processes;
pub(crate) mod rule_costs;
