//! The program on the running kernel: what a user who types the commands sees.
//!
//! One test at a time, each in a directory of its own, and the machine has to be afterwards as it
//! was before ([`machine`]). Needs root; without it each test says `skipped:`.

mod calls;
mod daemon;
mod log;
mod machine;
mod numbered;
mod programs;

mod at_rest;
mod chaos;
mod endurance;
mod errors;
mod files;
mod kernel_records;
mod lifecycle;
mod loss;
mod nice;
mod plugins;
mod readers;
mod reload;
mod rings;
mod seccomp;
mod selection;
mod survival;
mod titles;
mod workload;
