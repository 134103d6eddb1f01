//! Tables made by `cargo xtask tables`. Do not edit.

pub(crate) mod aarch64;
pub(crate) mod arm;
pub(crate) mod errno;
pub(crate) mod i386;
pub(crate) mod ppc64;
pub(crate) mod records;
pub(crate) mod s390x;
pub(crate) mod uring;
pub(crate) mod x86_64;
