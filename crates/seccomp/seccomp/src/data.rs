//! The input of a filter: `struct seccomp_data` (linux/seccomp.h).

/// One system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeccompData {
    /// System call number: the bits of the kernel's `int nr`; x32 numbers have bit 30 set.
    pub nr: u32,
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Address of the instruction after the system call.
    pub instruction_pointer: u64,
    /// The six arguments, as in the registers.
    pub args: [u64; 6],
}

impl SeccompData {
    /// The word that `ld [offset]` loads on a little-endian machine; 0 for an offset that no valid
    /// filter uses.
    pub fn load(&self, offset: u32) -> u32 {
        match offset {
            0 => self.nr,
            4 => self.arch,
            8 => self.instruction_pointer as u32,
            12 => (self.instruction_pointer >> 32) as u32,
            16..=60 => {
                let arg = self.args[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) {
                    arg as u32
                } else {
                    (arg >> 32) as u32
                }
            }
            _ => 0,
        }
    }

    /// Sets the word at `offset`.
    pub fn store(&mut self, offset: u32, value: u32) {
        let half = |whole: u64, high: bool| {
            if high {
                whole & 0xffff_ffff | u64::from(value) << 32
            } else {
                whole & !0xffff_ffff | u64::from(value)
            }
        };

        match offset {
            0 => self.nr = value,
            4 => self.arch = value,
            8 | 12 => self.instruction_pointer = half(self.instruction_pointer, offset == 12),
            16..=60 => {
                let arg = &mut self.args[(offset as usize - 16) / 8];
                *arg = half(*arg, !offset.is_multiple_of(8));
            }
            _ => {}
        }
    }
}

/// A 32-bit word of `struct seccomp_data`, by its byte offset; `Display` gives a readable name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(pub u32);

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("nr"),
            4 => f.write_str("arch"),
            8 => f.write_str("ip low"),
            12 => f.write_str("ip high"),
            offset @ 16..=60 => {
                let half = if offset % 8 == 0 { "low" } else { "high" };
                write!(f, "arg{} {half}", (offset - 16) / 8)
            }
            offset => write!(f, "[{offset}]"),
        }
    }
}
