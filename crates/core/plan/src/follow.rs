//! Symbolic links at the end of paths.

/// Stands for an argument that the call does not have.
pub const NONE: u8 = 0xff;

/// Whether a call follows a symbolic link that is the last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Follow {
    /// Whether it does without `flag`.
    default: bool,
    /// Index of the argument that has `flag`, or [`NONE`].
    flags: u8,
    /// The flag by which the call does the opposite.
    flag: u64,
}

impl Follow {
    /// The link itself is meant, always.
    pub const NEVER: Follow = Follow {
        default: false,
        flags: NONE,
        flag: 0,
    };
    /// What the link leads to is meant, always.
    pub const ALWAYS: Follow = Follow {
        default: true,
        ..Follow::NEVER
    };

    /// The link is followed unless argument `flags` has `flag`.
    pub(crate) const fn unless(flags: u8, flag: u64) -> Follow {
        Follow {
            default: true,
            flags,
            flag,
        }
    }

    /// The link is followed only if argument `flags` has `flag`.
    pub(crate) const fn only_if(flags: u8, flag: u64) -> Follow {
        Follow {
            default: false,
            flags,
            flag,
        }
    }

    /// Whether a call with these arguments follows the link.
    pub fn by(self, args: &[u64; 6]) -> bool {
        let flags = args.get(usize::from(self.flags)).copied().unwrap_or(0);
        self.default != (flags & self.flag != 0)
    }

    /// Whether a call follows the link with some arguments.
    pub fn is_possible(self) -> bool {
        self.default || self.flag != 0
    }
}
