//! The BPF programs, compiled: an ELF object for each file `programs/NAME.bpf.c`, for any kernel with
//! BTF (CO-RE). Whoever loads one says what its maps hold, in the structs of [`shared`]; [`load`] tells why the kernel
//! refused one.

pub mod load;
pub mod shared;

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

/// Capture of calls and operations of io_uring: both engines.
pub static TARSIER: &[u8] = object!("tarsier");
/// Which calls a process makes: `tarsier seccomp learn`.
pub static LEARN: &[u8] = object!("learn");
/// The bitmaps of seccomp's cache, by an iterator over tasks.
pub static SECCOMP_ITER: &[u8] = object!("seccomp_iter");
/// Reads the kernel's table of io_uring operations.
pub static PEEK: &[u8] = object!("peek");
/// Matching alone, for tests that compare it with the plan's.
pub static MATCH_TEST: &[u8] = object!("match_test");
