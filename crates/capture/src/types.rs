//! The kernel's type information, read once for all that ask for it while an engine is made.

use libbpf_rs::btf::types::{Func, FuncProto, Ptr};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType, TypeId};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

thread_local! {
    static READ: RefCell<Option<Rc<Types>>> = const { RefCell::new(None) };
}

/// Numbers of types that a function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionTypes {
    pub(crate) btf_id: u32,
    /// Of its prototype.
    pub(crate) prototype: u32,
}

/// Types of the running kernel.
pub(crate) struct Types {
    btf: Btf<'static>,
    functions: OnceCell<HashMap<String, FunctionTypes>>,
}

/// Those of the running kernel, which this thread keeps until [`forget`]; `None` where they cannot be read.
pub(crate) fn of_this_kernel() -> Option<Rc<Types>> {
    READ.with_borrow_mut(|read| {
        if read.is_none() {
            let btf = Btf::from_vmlinux().ok()?;
            let functions = OnceCell::new();
            *read = Some(Rc::new(Types { btf, functions }));
        }
        read.clone()
    })
}

/// Gives their memory back, which is some megabytes.
pub(crate) fn forget() {
    READ.with_borrow_mut(|read| *read = None);
}

impl Types {
    pub(crate) fn btf(&self) -> &Btf<'static> {
        &self.btf
    }

    /// Whether this argument of a prototype is a pointer to the structure of that name.
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

    /// All functions by name. Several may have one name; the first counts, which libbpf takes for it as well.
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
