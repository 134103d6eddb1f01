//! Reads the kernel's memory, through a program that copies it.

use crate::own_programs::own_programs;
use bpf::shared::PEEK_BYTES;
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use zerocopy::IntoBytes;

/// Something that has the kernel's memory.
pub(crate) trait ReadMemory {
    /// `len` bytes from this address on; `None` if they cannot be read.
    fn bytes(&self, address: u64, len: usize) -> Option<Vec<u8>>;

    /// A number of 4 bytes.
    fn number(&self, address: u64) -> Option<u32> {
        let bytes = self.bytes(address, size_of::<u32>())?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// An address; `None` also for that of nothing.
    fn address(&self, address: u64) -> Option<u64> {
        let bytes = self.bytes(address, size_of::<u64>())?;
        let found = u64::from_ne_bytes(bytes.try_into().ok()?);
        (found != 0).then_some(found)
    }
}

/// The program that copies, loaded.
pub(crate) struct KernelMemory {
    object: Object,
}

impl KernelMemory {
    /// Loads the program; `None` if the kernel refuses it.
    pub(crate) fn open() -> Option<KernelMemory> {
        bpf::load::keep_libbpf_quiet();
        let open = ObjectBuilder::default().open_memory(bpf::PEEK).ok()?;
        let object = own_programs().of(|| open.load()).ok()?;
        Some(KernelMemory { object })
    }

    /// Address of the structure of the calling thread.
    pub(crate) fn current_task(&self) -> Option<u64> {
        let bytes = self.copied("current_task", [0, 0], size_of::<u64>())?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// What a program with these arguments has copied.
    fn copied(&self, program: &str, mut arguments: [u64; 2], len: usize) -> Option<Vec<u8>> {
        let mut programs = self.object.progs_mut();
        let program = programs.find(|found| found.name() == program)?;
        let output = program.test_run(ProgramInput {
            context_in: Some(arguments.as_mut_bytes()),
            ..ProgramInput::default()
        });
        if output.ok()?.return_value != 0 {
            return None;
        }

        let copy = self.object.maps().find(|map| map.name() == ".bss.copy")?;
        let mut bytes = copy.lookup(0u32.as_bytes(), MapFlags::ANY).ok().flatten()?;
        bytes.truncate(len);
        Some(bytes)
    }
}

impl ReadMemory for KernelMemory {
    fn bytes(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        if len > PEEK_BYTES as usize {
            return None;
        }
        self.copied("peek", [address, len as u64], len)
    }
}
