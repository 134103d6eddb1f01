//! Ids of the types that programs are attached to. libbpf would search all types of the kernel by name for each program;
//! here they are found in the index of [`kernel_btf`].

use crate::kernel::kernel_btf;
use libbpf_rs::libbpf_sys::{
    bpf_attach_type, bpf_link, bpf_prog_load_opts, bpf_program, bpf_program__attach_trace,
    bpf_program__section_name, libbpf_find_vmlinux_btf_id, libbpf_prog_handler_opts,
    libbpf_register_prog_handler, BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, BPF_TRACE_FEXIT,
    BPF_TRACE_RAW_TP,
};
use std::ffi::{c_int, c_long, CStr, CString};
use std::sync::OnceLock;

/// Sections of programs, and the places in functions, or tracepoints, that they are for.
const SECTIONS: [(&CStr, bpf_attach_type); 3] = [
    (c"fentry+", BPF_TRACE_FENTRY),
    (c"fexit+", BPF_TRACE_FEXIT),
    (c"tp_btf+", BPF_TRACE_RAW_TP),
];

/// Makes libbpf ask here about all programs of [`SECTIONS`] that it opens from now on. Call it before any is opened; a
/// further call does nothing.
///
/// # Errors
/// libbpf's number of the error.
pub(crate) fn register() -> Result<(), c_int> {
    static RESULT: OnceLock<Result<(), c_int>> = OnceLock::new();
    *RESULT.get_or_init(|| SECTIONS.into_iter().try_for_each(register_section))
}

fn register_section((section, kind): (&CStr, bpf_attach_type)) -> Result<(), c_int> {
    let options = libbpf_prog_handler_opts {
        sz: std::mem::size_of::<libbpf_prog_handler_opts>() as _,
        prog_prepare_load_fn: Some(prepare),
        prog_attach_fn: Some(attach),
        ..Default::default()
    };
    let kind_of_program = BPF_PROG_TYPE_TRACING;
    // SAFETY: libbpf copies the text and the options.
    match unsafe { libbpf_register_prog_handler(section.as_ptr(), kind_of_program, kind, &options) }
    {
        error if error < 0 => Err(error),
        _ => Ok(()),
    }
}

/// Sets the type that a program is attached to, unless it has one.
unsafe extern "C" fn prepare(
    program: *mut bpf_program,
    options: *mut bpf_prog_load_opts,
    _cookie: c_long,
) -> c_int {
    // SAFETY: libbpf gives a program, whose section has a name, and its own options, to which nothing else refers.
    let (section, options) = unsafe {
        let section = CStr::from_ptr(bpf_program__section_name(program));
        (section, &mut *options)
    };
    if options.attach_btf_id != 0 {
        return 0;
    }
    let section = section.to_str().unwrap_or_default();
    match section.split_once('/') {
        Some((_, name)) => id_of(name, options.expected_attach_type).map_or_else(
            |error| error,
            |id| {
                options.attach_btf_id = id;
                0
            },
        ),
        None => -libc::EINVAL,
    }
}

/// Id of the function, or of the type of the tracepoint, with this name.
fn id_of(name: &str, kind: bpf_attach_type) -> Result<u32, c_int> {
    let known = kernel_btf::if_read().and_then(|types| match kind {
        BPF_TRACE_RAW_TP => types.tracepoint(name),
        _ => Some(types.functions().get(name)?.btf_id),
    });
    if let Some(id) = known {
        return Ok(id);
    }
    // Tells libbpf's user what is missing.
    let name = CString::new(name).map_err(|_| -libc::EINVAL)?;
    // SAFETY: libbpf only reads the name.
    let found = unsafe { libbpf_find_vmlinux_btf_id(name.as_ptr(), kind) };
    u32::try_from(found).map_err(|_| found)
}

/// Attaches a program, as libbpf does for these sections.
unsafe extern "C" fn attach(
    program: *const bpf_program,
    _cookie: c_long,
    link: *mut *mut bpf_link,
) -> c_int {
    // SAFETY: libbpf gives a loaded program, and a place for its link.
    unsafe {
        *link = bpf_program__attach_trace(program);
        if !(*link).is_null() {
            return 0;
        }
        let error = std::io::Error::last_os_error();
        -error.raw_os_error().unwrap_or(libc::EINVAL)
    }
}
