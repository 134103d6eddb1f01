//! The types with which libbpf relocates the programs: of the kernel's only those that the programs ask about, as a file in
//! memory. Ids of types are not the kernel's there, so they are set afterwards.

use crate::error::CaptureError;
use crate::gaps::btf::Btf;
use crate::gaps::reduced::Reduced;
use crate::gaps::relocations::NeededTypes;
use crate::kernel::kernel_btf;
use crate::load::instructions;
use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::OpenObject;
use rustix::fs::{memfd_create, MemfdFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// BPF_LD | BPF_IMM | BPF_DW, and BPF_ALU64 and BPF_ALU with BPF_MOV: the instructions that can set a register to an id.
const SETTERS: [u8; 3] = [0x18, 0xb7, 0xb4];

/// Types for the relocations of one object.
pub(crate) struct KernelTypes {
    file: File,
    types: Reduced,
    /// See [`NeededTypes::ids`].
    ids: BTreeMap<u32, Vec<u32>>,
}

impl KernelTypes {
    /// The types for the programs of the engines; `None` if they cannot be had. libbpf then takes the kernel's, or says
    /// what is wrong with them.
    pub(crate) fn of_programs() -> Option<KernelTypes> {
        KernelTypes::among(kernel_btf::of_this_kernel()?.bytes())
    }

    /// The types for the programs of the engines, from these bytes.
    fn among(all: &[u8]) -> Option<KernelTypes> {
        let asked = NeededTypes::of(&bpf::tarsier()).ok()?;
        let types = Reduced::of(&Btf::parse(all).ok()?, &asked.names);
        let mut file = File::from(memfd_create(c"tarsier_types", MemfdFlags::CLOEXEC).ok()?);
        file.write_all(types.bytes()).ok()?;
        Some(KernelTypes {
            file,
            types,
            ids: asked.ids,
        })
    }

    /// Path by which this process can open the file.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Sets the kernel's ids of types in an object that was relocated with these.
    pub(crate) fn set_kernel_ids(&self, open: &mut OpenObject) -> Result<(), CaptureError> {
        instructions::change_each(open, |code, functions| {
            for function in functions {
                for instruction in self.ids.get(&function.type_id).into_iter().flatten() {
                    let place = function.insn_off as usize + *instruction as usize;
                    if let Some(setter) = code.get_mut(place) {
                        self.set_kernel_id(setter);
                    }
                }
            }
            None
        })
    }

    /// An instruction for a type that the kernel lacks is another one.
    fn set_kernel_id(&self, setter: &mut bpf_insn) {
        if !SETTERS.contains(&setter.code) {
            return;
        }
        let id = u32::try_from(setter.imm).ok();
        if let Some(id) = id.and_then(|id| self.types.kernel_id(id)) {
            setter.imm = id as i32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{dcache, missing_helpers};
    use crate::load::object;

    #[test]
    fn the_table_of_names_is_found_by_these_types_too() {
        let Some(table) = dcache::find(None) else {
            println!("skipped: the table of names: no right to load a program");
            return;
        };
        let types = KernelTypes::of_programs().expect("the kernel's types");
        assert_eq!(dcache::find(Some(&types.path())), Some(table));
    }

    /// The instructions after relocation, by program. Descriptors of maps are left out.
    fn relocated(types: Option<&KernelTypes>) -> Result<Vec<Vec<[i64; 5]>>, CaptureError> {
        let mut open = object::open(types)?;
        instructions::relocate(&mut open)?;
        if let Some(types) = types {
            types.set_kernel_ids(&mut open)?;
        }
        let mut all = Vec::new();
        instructions::change_each(&mut open, |code, _| {
            let told = code.iter().map(|insn| {
                let (to, from) = (insn.dst_reg(), insn.src_reg());
                let is_of_map = insn.code == SETTERS[0] && [1, 2].contains(&from);
                let imm = if is_of_map { 0 } else { insn.imm };
                let numbers = [insn.code, to, from].map(i64::from);
                [
                    numbers[0],
                    numbers[1],
                    numbers[2],
                    insn.off.into(),
                    imm.into(),
                ]
            });
            all.push(told.collect());
            None
        })?;
        Ok(all)
    }

    /// Number of calls of helpers, by the helper's number.
    fn calls_of_helpers(types: &KernelTypes) -> Result<BTreeMap<i32, usize>, CaptureError> {
        const CALL: u8 = 0x85;
        let mut open = object::open(Some(types))?;
        object::prepare(&mut open, Some(types))?;
        let mut calls = BTreeMap::new();
        instructions::change_each(&mut open, |code, _| {
            for insn in code.iter().filter(|i| i.code == CALL && i.src_reg() == 0) {
                *calls.entry(insn.imm).or_default() += 1;
            }
            None
        })?;
        Ok(calls)
    }

    #[test]
    fn programs_call_the_helper_for_loops_that_the_kernel_has() {
        /// Numbers of bpf_loop() and of bpf_for_each_map_elem().
        const LOOPS: [i32; 2] = [181, 164];
        let Some(whole) = kernel_btf::of_this_kernel() else {
            println!("skipped: calls of helpers: the kernel has no BTF");
            return;
        };
        let less = missing_helpers::without(whole.bytes().to_vec(), &["loop"]).expect("types");
        let [whole, less] = [whole.bytes(), &less].map(|bytes| {
            let calls = calls_of_helpers(&KernelTypes::among(bytes).expect("types"));
            calls.map(|calls| LOOPS.map(|helper| calls.get(&helper).copied().unwrap_or(0)))
        });
        let (Ok(whole), Ok(less)) = (whole, less) else {
            println!("skipped: calls of helpers: no right to make maps");
            return;
        };
        // In some functions, the calls that cannot happen stay until the verifier comes to them.
        assert!(whole[0] > 10 * whole[1], "{whole:?}");
        assert!(less[1] > 10 * less[0], "{less:?}");
        println!("calls of the two helpers: {whole:?}, {less:?}");
    }

    #[test]
    fn programs_are_relocated_as_with_all_types_of_the_kernel() {
        let Some(types) = KernelTypes::of_programs() else {
            println!("skipped: relocations: the kernel has no BTF");
            return;
        };
        let expected = match relocated(None) {
            Ok(expected) => expected,
            Err(error) => {
                println!("skipped: relocations: {error}");
                return;
            }
        };
        assert!(!types.ids.is_empty() && !expected.is_empty());
        let found = relocated(Some(&types)).unwrap();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            let different = found.iter().zip(expected).position(|(a, b)| a != b);
            assert_eq!((found.len(), different), (expected.len(), None));
        }
    }
}
