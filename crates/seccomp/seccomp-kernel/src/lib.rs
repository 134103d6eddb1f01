//! The running kernel's services for seccomp: it counts the calls of a program, holds bitmaps of always allowed calls,
//! starts programs under a filter, and hands denied calls to a supervisor. Filters themselves are the crate `seccomp`.

pub mod bitmaps;
pub mod calls;
pub mod denials;
mod error;
mod follow;
pub mod launch;
pub mod listener;
mod registers;
pub mod signals;
pub mod tracer;

pub use error::SeccompKernelError;
