//! The start of the daemon: from the command line, auditd.conf and rules files to a recording with everything armed.

pub mod choice;
pub(crate) mod confinement;
pub(crate) mod good_rules;
pub mod host;
pub(crate) mod instance;
pub(crate) mod launcher;
pub(crate) mod left_out;
pub(crate) mod lookups;
pub mod rule_files;
pub(crate) mod rule_place;
pub(crate) mod rules_at_start;
pub(crate) mod settings;
pub(crate) mod settings_at_start;
pub(crate) mod setup;
