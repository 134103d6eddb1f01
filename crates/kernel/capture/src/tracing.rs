//! Programs at the beginnings and ends of kernel functions: loads and attaches them, and tries whether that is allowed.

use crate::kernel::kernel_btf;
use crate::own_programs::own_programs;
use libbpf_rs::libbpf_sys::{
    bpf_attach_type, bpf_insn, bpf_link_create, bpf_link_create_opts, bpf_prog_load,
    bpf_prog_load_opts, BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

const GATE_PROGRAM: &std::ffi::CStr = c"tarsier_gate";

/// Loads a program for a function.
pub(crate) fn load(
    instructions: &[bpf_insn],
    btf_id: u32,
    kind: bpf_attach_type,
) -> Result<OwnedFd, Errno> {
    let mut options = bpf_prog_load_opts {
        sz: std::mem::size_of::<bpf_prog_load_opts>() as _,
        expected_attach_type: kind,
        attach_btf_id: btf_id,
        // SAFETY: integers and pointers, all of which may be zero.
        ..unsafe { std::mem::zeroed() }
    };

    // Announced first: the kernel's record of the load may be read before the id is noted.
    let loading = own_programs().load();
    // SAFETY: the instructions, the names and the options outlive the call, which only reads them.
    let fd = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_TRACING,
            GATE_PROGRAM.as_ptr(),
            c"Dual BSD/GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as _,
            &mut options,
        )
    };

    let program = new_fd(fd)?;
    own_programs().note(program.as_fd());
    drop(loading);
    Ok(program)
}

/// Attaches a program to the function it was loaded for (`target` 0), or to a descriptor. Dropping the result
/// detaches it.
pub(crate) fn link(
    program: BorrowedFd<'_>,
    target: RawFd,
    kind: bpf_attach_type,
) -> Result<OwnedFd, Errno> {
    let options = bpf_link_create_opts {
        sz: std::mem::size_of::<bpf_link_create_opts>() as _,
        ..Default::default()
    };
    // SAFETY: the options outlive the call, which only reads them.
    let fd = unsafe { bpf_link_create(program.as_raw_fd(), target, kind, &options) };
    new_fd(fd)
}

/// Converts the result of libbpf's low-level calls: a descriptor, or a negative errno.
pub(crate) fn new_fd(fd: i32) -> Result<OwnedFd, Errno> {
    if fd < 0 {
        return Err(Errno::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a program can be attached to the end of a kernel function: tried once, on a function that the kernel
/// has for such tests.
pub(crate) fn attaches() -> Result<(), String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    TRIED.get_or_init(try_to_attach).clone()
}

fn try_to_attach() -> Result<(), String> {
    const TRIAL: &str = "bpf_fentry_test1";
    let types = kernel_btf::of_this_kernel().ok_or("the kernel's types cannot be read")?;
    let function = types.functions().get(TRIAL);
    let function = function.ok_or_else(|| format!("the kernel has no function {TRIAL}"))?;
    let program = load(&nothing(), function.btf_id, BPF_TRACE_FEXIT)
        .map_err(|errno| format!("the kernel refuses fexit programs: {errno}"))?;
    link(program.as_fd(), 0, BPF_TRACE_FEXIT)
        .map(drop)
        .map_err(|errno| format!("the kernel does not attach fexit programs: {errno}"))
}

/// Whether a program can be attached to the end of the function with this type, if any can be attached to one: tries it.
pub(crate) fn attaches_to(btf_id: u32) -> bool {
    let program = load(&nothing(), btf_id, BPF_TRACE_FEXIT);
    program.is_ok_and(|program| link(program.as_fd(), 0, BPF_TRACE_FEXIT).is_ok())
}

/// A program that does nothing.
fn nothing() -> [bpf_insn; 2] {
    let mut instructions = [bpf_insn::default(); 2];
    instructions[0].code = 0xb7; // r0 = 0
    instructions[1].code = 0x95; // exit
    instructions
}
