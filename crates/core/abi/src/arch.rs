//! Architectures and their `AUDIT_ARCH_*` numbers (linux/audit.h).

/// A system-call table that a task can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// 64-bit x86. The x32 table has the same audit number and is never audited by the kernel.
    X86_64,
    /// 32-bit x86, native or under a 64-bit kernel.
    I386,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit Arm, little endian, EABI.
    Arm,
}

impl Arch {
    /// Every architecture that this crate has tables for.
    pub const EVERY: [Arch; 4] = [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm];

    /// The number in `arch=` of a SYSCALL record and in `-F arch=` (linux/audit.h).
    pub const fn audit_arch(self) -> u32 {
        match self {
            Arch::X86_64 => 0xC000_003E,
            Arch::I386 => 0x4000_0003,
            Arch::Aarch64 => 0xC000_00B7,
            Arch::Arm => 0x4000_0028,
        }
    }

    /// The inverse of [`Arch::audit_arch`]; `None` for an architecture that this crate has no tables for.
    pub fn from_audit_arch(number: u32) -> Option<Arch> {
        Arch::EVERY
            .into_iter()
            .find(|arch| arch.audit_arch() == number)
    }

    /// The architecture that this code was compiled for; x86-64 if this crate has no tables for it, so
    /// that rules can still be read.
    pub const fn native() -> Arch {
        if cfg!(target_arch = "x86") {
            Arch::I386
        } else if cfg!(target_arch = "aarch64") {
            Arch::Aarch64
        } else if cfg!(target_arch = "arm") {
            Arch::Arm
        } else {
            Arch::X86_64
        }
    }

    /// The 32-bit architecture whose programs a 64-bit kernel also runs.
    pub const fn compat(self) -> Option<Arch> {
        match self {
            Arch::X86_64 => Some(Arch::I386),
            Arch::Aarch64 => Some(Arch::Arm),
            Arch::I386 | Arch::Arm => None,
        }
    }

    /// Whether `long` has 64 bits (`__AUDIT_ARCH_64BIT`).
    pub const fn is_64bit(self) -> bool {
        self.audit_arch() & 0x8000_0000 != 0
    }

    /// The name that `ausearch -i` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::I386 => "i386",
            Arch::Aarch64 => "aarch64",
            Arch::Arm => "arm",
        }
    }

    /// The architecture of a machine name as `-F arch=` takes it (`uname -m` spellings, any case).
    /// For `b32` and `b64`, which depend on the host, use [`Arch::from_bits`].
    pub fn from_name(name: &str) -> Option<Arch> {
        match name.to_ascii_lowercase().as_str() {
            "x86_64" => Some(Arch::X86_64),
            "i386" | "i486" | "i586" | "i686" => Some(Arch::I386),
            "aarch64" | "armv8l" => Some(Arch::Aarch64),
            "arm" | "armeb" | "armv5tejl" | "armv5tel" | "armv6l" | "armv7l" => Some(Arch::Arm),
            _ => None,
        }
    }

    /// Every name that [`Arch::from_name`] takes.
    pub const NAMES: [&'static str; 13] = [
        "x86_64",
        "i386",
        "i486",
        "i586",
        "i686",
        "aarch64",
        "armv8l",
        "arm",
        "armeb",
        "armv5tejl",
        "armv5tel",
        "armv6l",
        "armv7l",
    ];

    /// The architecture that `b64` or `b32` means on a host of architecture `host`; `None` for any
    /// other text, and if the host cannot run programs of that width.
    pub fn from_bits(text: &str, host: Arch) -> Option<Arch> {
        match text {
            "b64" => host.is_64bit().then_some(host),
            "b32" if host.is_64bit() => host.compat(),
            "b32" => Some(host),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_number_leads_back_to_its_architecture() {
        for arch in Arch::EVERY {
            assert_eq!(Arch::from_name(arch.name()), Some(arch));
            assert_eq!(Arch::from_audit_arch(arch.audit_arch()), Some(arch));
        }
        for name in Arch::NAMES {
            assert!(Arch::from_name(name).is_some(), "{name}");
        }
        assert_eq!(Arch::from_audit_arch(0x8000_0016), None);
    }

    #[test]
    fn widths_depend_on_the_host() {
        assert_eq!(Arch::from_bits("b32", Arch::X86_64), Some(Arch::I386));
        assert_eq!(Arch::from_bits("b64", Arch::Aarch64), Some(Arch::Aarch64));
        assert_eq!(Arch::from_bits("b64", Arch::I386), None);
        assert_eq!(Arch::from_bits("x86_64", Arch::X86_64), None);
    }
}
