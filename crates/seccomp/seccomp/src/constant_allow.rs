//! Computes which system calls the kernel answers from its bitmap, without running a filter:
//! kernel/seccomp.c, `seccomp_is_const_allow` and `seccomp_cache_prepare_bitmap`.

use crate::insn::code;
use crate::{Chain, Filter, Verdict, Word};
use abi::Arch;
use std::fmt::Write;

/// One of the bitmaps that a kernel keeps per filter: the native or the compat table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheTable {
    /// The architecture of its system calls.
    pub arch: Arch,
    /// Numbers below this one have a bit (`NR_syscalls`). Other numbers, and x32 numbers, never
    /// have one: they run every filter.
    pub size: u32,
    /// Numbers that the kernel always allows, whatever filters return (`seccomp_uprobe_exception`).
    pub exempt: Vec<u32>,
}

impl CacheTable {
    /// The table of the newest kernel whose calls are known here. That of the running kernel may be
    /// smaller; its size can be read from a live bitmap.
    pub fn newest(arch: Arch, native: bool) -> CacheTable {
        let exempt = match arch {
            // uretprobe and uprobe.
            Arch::X86_64 if native => vec![335, 336],
            _ => Vec::new(),
        };
        // Numbers far above the others (arm's private ones) are not in the table.
        let size = abi::syscalls(arch)
            .map(|(nr, _)| nr + 1)
            .filter(|&size| size < 1024)
            .max();
        CacheTable {
            arch,
            size: size.unwrap_or(0),
            exempt,
        }
    }

    /// The native table of `arch` and, if there is one, the table of its 32-bit sibling.
    pub fn newest_pair(arch: Arch) -> Vec<CacheTable> {
        let mut tables = vec![CacheTable::newest(arch, true)];
        tables.extend(arch.compat().map(|arch| CacheTable::newest(arch, false)));
        tables
    }

    /// The name in /proc/PID/seccomp_cache (`SECCOMP_ARCH_NATIVE_NAME`, `…_COMPAT_NAME`).
    pub fn kernel_name(&self) -> &'static str {
        match self.arch {
            Arch::I386 => "ia32",
            arch => arch.name(),
        }
    }
}

/// Reason why the kernel's emulator cannot tell that a call is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The path loads something other than number and architecture.
    Reads(Word),
    /// The path returns something other than exactly ALLOW with data 0.
    Returns(Verdict),
    /// The emulator does not know this instruction, whatever it would compute.
    Code(u16),
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Loss::Reads(word) => write!(f, "depends on {word}"),
            Loss::Returns(verdict) => write!(f, "returns {verdict}"),
            Loss::Code(code) => write!(f, "instruction {code:#04x} is unknown to the emulator"),
        }
    }
}

/// A call whose bit is not set, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostBit {
    /// The system call.
    pub nr: u32,
    /// The filter, counted from the oldest. The kernel ANDs bitmaps as filters are installed, so
    /// this is the oldest filter that clears the bit.
    pub filter: usize,
    /// Index of the instruction in that filter.
    pub at: usize,
    /// Fault of that instruction.
    pub loss: Loss,
}

/// The bitmap of one table, as the newest filter of a chain carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantAllow {
    table: CacheTable,
    lost: Vec<Option<LostBit>>,
}

impl ConstantAllow {
    /// Computes the bitmap. An empty chain has no bitmap in the kernel; here everything is set.
    pub fn of(chain: &Chain, table: &CacheTable) -> ConstantAllow {
        let arch = table.arch.audit_arch();
        let mut lost = vec![None; table.size as usize];
        for (index, filter) in chain.filters().iter().enumerate() {
            for (slot, nr) in lost.iter_mut().zip(0..) {
                // A bit that an older filter has cleared stays clear.
                if slot.is_some() || table.exempt.contains(&nr) {
                    continue;
                }
                *slot = emulate(filter, nr, arch).err().map(|(at, loss)| LostBit {
                    nr,
                    filter: index,
                    at,
                    loss,
                });
            }
        }

        ConstantAllow {
            table: table.clone(),
            lost,
        }
    }

    /// The table.
    pub fn table(&self) -> &CacheTable {
        &self.table
    }

    /// Whether the bit of call `nr` is set.
    pub fn allows(&self, nr: u32) -> bool {
        matches!(self.lost.get(nr as usize), Some(None))
    }

    /// Number of calls in the table whose bit is set.
    pub fn allowed(&self) -> usize {
        self.lost.iter().filter(|slot| slot.is_none()).count()
    }

    /// Reason why the bit of call `nr` is clear; `None` if it is set or does not exist.
    pub fn loss(&self, nr: u32) -> Option<&LostBit> {
        self.lost.get(nr as usize)?.as_ref()
    }

    /// All clear bits, by ascending number.
    pub fn lost(&self) -> impl Iterator<Item = &LostBit> {
        self.lost.iter().flatten()
    }

    /// The lines that /proc/PID/seccomp_cache prints for this table, one per call.
    pub fn kernel_format(&self) -> String {
        let name = self.table.kernel_name();
        let mut text = String::new();
        for nr in 0..self.table.size {
            let state = if self.allows(nr) { "ALLOW" } else { "FILTER" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name} {nr} {state}");
        }
        text
    }
}

/// Follows a filter as the kernel's emulator does, with only number and architecture known.
fn emulate(filter: &Filter, nr: u32, arch: u32) -> Result<(), (usize, Loss)> {
    let mut a = 0u32;
    let mut at = 0;
    loop {
        // A filter was checked: jumps go forward within it, and it ends with a return.
        let insn = filter.insns()[at];
        let here = at;
        at += 1;
        match insn.code {
            code::LD_ABS if insn.k == 0 => a = nr,
            code::LD_ABS if insn.k == 4 => a = arch,
            code::LD_ABS => return Err((here, Loss::Reads(Word(insn.k)))),
            code::RET_K if insn.k == Verdict::ALLOW.0 => return Ok(()),
            code::RET_K => return Err((here, Loss::Returns(Verdict(insn.k)))),
            code::JA => at += insn.k as usize,
            code::JEQ | code::JGT | code::JGE | code::JSET => {
                let taken = match insn.code {
                    code::JEQ => a == insn.k,
                    code::JGT => a > insn.k,
                    code::JGE => a >= insn.k,
                    _ => a & insn.k != 0,
                };
                at += usize::from(if taken { insn.jt } else { insn.jf });
            }
            code::AND => a &= insn.k,
            other => return Err((here, Loss::Code(other))),
        }
    }
}
