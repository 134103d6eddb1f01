//! `struct audit_rule_data` (linux/audit.h): a rule as the kernel and user space exchange it.
//! 32-bit words in the machine's byte order, then the texts without separators.

use abi::Field;

use crate::{Action, Condition, List, Op, Rule, Source, SyscallSet, Value};

/// `AUDIT_FILTER_PREPEND`: set in the first word of a rule that is to go before all others.
/// [`to_kernel`] leaves it clear.
pub const FILTER_PREPEND: u32 = 0x10;

/// `AUDIT_MAX_FIELDS`, `AUDIT_BITMASK_SIZE`.
const FIELDS_MAX: usize = 64;
const MASK_WORDS: usize = 64;
/// Words for flags, action, field_count; mask; fields, values, fieldflags; buflen.
const HEADER_WORDS: usize = 3 + MASK_WORDS + 3 * FIELDS_MAX + 1;
const HEADER_LEN: usize = HEADER_WORDS * 4;
const FIELDS_AT: usize = 3 + MASK_WORDS;
const VALUES_AT: usize = FIELDS_AT + FIELDS_MAX;
const FLAGS_AT: usize = VALUES_AT + FIELDS_MAX;
const BUFLEN_AT: usize = FLAGS_AT + FIELDS_MAX;
/// `PATH_MAX`, which is also the kernel's limit for every text.
const TEXT_LEN_MAX: usize = 4096;

/// Reason why bytes are not a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than the structure has.
    #[error("a rule takes at least {HEADER_LEN} bytes, not {0}")]
    Short(usize),
    /// A list that does not exist.
    #[error("there is no filter list {0}")]
    List(u32),
    /// An action that does not exist.
    #[error("there is no action {0}")]
    Action(u32),
    /// More conditions than the structure can hold.
    #[error("a rule has at most {FIELDS_MAX} conditions, not {0}")]
    FieldCount(u32),
    /// A field that does not exist.
    #[error("condition {index}: there is no field {number}")]
    Field {
        /// Index of the condition, from 0.
        index: usize,
        /// The number given.
        number: u32,
    },
    /// An operator that does not exist.
    #[error("condition {index}: there is no operator {number:#x}")]
    Operator {
        /// Index of the condition, from 0.
        index: usize,
        /// The number given.
        number: u32,
    },
    /// A text longer than the bytes that are left, or than the kernel accepts.
    #[error("condition {index}: a text of {len} bytes does not fit")]
    Text {
        /// Index of the condition, from 0.
        index: usize,
        /// The length given.
        len: u32,
    },
}

const OPERATORS: [(Op, u32); 8] = [
    (Op::Eq, 0x4000_0000),
    (Op::Ne, 0x3000_0000),
    (Op::Lt, 0x1000_0000),
    (Op::Le, 0x5000_0000),
    (Op::Gt, 0x2000_0000),
    (Op::Ge, 0x6000_0000),
    (Op::BitMask, 0x0800_0000),
    (Op::BitTest, 0x4800_0000),
];

impl Op {
    /// The kernel's number (`AUDIT_EQUAL` …).
    pub fn number(self) -> u32 {
        OPERATORS
            .iter()
            .find(|row| row.0 == self)
            .map_or(0, |row| row.1)
    }

    /// The operator that the kernel numbers `number`.
    pub fn from_number(number: u32) -> Option<Op> {
        OPERATORS
            .iter()
            .find(|row| row.1 == number)
            .map(|row| row.0)
    }
}

impl List {
    /// Every list, in the order in which the kernel and `auditctl -l` go through them.
    pub const EVERY: [List; 6] = [
        List::User,
        List::Task,
        List::Exit,
        List::Exclude,
        List::Filesystem,
        List::IoUring,
    ];

    /// The list that the kernel numbers `number`.
    pub fn from_number(number: u32) -> Option<List> {
        List::EVERY.into_iter().find(|&list| list as u32 == number)
    }
}

/// The bytes by which a request adds or deletes `rule` in the kernel. Conditions beyond the 64th
/// are left out; the parsers of this crate never make so many.
pub fn to_kernel(rule: &Rule) -> Vec<u8> {
    let mut words = [0u32; HEADER_WORDS];
    let mut texts = Vec::new();
    words[0] = rule.list as u32;
    words[1] = rule.action as u32;
    words[3..FIELDS_AT].copy_from_slice(&rule.syscalls.0);

    for (index, condition) in rule.conditions.iter().take(FIELDS_MAX).enumerate() {
        words[2] += 1;
        words[FIELDS_AT + index] = condition.field.number();
        words[FLAGS_AT + index] = condition.op.number();
        words[VALUES_AT + index] = match &condition.value {
            Value::Number(number) => *number,
            Value::Text(text) => {
                // The value of a text is its length; the texts follow each other in the order of the fields.
                texts.extend_from_slice(text);
                text.len() as u32
            }
        };
    }

    words[BUFLEN_AT] = texts.len() as u32;
    let mut bytes = Vec::with_capacity(HEADER_LEN + texts.len());
    words
        .iter()
        .for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
    bytes.extend_from_slice(&texts);

    bytes
}

/// The rule that `bytes` describe, as the kernel sends them in reply to AUDIT_LIST_RULES. Bytes after
/// the texts are ignored. The kernel resolves and clears class selectors; a mask that selects every
/// other call becomes [`SyscallSet::ALL`].
///
/// # Errors
/// The first fault of the bytes.
pub fn from_kernel(bytes: &[u8]) -> Result<Rule, WireError> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER_LEN) else {
        return Err(WireError::Short(bytes.len()));
    };

    let word = |index: usize| {
        let at = index * 4;
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let list_number = word(0) & !FILTER_PREPEND;
    let list = List::from_number(list_number).ok_or(WireError::List(list_number))?;
    let action = match word(1) {
        0 => Action::Never,
        2 => Action::Always,
        other => return Err(WireError::Action(other)),
    };
    let count = word(2);
    if count as usize > FIELDS_MAX {
        return Err(WireError::FieldCount(count));
    }

    let mut syscalls = SyscallSet(std::array::from_fn(|index| word(3 + index)));
    if syscalls.is_all() {
        syscalls = SyscallSet::ALL;
    }

    // The length is the sender's: it must not lead beyond the bytes that there are.
    let buflen = (word(BUFLEN_AT) as usize).min(rest.len());
    let mut texts = &rest[..buflen];
    let mut conditions = Vec::with_capacity(count as usize);
    for index in 0..count as usize {
        let number = word(FIELDS_AT + index);
        let field = Field::from_number(number).ok_or(WireError::Field { index, number })?;
        let number = word(FLAGS_AT + index);
        let op = Op::from_number(number).ok_or(WireError::Operator { index, number })?;
        let number = word(VALUES_AT + index);
        let value = if field.is_text() {
            let len = number as usize;
            let parts = if len <= TEXT_LEN_MAX {
                texts.split_at_checked(len)
            } else {
                None
            };
            let (text, left) = parts.ok_or(WireError::Text { index, len: number })?;
            texts = left;
            Value::Text(text.to_vec())
        } else {
            Value::Number(number)
        };
        conditions.push(Condition { field, op, value });
    }

    Ok(Rule {
        list,
        action,
        syscalls,
        conditions,
        source: Source::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_line, Command, StaticHost};

    #[test]
    fn the_layout_is_the_kernels() {
        let host = StaticHost::new(abi::Arch::X86_64);
        let line = "-a always,exit -F arch=b64 -S openat -F path=/etc/passwd -F exit!=-13 -k pw";
        let Ok(Some(Command::Append(rule))) = parse_line(line, &Source::default(), &host) else {
            panic!("not a rule");
        };
        let bytes = to_kernel(&rule);
        let word = |at: usize| u32::from_ne_bytes(bytes[at * 4..at * 4 + 4].try_into().unwrap());
        assert_eq!(bytes.len(), 1040 + "/etc/passwdpw".len());
        assert_eq!((word(0), word(1), word(2)), (4, 2, 4));
        assert_eq!(word(3 + 257 / 32), 1 << (257 % 32));
        assert_eq!(
            [word(67), word(68), word(69), word(70)],
            [11, 105, 103, 210]
        );
        assert_eq!(
            [word(131), word(132), word(133), word(134)],
            [0xC000_003E, 11, -13i32 as u32, 2]
        );
        assert_eq!(word(195 + 2), 0x3000_0000);
        assert_eq!(word(259), 13);
        assert_eq!(&bytes[1040..], b"/etc/passwdpw");
        assert!(from_kernel(&bytes).unwrap().same(&rule));
    }

    #[test]
    fn wrong_bytes_are_refused() {
        assert_eq!(from_kernel(&[0; 100]).unwrap_err(), WireError::Short(100));
        let with = |index: usize, word: u32| {
            let mut bytes = vec![0u8; HEADER_LEN];
            bytes[8..12].copy_from_slice(&1u32.to_ne_bytes());
            bytes[FLAGS_AT * 4..FLAGS_AT * 4 + 4].copy_from_slice(&0x4000_0000u32.to_ne_bytes());
            bytes[index * 4..index * 4 + 4].copy_from_slice(&word.to_ne_bytes());
            from_kernel(&bytes)
        };
        assert!(with(0, 0).is_ok());
        assert_eq!(with(0, 3).unwrap_err(), WireError::List(3));
        assert_eq!(with(1, 1).unwrap_err(), WireError::Action(1));
        assert_eq!(with(2, 65).unwrap_err(), WireError::FieldCount(65));
        assert_eq!(
            with(FIELDS_AT, 99).unwrap_err(),
            WireError::Field {
                index: 0,
                number: 99
            }
        );
        assert_eq!(
            with(FLAGS_AT, 1).unwrap_err(),
            WireError::Operator {
                index: 0,
                number: 1
            }
        );
    }

    #[test]
    fn texts_that_lie_about_their_length_are_refused() {
        let mut bytes = vec![0u8; HEADER_LEN];
        let mut set = |index: usize, word: u32| {
            bytes[index * 4..index * 4 + 4].copy_from_slice(&word.to_ne_bytes());
        };
        set(2, 1);
        set(FIELDS_AT, Field::Watch.number());
        set(FLAGS_AT, 0x4000_0000);
        set(VALUES_AT, u32::MAX);
        set(BUFLEN_AT, u32::MAX);
        let error = from_kernel(&bytes).unwrap_err();
        assert_eq!(
            error,
            WireError::Text {
                index: 0,
                len: u32::MAX
            }
        );
    }
}
