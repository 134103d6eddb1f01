//! Loads the programs: what of them this kernel can run, with its types, and no larger than needed.

pub(crate) mod dead_code;
mod instruction_codes;
pub(crate) mod instructions;
pub(crate) mod kernel_types;
pub(crate) mod map_options;
pub(crate) mod needs;
pub(crate) mod object;
pub(crate) mod options;
mod register_use;
pub(crate) mod rehearsal;

use crate::kernel::kernel_btf;

/// Frees what only loading needs: the kernel's types, as far as this thread has read them, and the unpacked programs.
pub(crate) fn forget() {
    kernel_btf::forget();
    bpf::forget_tarsier();

    // Most of it is on the heap, below what is still in use.
    #[cfg(target_env = "gnu")]
    // SAFETY: it gives back memory that is free.
    unsafe {
        libc::malloc_trim(0)
    };
}
