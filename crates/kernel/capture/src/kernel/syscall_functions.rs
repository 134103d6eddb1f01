//! The kernel's functions for system calls, to whose ends programs can be attached.
//!
//! The kernel's symbols (`/proc/kallsyms`) show which function serves a call, and its type information shows
//! whether the function can be hooked. Calls without arguments have several names for one function, of which the
//! type information contains one. 32-bit calls may have two functions, of which the kernel uses one: both are
//! hooked. On x86 the other function is then never called; on arm64 it serves the 64-bit call of the same name.

use crate::kernel::entries;
use crate::kernel::kallsyms::{self, Symbol};
use crate::kernel::kernel_btf::{self, Types};
use crate::kernel::symbol_names::{is_call_function, X32_PREFIX};
use crate::kernel::tracefs;
use crate::tracing;
use abi::Arch;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType, TypeId};
use plan::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::sync::OnceLock;

/// Programs that share a body must be attached to functions with the same prototype, and there are two: in
/// functions that do not use their argument, it has a different name.
pub(crate) const PROTOTYPES: usize = 2;

/// A function that can be hooked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelFunction {
    pub(crate) name: String,
    pub(crate) btf_id: u32,
    /// Index of its prototype among the [`PROTOTYPES`]; 0 for functions of io_uring operations, which have only
    /// one.
    pub(crate) prototype: usize,
    /// 0 if the kernel does not reveal it.
    pub(crate) address: u64,
}

/// Functions that can be hooked, by the calls that they serve.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    pub(crate) all: Vec<KernelFunction>,
    /// Indices into `all`.
    calls: BTreeMap<(Entry, u32), Vec<usize>>,
    /// Indices of the functions that answer numbers without a call, by entry.
    absent: BTreeMap<Entry, Vec<usize>>,
}

/// The functions of the running kernel; `None` if symbols or types cannot be read.
pub(crate) fn of_this_kernel() -> Option<&'static Functions> {
    static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
    FOUND.get_or_init(Functions::find).as_ref()
}

impl Functions {
    fn find() -> Option<Functions> {
        let types = kernel_btf::of_this_kernel()?;
        let symbols = CallSymbols::parse(kallsyms::of_this_kernel().ok()?).ok()?;
        let typed = typed_functions(&types);

        let mut functions = Functions::default();
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let mut places = |all: &mut Vec<KernelFunction>, names: Vec<&'_ str>| -> Vec<usize> {
            let place = |name| {
                let (name, function) = typed.get_key_value(name)?;
                Some(*by_name.entry(name).or_insert_with(|| {
                    let address = symbols.addresses.get(name).copied().unwrap_or(0);
                    all.push(KernelFunction {
                        address,
                        ..function.clone()
                    });
                    all.len() - 1
                }))
            };
            names.into_iter().filter_map(place).collect()
        };

        let has_x32 = entries::x32_calls();
        for entry in [Entry::Native, Entry::Compat] {
            let Some(arch) = arch_of(entry) else {
                continue;
            };
            for (nr, name) in abi::syscalls(arch) {
                if let Some(mut names) = symbols.functions(arch, name, &typed) {
                    if entry == Entry::Native && has_x32 && abi::x32_twins().any(|twin| twin == nr)
                    {
                        names.extend(symbols.x32_functions(arch, name, &typed));
                    }

                    let places = places(&mut functions.all, names);
                    functions.calls.insert((entry, nr), places);
                }
            }

            let places = places(&mut functions.all, symbols.answering(arch, &typed));
            functions.absent.insert(entry, places);
        }
        Some(functions)
    }

    /// Indices of the functions that serve a call, or that answer it if the kernel does not have the call. Empty
    /// if not all functions that serve it can be hooked.
    pub(crate) fn of(&self, call: (Entry, u32)) -> &[usize] {
        let is_unhooked = || {
            let arch = arch_of(call.0);
            arch.is_some_and(|arch| abi::syscall_name(arch, call.1).is_some())
        };
        match self.calls.get(&call) {
            Some(places) if !places.is_empty() => places,
            None if is_unhooked() => &[],
            _ if self.is_answer_traced() => self.absent.get(&call.0).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// Whether programs can be attached to the function that answers numbers without a call; on some kernels it
    /// belongs to the entry code. This is tried: the kernel's list of functions takes long to read.
    fn is_answer_traced(&self) -> bool {
        static IS_TRACED: OnceLock<bool> = OnceLock::new();
        let Some(answer) = self.absent.values().flatten().next() else {
            return false;
        };
        *IS_TRACED.get_or_init(|| match tracing::attaches() {
            Ok(()) => tracing::attaches_to(self.all[*answer].btf_id),
            Err(_) => tracefs::has_traced(&format!("_sys_{}", abi::NOT_IMPLEMENTED)),
        })
    }

    /// A function with this prototype, if there is one.
    pub(crate) fn of_prototype(&self, prototype: usize) -> Option<&KernelFunction> {
        self.all.iter().find(|f| f.prototype == prototype)
    }

    /// Calls of this host that have a function which cannot be hooked.
    pub(crate) fn unhooked(&self) -> BTreeSet<(Entry, u32)> {
        [Entry::Native, Entry::Compat]
            .into_iter()
            .filter_map(|entry| arch_of(entry).map(|arch| (entry, arch)))
            .flat_map(|(entry, arch)| abi::syscalls(arch).map(move |(nr, _)| (entry, nr)))
            .filter(|call| !self.calls.contains_key(call))
            .collect()
    }
}

fn arch_of(entry: Entry) -> Option<Arch> {
    match entry {
        Entry::Native => Some(Arch::native()),
        Entry::Compat => Arch::native().compat(),
        Entry::Uring => None,
    }
}

/// Functions whose only argument is `struct pt_regs *`, with the two most frequent prototypes. A name may occur
/// twice: for a call that the kernel can be built without, there is the real function and the one that answers
/// without it.
fn typed_functions(types: &Types) -> HashMap<String, KernelFunction> {
    let mut prototypes: BTreeMap<u32, usize> = BTreeMap::new();
    let mut other: BTreeSet<u32> = BTreeSet::new();
    let calls = types.functions().iter();
    let mut found: Vec<_> = calls.filter(|(name, _)| is_call_function(name)).collect();
    found.retain(|(_, function)| {
        let prototype = function.prototype;
        if let Some(count) = prototypes.get_mut(&prototype) {
            *count += 1;
            return true;
        }

        let takes_registers =
            !other.contains(&prototype) && takes_registers(types.btf(), prototype);
        if takes_registers {
            prototypes.insert(prototype, 1);
        } else {
            other.insert(prototype);
        }
        takes_registers
    });

    // Program arrays hold programs of one prototype each, and there are two arrays.
    let mut usual: Vec<(usize, u32)> = prototypes.into_iter().map(|(id, n)| (n, id)).collect();
    usual.sort_unstable_by(|left, right| right.cmp(left));
    usual.truncate(PROTOTYPES);

    found
        .into_iter()
        .filter_map(|(name, types)| {
            let prototype = usual.iter().position(|(_, id)| *id == types.prototype)?;
            let function = KernelFunction {
                name: name.clone(),
                btf_id: types.btf_id,
                prototype,
                address: 0,
            };
            Some((name.clone(), function))
        })
        .collect()
}

fn takes_registers(btf: &Btf<'_>, prototype: u32) -> bool {
    let is_registers = || {
        let prototype: FuncProto<'_> = btf.type_by_id(TypeId::from(prototype))?;
        let mut arguments = prototype.iter();
        let argument = arguments.next()?;
        if arguments.next().is_some() {
            return None;
        }

        let argument: BtfType<'_> = btf.type_by_id(argument.ty)?;
        let pointer = Ptr::try_from(argument.skip_mods_and_typedefs()).ok()?;
        let target = pointer.referenced_type().skip_mods_and_typedefs();
        let registers = Struct::try_from(target).ok()?;
        (registers.name()? == "pt_regs").then_some(())
    };
    is_registers().is_some()
}

/// Indices, in the kernel's functions, of those that serve these calls.
pub(crate) fn places_of(calls: &[(Entry, u32)]) -> BTreeSet<usize> {
    let functions = of_this_kernel();
    let of = |call: &(Entry, u32)| functions.map_or(&[][..], |functions| functions.of(*call));
    calls.iter().flat_map(of).copied().collect()
}

/// Prefixes of the symbols of an architecture's system calls.
fn prefixes(arch: Arch) -> &'static [&'static str] {
    match arch {
        Arch::X86_64 => &["__x64_sys_"],
        Arch::I386 => &["__ia32_compat_sys_", "__ia32_sys_"],
        Arch::Aarch64 => &["__arm64_sys_"],
        Arch::Arm => &["__arm64_compat_sys_", "__arm64_sys_"],
    }
}

/// CallSymbols of the functions of system calls.
struct CallSymbols {
    /// Addresses by name; 0 if the kernel does not reveal them (`kernel.kptr_restrict`).
    addresses: HashMap<String, u64>,
    by_address: HashMap<u64, Vec<String>>,
}

impl CallSymbols {
    fn parse(text: impl BufRead) -> std::io::Result<CallSymbols> {
        let mut symbols = CallSymbols {
            addresses: HashMap::new(),
            by_address: HashMap::new(),
        };
        kallsyms::each(text, |Symbol { address, name, .. }| {
            if !is_call_function(name) {
                return;
            }
            symbols.addresses.insert(name.to_owned(), address);
            if address != 0 {
                let names = symbols.by_address.entry(address).or_default();
                names.push(name.to_owned());
            }
        })?;
        Ok(symbols)
    }

    /// Names, as in the type information, of all functions that may serve the call; empty if the kernel does not
    /// have the call. `None` if the type information lacks one of them.
    fn functions<'a>(
        &self,
        arch: Arch,
        call: &str,
        typed: &'a HashMap<String, KernelFunction>,
    ) -> Option<Vec<&'a str>> {
        let mut names: Vec<&str> = Vec::new();
        let points = abi::entry_points(arch, call);
        for point in points
            .iter()
            .filter(|point| **point != abi::NOT_IMPLEMENTED)
        {
            for prefix in prefixes(arch) {
                if let Some(&address) = self.addresses.get(&format!("{prefix}{point}")) {
                    names.push(self.typed_name(prefix, point, address, typed)?);
                }
            }
        }
        if names.is_empty() {
            // The kernel was built without the call, or is older than it.
            let point = abi::NOT_IMPLEMENTED;
            let is_absent =
                |prefix: &&str| self.addresses.contains_key(&format!("{prefix}{point}"));
            return prefixes(arch).iter().any(is_absent).then_some(names);
        }
        Some(names)
    }

    /// Names, as in the type information, of the functions that only x32 makes the call by.
    fn x32_functions<'a>(
        &self,
        arch: Arch,
        call: &str,
        typed: &'a HashMap<String, KernelFunction>,
    ) -> Vec<&'a str> {
        let points = abi::entry_points(arch, call).into_iter();
        let names = points.filter_map(|point| {
            let address = *self.addresses.get(&format!("{X32_PREFIX}{point}"))?;
            self.typed_name(X32_PREFIX, point, address, typed)
        });
        names.collect()
    }

    /// Names, as in the type information, of the functions that answer numbers without a call.
    fn answering<'a>(
        &self,
        arch: Arch,
        typed: &'a HashMap<String, KernelFunction>,
    ) -> Vec<&'a str> {
        let point = abi::NOT_IMPLEMENTED;
        let names = prefixes(arch).iter().filter_map(|prefix| {
            let address = *self.addresses.get(&format!("{prefix}{point}"))?;
            self.typed_name(prefix, point, address, typed)
        });
        names.collect()
    }

    fn typed_name<'a>(
        &self,
        prefix: &str,
        point: &str,
        address: u64,
        typed: &'a HashMap<String, KernelFunction>,
    ) -> Option<&'a str> {
        let own = format!("{prefix}{point}");
        let without_arguments = if prefix.contains("compat") {
            format!("__do_compat_sys_{point}")
        } else {
            format!("__do_sys_{point}")
        };
        let guessed = [own, without_arguments];
        let names = self
            .by_address
            .get(&address)
            .map_or(&guessed[..], Vec::as_slice);
        let known = names.iter().find_map(|name| typed.get_key_value(name));
        known.map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(names: &[&str]) -> HashMap<String, KernelFunction> {
        let function = |name: &&str| KernelFunction {
            name: (*name).to_owned(),
            btf_id: 1,
            prototype: 0,
            address: 0,
        };
        names
            .iter()
            .map(|name| ((*name).to_owned(), function(name)))
            .collect()
    }

    const KERNEL: &str = "\
ffffffff81000010 T __x64_sys_mkdir
ffffffff81000020 T __x64_sys_getppid
ffffffff81000020 T __ia32_sys_getppid
ffffffff81000020 t __do_sys_getppid
ffffffff81000030 T __ia32_compat_sys_open
ffffffff81000040 T __ia32_sys_open
ffffffff81000050 T __x64_sys_newstat
ffffffff81000060 T __x64_sys_ni_syscall
ffffffff81000070 t __x64_sys_mkdir\t[module]
ffffffff81000080 T __x64_sys_rmdir
";

    #[test]
    fn a_call_is_served_by_the_function_at_the_address_of_its_symbol() {
        let symbols = CallSymbols::parse(KERNEL.as_bytes()).unwrap();
        let typed = typed(&[
            "__x64_sys_mkdir",
            "__do_sys_getppid",
            "__ia32_compat_sys_open",
            "__ia32_sys_open",
            "__x64_sys_newstat",
            "__x64_sys_ni_syscall",
        ]);
        let of = |arch, call| symbols.functions(arch, call, &typed);
        assert_eq!(of(Arch::X86_64, "mkdir").unwrap(), ["__x64_sys_mkdir"]);
        assert_eq!(of(Arch::X86_64, "stat").unwrap(), ["__x64_sys_newstat"]);
        assert_eq!(of(Arch::X86_64, "getppid").unwrap(), ["__do_sys_getppid"]);
        assert_eq!(of(Arch::I386, "getppid").unwrap(), ["__do_sys_getppid"]);
        let both = ["__ia32_compat_sys_open", "__ia32_sys_open"];
        assert_eq!(of(Arch::I386, "open").unwrap(), both);
        // The kernel does not have this call: the function for all such numbers answers it.
        assert!(of(Arch::X86_64, "create_module").unwrap().is_empty());
        let answering = symbols.answering(Arch::X86_64, &typed);
        assert_eq!(answering, ["__x64_sys_ni_syscall"]);
        assert!(symbols.answering(Arch::I386, &typed).is_empty());
        // The call exists, but cannot be hooked.
        assert_eq!(of(Arch::X86_64, "rmdir"), None);
    }

    const ARM64_KERNEL: &str = "\
ffff800080000010 T __arm64_sys_openat
ffff800080000020 T __arm64_compat_sys_openat
ffff800080000030 T __arm64_sys_mkdirat
ffff800080000040 T __arm64_compat_sys_aarch32_mmap2
ffff800080000050 T __arm64_sys_clock_settime
ffff800080000060 T __arm64_sys_clock_settime32
ffff800080000070 T __arm64_sys_umount
ffff800080000080 T __arm64_sys_ni_syscall
";

    #[test]
    fn calls_of_32_bit_programs_on_arm64_have_functions_of_their_own_or_share_them() {
        let symbols = CallSymbols::parse(ARM64_KERNEL.as_bytes()).unwrap();
        let names = ARM64_KERNEL
            .lines()
            .filter_map(|line| line.split(' ').nth(2));
        let typed = typed(&names.collect::<Vec<_>>());
        let of = |arch, call| symbols.functions(arch, call, &typed).unwrap();
        assert_eq!(of(Arch::Aarch64, "openat"), ["__arm64_sys_openat"]);
        let both = ["__arm64_compat_sys_openat", "__arm64_sys_openat"];
        assert_eq!(of(Arch::Arm, "openat"), both);
        assert_eq!(of(Arch::Arm, "mkdirat"), ["__arm64_sys_mkdirat"]);
        let mmap2 = ["__arm64_compat_sys_aarch32_mmap2"];
        assert_eq!(of(Arch::Arm, "mmap2"), mmap2);
        let settime = |call| of(Arch::Arm, call)[0];
        assert_eq!(settime("clock_settime"), "__arm64_sys_clock_settime32");
        assert_eq!(settime("clock_settime64"), "__arm64_sys_clock_settime");
        assert_eq!(of(Arch::Arm, "umount2"), ["__arm64_sys_umount"]);
        assert!(of(Arch::Arm, "umount").is_empty());
    }

    #[test]
    fn without_addresses_a_function_goes_by_its_usual_names() {
        let hidden: String = KERNEL
            .lines()
            .map(|line| format!("0000000000000000{}\n", &line[16..]))
            .collect();
        let symbols = CallSymbols::parse(hidden.as_bytes()).unwrap();
        let typed = typed(&["__do_sys_getppid"]);
        let of = |call| symbols.functions(Arch::X86_64, call, &typed);
        assert_eq!(of("getppid").unwrap(), ["__do_sys_getppid"]);
        assert_eq!(of("mkdir"), None);
    }
}
