//! The instructions of an object's programs, between libbpf's relocations and the kernel.

use crate::error::CaptureError;
use bpf::load::refused;
use libbpf_rs::libbpf_sys::{
    bpf_func_info, bpf_insn, bpf_object__next_program, bpf_object__prepare, bpf_program,
    bpf_program__autoload, bpf_program__func_info, bpf_program__func_info_cnt,
    bpf_program__insn_cnt, bpf_program__insns, bpf_program__set_insns,
};
use libbpf_rs::{AsRawLibbpf, OpenObject};

/// Makes the maps and relocations of an object.
pub(crate) fn relocate(open: &mut OpenObject) -> Result<(), CaptureError> {
    // SAFETY: the object lives as long as `open`, which is borrowed exclusively.
    result(unsafe { bpf_object__prepare(open.as_libbpf_object().as_ptr()) })
}

/// Calls a function for each program of a relocated object that is to be loaded, with its instructions and with the
/// places of its functions. If it returns other instructions, the program has those from then on.
pub(crate) fn change_each(
    open: &mut OpenObject,
    mut change: impl FnMut(&mut [bpf_insn], &mut [bpf_func_info]) -> Option<Vec<bpf_insn>>,
) -> Result<(), CaptureError> {
    let object = open.as_libbpf_object().as_ptr();
    let mut program = std::ptr::null_mut();
    loop {
        // SAFETY: the object lives as long as `open`, which is borrowed exclusively, and `program` is null or one of
        // its programs.
        program = unsafe { bpf_object__next_program(object, program) };
        if program.is_null() {
            return Ok(());
        }
        // SAFETY: the program is the object's, which is relocated and not loaded.
        result(unsafe { change_one(program, &mut change) })?;
    }
}

/// Returns libbpf's result.
///
/// # Safety
/// The program is one of an object that was relocated, and is not loaded yet.
unsafe fn change_one(
    program: *mut bpf_program,
    change: &mut impl FnMut(&mut [bpf_insn], &mut [bpf_func_info]) -> Option<Vec<bpf_insn>>,
) -> i32 {
    // SAFETY: the caller vouches for the program; libbpf has allocated as many instructions and functions as it says,
    // and nothing else refers to them meanwhile.
    unsafe {
        let (code, functions) = (bpf_program__insns(program), bpf_program__func_info(program));
        if !bpf_program__autoload(program) || code.is_null() || functions.is_null() {
            return 0;
        }
        let len = bpf_program__insn_cnt(program) as usize;
        let code = std::slice::from_raw_parts_mut(code.cast_mut(), len);
        let len = bpf_program__func_info_cnt(program) as usize;
        let functions = std::slice::from_raw_parts_mut(functions, len);
        match change(code, functions) {
            Some(mut new) => bpf_program__set_insns(program, new.as_mut_ptr(), new.len() as _),
            None => 0,
        }
    }
}

fn result(code: i32) -> Result<(), CaptureError> {
    match code {
        0 => Ok(()),
        _ => {
            let error = libbpf_rs::Error::from_raw_os_error(-code);
            Err(refused("BPF object, with this kernel's types")(error).into())
        }
    }
}
