//! The kernel's type information, read once for all its users while an engine is created.

use crate::kernel::missing_helpers;
use libbpf_rs::btf::types::{Enum, Func, FuncProto, Ptr, Typedef};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType, TypeId};
use libbpf_rs::libbpf_sys::btf__raw_data;
use libbpf_rs::AsRawLibbpf;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;

/// Replaces the kernel's own types, in tests of what a kernel could lack.
static OVERRIDE: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Arguments of a tracepoint that programs read as pointers to structures: index, and name of the structure. The forms of
/// `io_uring_complete` are told apart by the number of its arguments (attach/uring.rs).
fn read_of_tracepoint(name: &str) -> &'static [(usize, &'static str)] {
    match name {
        "sys_enter" | "sys_exit" => &[(0, "pt_regs")],
        "sched_process_fork" => &[(0, "task_struct"), (1, "task_struct")],
        "sched_process_exec" => &[(2, "linux_binprm")],
        "module_load" => &[(0, "module")],
        "cgroup_mkdir" | "cgroup_rmdir" => &[(0, "cgroup")],
        "io_uring_submit_req" | "io_uring_submit_sqe" => &[(0, "io_kiocb")],
        _ => &[],
    }
}

thread_local! {
    static READ: RefCell<Option<Rc<Types>>> = const { RefCell::new(None) };
}

/// Ids of the types of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionTypes {
    pub(crate) btf_id: u32,
    /// Id of its prototype.
    pub(crate) prototype: u32,
}

/// Types of the running kernel.
pub(crate) struct Types {
    btf: Btf<'static>,
    functions: OnceCell<HashMap<String, FunctionTypes>>,
    tracepoints: OnceCell<HashMap<String, u32>>,
}

/// Types of the running kernel, which this thread keeps until [`forget`]; `None` if they cannot be read.
pub(crate) fn of_this_kernel() -> Option<Rc<Types>> {
    READ.with_borrow_mut(|read| {
        if read.is_none() {
            let btf = match overridden() {
                Some(path) => Btf::from_path(path).ok()?,
                None => Btf::from_vmlinux().ok()?,
            };
            *read = Some(Rc::new(Types {
                btf,
                functions: OnceCell::new(),
                tracepoints: OnceCell::new(),
            }));
        }
        read.clone()
    })
}

/// The types, if this thread has read them.
pub(crate) fn if_read() -> Option<Rc<Types>> {
    READ.with_borrow(Option::clone)
}

/// Makes all users of the kernel's types, and libbpf's relocations, use this file for the rest of the process.
/// Affects only what is loaded from then on, so call it first.
#[doc(hidden)]
pub fn override_with(path: &Path) {
    let is_first = OVERRIDE.set(Some(path.to_owned())).is_ok();
    debug_assert!(is_first, "the kernel's types are overridden once");
}

/// The file that replaces the kernel's types.
pub(crate) fn overridden() -> Option<&'static Path> {
    OVERRIDE.get_or_init(missing_helpers::types).as_deref()
}

/// Frees the memory of the types, some megabytes.
pub(crate) fn forget() {
    READ.with_borrow_mut(|read| *read = None);
}

impl Types {
    pub(crate) fn btf(&self) -> &Btf<'static> {
        &self.btf
    }

    /// Whether this argument of a prototype is a pointer to the structure with this name.
    pub(crate) fn argument_is(&self, prototype: u32, place: usize, structure: &str) -> bool {
        let name = || {
            let prototype: FuncProto<'_> = self.btf.type_by_id(TypeId::from(prototype))?;
            let argument = prototype.iter().nth(place)?;
            let argument: BtfType<'_> = self.btf.type_by_id(argument.ty)?;
            let pointer = Ptr::try_from(argument.skip_mods_and_typedefs()).ok()?;
            Some(pointer.referenced_type().skip_mods_and_typedefs().name()? == structure)
        };
        name() == Some(true)
    }

    /// The types as bytes: see [`crate::gaps::btf`].
    pub(crate) fn bytes(&self) -> &[u8] {
        let mut len = 0;
        // SAFETY: libbpf gives its own copy, `len` bytes, which stays as it is as long as the types do: nothing changes them.
        unsafe {
            let first = btf__raw_data(self.btf.as_libbpf_object().as_ptr(), &mut len);
            if first.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(first.cast(), len as usize)
        }
    }

    /// Whether a function exists that serves the call with this name.
    pub(crate) fn has_call(&self, name: &str) -> bool {
        let functions = self.functions();
        ["__x64_sys_", "__arm64_sys_", "__do_sys_"]
            .iter()
            .any(|prefix| functions.contains_key(&format!("{prefix}{name}")))
    }

    /// Whether there is a tracepoint that `tp_btf` programs can be attached to, which passes the structures that they
    /// read. One that passes others counts as missing, so that nothing is misread.
    pub(crate) fn has_tracepoint(&self, name: &str) -> bool {
        self.tracepoint(name).is_some_and(|id| {
            let mut read = read_of_tracepoint(name).iter();
            read.all(|(place, structure)| self.passes(id, *place, structure))
        })
    }

    /// Whether an argument of a tracepoint, by the id of its type, is a pointer to this structure.
    fn passes(&self, tracepoint: u32, place: usize, structure: &str) -> bool {
        let prototype = || {
            let named: Typedef<'_> = self.btf.type_by_id(TypeId::from(tracepoint))?;
            let pointer = Ptr::try_from(named.referenced_type()).ok()?;
            Some(pointer.referenced_type().type_id().into())
        };
        // The first is the data of whoever registers.
        prototype().is_some_and(|prototype| self.argument_is(prototype, place + 1, structure))
    }

    /// Id of the type by which `tp_btf` programs are attached to a tracepoint.
    pub(crate) fn tracepoint(&self, name: &str) -> Option<u32> {
        let all = self.tracepoints.get_or_init(|| {
            let types = self.btf.type_by_kind::<Typedef<'_>>();
            let named = types.filter_map(|ty| {
                let name = ty.name()?.to_str()?.strip_prefix("btf_trace_")?;
                Some((name.to_owned(), ty.type_id().into()))
            });
            named.collect()
        });
        all.get(name).copied()
    }

    /// Whether an enumeration has this enumerator.
    pub(crate) fn has_enumerator(&self, of: &str, name: &str) -> bool {
        let found = self.btf.type_by_name::<Enum<'_>>(of);
        found.is_some_and(|found| {
            found
                .iter()
                .any(|member| member.name.is_some_and(|known| known == name))
        })
    }

    /// Whether a function has a parameter with this name.
    pub(crate) fn has_parameter(&self, function: &str, name: &str) -> bool {
        let prototype = self.functions().get(function).and_then(|known| {
            let id = TypeId::from(known.prototype);
            self.btf.type_by_id::<FuncProto<'_>>(id)
        });
        prototype.is_some_and(|prototype| {
            prototype
                .iter()
                .any(|parameter| parameter.name.is_some_and(|known| known == name))
        })
    }

    /// All functions by name. If several have the same name, the first counts, as for libbpf.
    pub(crate) fn functions(&self) -> &HashMap<String, FunctionTypes> {
        self.functions.get_or_init(|| {
            let mut functions = HashMap::new();
            for function in self.btf.type_by_kind::<Func<'_>>() {
                let Some(name) = function.name().and_then(|name| name.to_str()) else {
                    continue;
                };
                let types = FunctionTypes {
                    btf_id: function.type_id().into(),
                    prototype: function.referenced_type().type_id().into(),
                };
                functions.entry(name.to_owned()).or_insert(types);
            }
            functions
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoints_pass_the_structures_that_programs_read() {
        let Some(types) = of_this_kernel() else {
            return;
        };
        let names = [
            "sys_enter",
            "sys_exit",
            "sched_process_fork",
            "sched_process_exec",
            "cgroup_mkdir",
            "cgroup_rmdir",
        ];
        for name in names {
            assert!(types.has_tracepoint(name), "{name}");
        }
        let id = types.tracepoint("sched_process_exec").expect("it is there");
        assert!(types.passes(id, 0, "task_struct"));
        assert!(!types.passes(id, 1, "linux_binprm"), "a number");
        assert!(!types.passes(id, 2, "task_struct"));
        assert!(!types.passes(id, 3, "linux_binprm"), "there is none");
        assert!(!types.has_tracepoint("no_such_tracepoint"));
    }
}
