//! libseccomp, loaded when the test runs, driven as runc drives it (libcontainer/seccomp).

use crate::generate::{Entry, Profile};
use seccomp::{Filter, Insn};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};

/// `struct scmp_arg_cmp`.
#[repr(C)]
struct Compare {
    arg: c_uint,
    op: c_int,
    a: u64,
    b: u64,
}

type Context = *mut c_void;

pub struct Library {
    init: extern "C" fn(u32) -> Context,
    add_arch: extern "C" fn(Context, u32) -> c_int,
    add_rule: extern "C" fn(Context, u32, c_int, c_uint, *const Compare) -> c_int,
    resolve: extern "C" fn(*const c_char) -> c_int,
    export: extern "C" fn(Context, c_int) -> c_int,
    pub version: (u32, u32, u32),
}

/// What the library makes of a profile.
pub enum Made {
    Filter(Filter),
    /// It does not take one of the rules.
    Refused,
    /// It had not ended after [`SECONDS_MAX`].
    Late,
}

/// Time that the library has for a profile. Most take less than a hundredth of a second, a few with
/// many ranges more than 20 s beside other work; 2.5.4 never ends with some rules.
pub const SECONDS_MAX: c_uint = 60;

/// A function of the library.
///
/// # Safety
/// `handle` is open, and `F` is the function's type.
unsafe fn function<F>(handle: *mut libc::c_void, name: &CStr) -> F {
    // SAFETY: the handle is open and the name ends with NUL.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?}");
    assert_eq!(size_of::<F>(), size_of_val(&symbol));
    // SAFETY: the caller says that this is the type; the sizes are equal.
    unsafe { std::mem::transmute_copy(&symbol) }
}

impl Library {
    /// Loads the file, or the system's libseccomp; `None` if there is none.
    pub fn open(file: &str) -> Option<Library> {
        let file = CString::new(file).expect("a file name");
        // SAFETY: libseccomp has no constructors with other effects; it stays loaded.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: these are the types that seccomp.h declares.
        unsafe {
            let version: extern "C" fn() -> *const [c_uint; 3] =
                function(handle, c"seccomp_version");
            let [major, minor, micro] = *version();
            Some(Library {
                init: function(handle, c"seccomp_init"),
                add_arch: function(handle, c"seccomp_arch_add"),
                add_rule: function(handle, c"seccomp_rule_add_array"),
                resolve: function(handle, c"seccomp_syscall_resolve_name"),
                export: function(handle, c"seccomp_export_bpf"),
                version: (major, minor, micro),
            })
        }
    }

    /// Whether the library has the name.
    pub fn knows(&self, name: &str) -> bool {
        let name = CString::new(name).expect("a name");
        (self.resolve)(name.as_ptr()) != -1
    }

    /// The filter of a profile, made by a child that a signal ends if it takes too long.
    pub fn filter(&self, profile: &Profile) -> Made {
        // SAFETY: creates a file without a name, which nothing else has.
        let file = unsafe {
            let fd = libc::memfd_create(c"filter".as_ptr(), libc::MFD_CLOEXEC);
            assert!(fd >= 0);
            File::from_raw_fd(fd)
        };

        // SAFETY: the child calls the library, which has no threads, and ends.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            // SAFETY: no handler of this process is for SIGALRM: it ends the child.
            unsafe { libc::alarm(SECONDS_MAX) };
            let status = self.write(profile, &file);
            // SAFETY: ends the child without what the parent's exit does.
            unsafe { libc::_exit(status) };
        }

        let mut status = 0;
        // SAFETY: waits for this function's own child; the status lives long enough.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child, "{}", std::io::Error::last_os_error());
        if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGALRM {
            return Made::Late;
        }
        match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
            Some(WRITTEN) => Made::Filter(program(file)),
            Some(REFUSED) => Made::Refused,
            _ => panic!("libseccomp ended with {status:#x}: {}", profile.json()),
        }
    }

    /// Writes the filter of a profile to `file`; the status that the child ends with.
    fn write(&self, profile: &Profile, file: &File) -> c_int {
        let context = (self.init)(profile.default.0);
        for abi in &profile.abis {
            // SCMP_ARCH_X32 is the architecture of x86-64 without its bit for 64 bits.
            let arch = match abi {
                seccomp::policy::Abi::X32 => 0x4000_003e,
                other => other.audit_arch(),
            };
            (self.add_arch)(context, arch);
        }

        let mut applying = profile.entries.iter().filter(|entry| entry.applies);
        if !applying.all(|entry| entry.verdict == profile.default || self.add(context, entry)) {
            return REFUSED;
        }
        match (self.export)(context, file.as_raw_fd()) {
            0 => WRITTEN,
            _ => NOT_WRITTEN,
        }
    }

    fn add(&self, context: Context, entry: &Entry) -> bool {
        let alternatives = entry.alternatives();
        entry.names.iter().all(|name| {
            let name = CString::new(*name).expect("a name");
            let nr = (self.resolve)(name.as_ptr());
            nr == -1
                || alternatives.iter().all(|conditions| {
                    let compares = conditions.iter().map(|condition| Compare {
                        arg: condition.arg as c_uint,
                        op: condition.op as c_int + 1,
                        a: condition.value,
                        b: condition.second,
                    });
                    let list: Vec<Compare> = compares.collect();
                    let count = list.len() as c_uint;
                    (self.add_rule)(context, entry.verdict.0, nr, count, list.as_ptr()) == 0
                })
        })
    }
}

const WRITTEN: c_int = 0;
const REFUSED: c_int = 1;
const NOT_WRITTEN: c_int = 2;

/// The filter that was written to `file`.
fn program(mut file: File) -> Filter {
    file.rewind().expect("rewinds");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("reads");
    let insns = bytes.chunks_exact(8).map(|insn| {
        let code = u16::from_ne_bytes([insn[0], insn[1]]);
        let k = u32::from_ne_bytes([insn[4], insn[5], insn[6], insn[7]]);
        Insn::jump(code, k, insn[2], insn[3])
    });
    Filter::new(insns.collect::<Vec<_>>()).expect("a filter that the kernel accepts")
}
