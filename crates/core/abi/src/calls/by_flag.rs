//! What a flag of an argument turns on or off.

/// Stands for an argument that the call does not have.
pub const NONE: u8 = 0xff;

/// Something that a call does or not, perhaps by a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByFlag {
    /// Whether the call does so without `flag`.
    default: bool,
    /// Index of the argument that has `flag`, or [`NONE`].
    flags: u8,
    /// The flag by which the call does the opposite.
    flag: u64,
}

impl ByFlag {
    /// Never done.
    pub const NEVER: ByFlag = ByFlag {
        default: false,
        flags: NONE,
        flag: 0,
    };
    /// Always done.
    pub const ALWAYS: ByFlag = ByFlag {
        default: true,
        ..ByFlag::NEVER
    };

    /// Done unless argument `flags` has `flag`.
    pub const fn unless(flags: u8, flag: u64) -> ByFlag {
        ByFlag {
            default: true,
            flags,
            flag,
        }
    }

    /// Done only if argument `flags` has `flag`.
    pub const fn only_if(flags: u8, flag: u64) -> ByFlag {
        ByFlag {
            default: false,
            flags,
            flag,
        }
    }

    /// Whether a call with these arguments does it.
    pub fn by(self, args: &[u64; 6]) -> bool {
        let flags = args.get(usize::from(self.flags)).copied().unwrap_or(0);
        self.default != (flags & self.flag != 0)
    }

    /// Whether a call does it with some arguments.
    pub const fn is_possible(self) -> bool {
        self.default || self.flag != 0
    }
}
