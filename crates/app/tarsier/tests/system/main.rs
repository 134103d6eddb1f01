//! The program on the running kernel: what users see who type the commands.
//!
//! Tests run one at a time, each in its own directory, and must leave the machine as it was before
//! ([`machine`]). They need root; without it each prints `skipped:`.

mod calls;
mod daemon;
mod log;
mod machine;
mod numbered;
mod programs;

mod ancestors;
mod arguments;
mod at_rest;
mod auditctl;
mod boot;
mod boot_settings;
mod bounded;
mod chaos;
mod confinement;
mod endurance;
mod errors;
#[cfg(target_arch = "x86_64")]
mod evade;
#[cfg(target_arch = "x86_64")]
mod every_call;
mod files;
mod flips;
mod hashes;
mod hunt;
mod identity;
mod index;
mod integrity;
mod kernel_records;
mod lifecycle;
mod lookups;
mod loss;
mod makers;
mod memory;
mod nice;
mod objects;
mod past_rules;
mod plugins;
mod rates;
mod readers;
mod reload;
mod rings;
mod seccomp;
mod selection;
mod sent;
mod service;
mod survival;
mod targets;
mod titles;
mod touched;
mod unsure;
mod upgrade;
mod workload;
mod workload_rules;
