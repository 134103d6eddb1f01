//! The compiled BPF programs: an ELF object for each file `programs/NAME.bpf.c`, for any kernel with
//! BTF (CO-RE). The values of their maps are the structs of [`shared`]; [`load`] tells why the kernel refused one.

pub mod load;
pub mod shared;

use std::sync::{Arc, Mutex, PoisonError};

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

/// The programs of both engines, unpacked, until [`forget_tarsier`] is called.
static TARSIER: Mutex<Option<Arc<[u8]>>> = Mutex::new(None);

/// The programs of both engines, which capture system calls and io_uring operations. Compressed by the build script,
/// since they would otherwise be a sixth of the program.
pub fn tarsier() -> Arc<[u8]> {
    let mut kept = TARSIER.lock().unwrap_or_else(PoisonError::into_inner);
    let unpack = || {
        let packed = include_bytes!(concat!(env!("OUT_DIR"), "/tarsier.bpf.o.zst"));
        // The build script has packed them; a test unpacks them.
        zstd::decode_all(packed.as_slice())
            .unwrap_or_default()
            .into()
    };
    Arc::clone(kept.get_or_insert_with(unpack))
}

/// Frees the memory of the unpacked programs: two megabytes, which are needed when programs are loaded.
pub fn forget_tarsier() {
    *TARSIER.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Records which calls a process makes, for `tarsier seccomp learn`.
pub static LEARN: &[u8] = object!("learn");
/// Records which calls filters deny to a process, for `tarsier seccomp run --log`.
pub static DENIED: &[u8] = object!("denied");
/// Reads the bitmaps of seccomp's action cache, by an iterator over tasks.
pub static SECCOMP_ITER: &[u8] = object!("seccomp_iter");
/// Lists the tasks whose calls the kernel audits, by an iterator over tasks.
pub static AUDIT_ITER: &[u8] = object!("audit_iter");
/// Lists symbols of the kernel, by an iterator over them.
pub static KSYM_ITER: &[u8] = object!("ksym_iter");
/// Counts the system calls of all tasks, for `tarsier plan --profile live`.
pub static CALL_COUNTS: &[u8] = object!("call_counts");
/// Reads the kernel's table of io_uring operations.
pub static PEEK: &[u8] = object!("peek");
/// Shows directory entries in the kernel's cache, by which its table of them is found.
pub static DCACHE: &[u8] = object!("dcache");
/// Matching alone, for tests that compare it with the reference evaluator of the plan.
pub static MATCH_TEST: &[u8] = object!("match_test");

#[cfg(test)]
mod tests {
    #[test]
    fn the_packed_programs_are_those_that_were_compiled() {
        assert_eq!(&super::tarsier()[..], object!("tarsier"));
        super::forget_tarsier();
        assert_eq!(&super::tarsier()[..], object!("tarsier"));
    }
}
