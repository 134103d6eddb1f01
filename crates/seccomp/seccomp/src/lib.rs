//! Seccomp filters: what they do, what they cost, and proofs of both.
//!
//! A [`Filter`] is a program that the kernel accepts. A [`Chain`] is the list of filters of a
//! thread, of which the strictest [`Verdict`] wins. [`ConstantAllow`] tells which system calls the
//! kernel answers from its bitmap without running a filter. The crate knows nothing about auditing.
//!
//! ```
//! use seccomp::{merge, prove_equal, text, CacheTable, Chain, ConstantAllow, Proof, Weights};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let no_ptrace = text::assemble("ld [0]\n jeq #101, no\n ret #0x7fff0000\n no: ret #0x50001")?;
//! let no_swapon = text::assemble("ld [0]\n jeq #167, no\n ret #0x7fff0000\n no: ret #0")?;
//! let chain = Chain::new([no_ptrace, no_swapon]);
//!
//! let merged = merge(&chain, &Weights::usual(), 4096)?.chain;
//! assert_eq!(merged.filters().len(), 1);
//! assert_eq!(prove_equal(&chain, &merged)?, Proof::Equal);
//!
//! let table = CacheTable::newest(abi::Arch::X86_64, true);
//! let allow = ConstantAllow::of(&merged, &table);
//! assert!(allow.allows(0) && !allow.allows(101));
//! # Ok(())
//! # }
//! ```

// The tests' support module refers to the crate by its name.
#[cfg(test)]
extern crate self as seccomp;

mod chain;
pub mod compile;
mod constant_allow;
mod cost;
mod data;
mod diagram;
mod filter;
mod insn;
pub mod live;
mod merge;
pub mod policy;
pub mod profile;
mod prove;
mod run;
pub mod text;
mod validate;
mod verdict;

pub use chain::{Chain, Decision};
pub use constant_allow::{CacheTable, ConstantAllow, Loss, LostBit};
pub use cost::{filter_worst_path, worst_path, CostModel};
pub use data::{SeccompData, Word};
pub use diagram::TooLarge;
pub use filter::Filter;
pub use insn::{code, Insn};
pub use merge::{merge, optimise, MergeError, Merged, TooLong, Weights};
pub use prove::{differences, prove_equal, uncovered, Arguments, Difference, Proof, NODES_MAX};
pub use run::{Run, Step};
pub use validate::{Fault, Invalid, MAX_INSNS};
pub use verdict::{Action, Verdict};
