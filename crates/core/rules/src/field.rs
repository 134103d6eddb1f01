//! Reads one `-F field op value` or `-C field op field`.
//!
//! Accepted pairs are those of audit_rule_fieldpair_data() and audit_rule_interfield_comp_data() in audit-userspace
//! lib/libaudit.c, with the messages of its lib/errormsg.h.

use abi::{Arch, Compare, Field, RecordType};

use crate::fault::Fault;
use crate::words::Word;
use crate::workload::check_name;
use crate::{number, Condition, Dialect, Host, List, Op, Value};

/// The most conditions of a rule; the kernel's limit is one more (`AUDIT_MAX_FIELDS`).
pub(crate) const CONDITIONS_MAX: usize = 63;
/// `PATH_MAX`: the longest text of a condition, in bytes.
const TEXT_LEN_MAX: usize = 4096;
/// `AUDIT_MAX_KEY_LEN`: the length of all keys of a rule together, in bytes.
pub(crate) const KEY_LEN_MAX: usize = 256;
/// `AF_MAX` of the C library that auditctl is built with.
const ADDRESS_FAMILY_MAX: u32 = 46;

/// Facts about the earlier words of the line that decide whether a condition is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// `AUDIT_ARCH_*` of the last `-F arch=`, or of the host once `-S` needed an architecture.
    pub(crate) arch: Option<u32>,
    /// There was a `-S` or a `-w`.
    pub(crate) has_syscalls: bool,
    /// There was a `perm`, `path` or `dir`.
    pub(crate) has_perm: bool,
    /// There was an `exe`, or one of Tarsier's own fields.
    pub(crate) has_exe: bool,
    /// There was an `fstype`.
    pub(crate) has_fstype: bool,
}

/// A condition being read: the parts of the pair, and the filter list of its rule.
struct Pair<'a> {
    field: Field,
    op: Op,
    /// The left side as written.
    name: String,
    value: Word,
    whole: &'a Word,
    list: List,
}

impl Pair<'_> {
    /// An error that auditctl prints as the field and then `text`.
    fn field_first(&self, text: &str) -> Fault {
        Fault::at(self.whole, format!("{} {text}", self.name))
    }

    /// An error about the value that auditctl prints as `text` and then the field.
    fn field_last(&self, text: &str) -> Fault {
        Fault::at(&self.value, format!("{text} {}", self.name))
    }

    fn exit_only(&self) -> Result<(), Fault> {
        if self.list == List::Exit {
            return Ok(());
        }
        Err(self.field_first("can only be used with exit filter list"))
    }

    fn equality_only(&self) -> Result<(), Fault> {
        if matches!(self.op, Op::Eq | Op::Ne) {
            return Ok(());
        }
        Err(self.field_first("only takes = or != operators"))
    }

    /// The value as a name.
    fn text(&self) -> String {
        self.value.text()
    }

    /// Whether the value starts with a digit or, if `is_signed`, with `-` and a digit.
    fn is_number(&self, is_signed: bool) -> bool {
        match self.value.bytes.as_slice() {
            [digit, ..] if digit.is_ascii_digit() => true,
            [b'-', digit, ..] => is_signed && digit.is_ascii_digit(),
            _ => false,
        }
    }

    /// The value as a number, truncated to 32 bits as auditctl does.
    fn number(&self) -> u32 {
        if self.value.bytes.first() == Some(&b'-') {
            number::signed(&self.value.bytes) as u32
        } else {
            number::unsigned(&self.value.bytes, 0) as u32
        }
    }

    /// The value as a number limited to the range of an `i64`, then truncated to 32 bits.
    fn signed_number(&self) -> u32 {
        number::signed(&self.value.bytes) as u32
    }
}

/// Operators, in the order in which auditctl looks for them anywhere in the pair.
const OPERATORS: [(&[u8], Op); 8] = [
    (b"!=", Op::Ne),
    (b">=", Op::Ge),
    (b"<=", Op::Le),
    (b"&=", Op::BitTest),
    (b"=", Op::Eq),
    (b">", Op::Gt),
    (b"<", Op::Lt),
    (b"&", Op::BitMask),
];

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

/// Reads `-F pair` for a rule on `list` that has `count` conditions so far.
pub(crate) fn field_pair(
    pair: &Word,
    list: List,
    count: usize,
    facts: &mut Facts,
    host: &dyn Host,
    dialect: Dialect,
) -> Result<Condition, Fault> {
    if count >= CONDITIONS_MAX {
        return Err(Fault::at(
            pair,
            format!("Too many fields in rule: {}", pair.text()),
        ));
    }

    let found = OPERATORS
        .iter()
        .find_map(|(text, op)| Some((find(&pair.bytes, text)?, text.len(), *op)));
    let Some((at, op_len, op)) = found else {
        return Err(
            Fault::at(pair, format!("-F missing operation for {}", pair.text()))
                .expected("field, operator (= != < <= > >= & &=), value"),
        );
    };

    let name = pair.part(0, at);
    let value = pair.part(at + op_len, pair.bytes.len());
    if at == 0 {
        return Err(Fault::at(
            pair,
            "-F missing field name before operator for ",
        ));
    }

    if value.bytes.is_empty() {
        return Err(Fault::at(
            pair,
            format!("-F missing value after operation for {}", name.text()),
        ));
    }

    let own = Field::from_own_name(&name.text());
    let known = if dialect == Dialect::Tarsier {
        own
    } else {
        None
    };
    let Some(field) = known.or_else(|| Field::from_name(&name.text())) else {
        let unknown = unknown_field(&name, "-F unknown field:");
        return Err(match own {
            Some(own) => unknown.help(format!(
                "`{}` is a field of Tarsier's own: put the rule into a file *.tarsier beside the other rules",
                own.name()
            )),
            None => unknown,
        });
    };

    let pair = Pair {
        field,
        op,
        name: name.text(),
        value,
        whole: pair,
        list,
    };

    if list == List::Exclude && dialect == Dialect::V3 && !is_exclude_field(field) {
        return Err(Fault::at(
            pair.whole,
            "Only msgtype, *uid, *gid, pid, and subj* fields can be used with exclude filter",
        ));
    }

    let value = value_of(&pair, facts, host, dialect)?;
    Ok(Condition { field, op, value })
}

fn unknown_field(name: &Word, message: &str) -> Fault {
    let text = name.text();
    Fault::at(name, format!("{message} {text}"))
        .expected("a field that auditctl(8) lists")
        .nearest(
            &text,
            abi::FIELDS.iter().map(|row| row.1).chain(["loginuid"]),
        )
}

/// The fields that audit 3.0.9 allows on the exclude list.
fn is_exclude_field(field: Field) -> bool {
    matches!(
        field,
        Field::Pid
            | Field::Uid
            | Field::Gid
            | Field::Loginuid
            | Field::Msgtype
            | Field::SubjUser
            | Field::SubjRole
            | Field::SubjType
            | Field::SubjSen
            | Field::SubjClr
            | Field::Exe
    )
}

fn value_of(
    pair: &Pair<'_>,
    facts: &mut Facts,
    host: &dyn Host,
    dialect: Dialect,
) -> Result<Value, Fault> {
    let number = match pair.field {
        Field::Uid | Field::Euid | Field::Suid | Field::Fsuid | Field::Loginuid | Field::ObjUid => {
            user(pair, host)?
        }
        Field::Gid | Field::Egid | Field::Sgid | Field::Fsgid | Field::ObjGid => group(pair, host)?,
        Field::Exit => exit(pair)?,
        Field::Msgtype => record_type(pair)?,
        field if field.is_text() => return text(pair, facts),
        Field::Arch => arch(pair, facts, host)?,
        Field::Perm => perm(pair, dialect)?,
        Field::Filetype => file_type(pair)?,
        Field::Fstype => {
            facts.has_fstype = true;
            fs_type(pair, dialect)?
        }
        Field::Arg0 | Field::Arg1 | Field::Arg2 | Field::Arg3 => {
            if !pair.is_number(true) {
                return Err(not_a_number(pair));
            }
            pair.number()
        }
        Field::Sessionid => session(pair)?,
        Field::SaddrFam => address_family(pair)?,
        _ => plain_number(pair)?,
    };

    facts.has_perm |= pair.field == Field::Perm;
    Ok(Value::Number(number))
}

fn user(pair: &Pair<'_>, host: &dyn Host) -> Result<u32, Fault> {
    let text = pair.text();
    if pair.is_number(true) {
        return Ok(pair.number());
    }
    if text == "unset" {
        return Ok(u32::MAX);
    }
    host.uid(&text).ok_or_else(|| {
        Fault::at(&pair.value, format!("Unknown user: {text}"))
            .expected("a user id, the name of a user on this machine, or `unset`")
    })
}

fn group(pair: &Pair<'_>, host: &dyn Host) -> Result<u32, Fault> {
    let text = pair.text();
    if pair.is_number(false) {
        return Ok(pair.signed_number());
    }
    host.gid(&text).ok_or_else(|| {
        Fault::at(&pair.value, format!("Unknown group: {text}"))
            .expected("a group id, or the name of a group on this machine")
    })
}

fn exit(pair: &Pair<'_>) -> Result<u32, Fault> {
    pair.exit_only()?;
    if pair.is_number(true) {
        return Ok(pair.signed_number());
    }

    let text = pair.text().to_ascii_uppercase();
    let (sign, name) = match text.strip_prefix('-') {
        Some(name) => (-1, name),
        None => (1, text.as_str()),
    };

    match abi::errno_number(name) {
        Some(number) => Ok((sign * number) as u32),
        None => Err(pair
            .field_last("-F unknown errno -")
            .expected("a number or an error's name, such as -EACCES")
            .nearest(name, (1..200).filter_map(abi::errno_name))),
    }
}

fn record_type(pair: &Pair<'_>) -> Result<u32, Fault> {
    if !matches!(pair.list, List::Exclude | List::User) {
        return Err(Fault::at(
            pair.whole,
            "msgtype field can only be used with exclude or user filter list",
        ));
    }

    if pair.is_number(false) {
        return Ok(pair.signed_number());
    }

    let text = pair.text().to_ascii_uppercase();
    let known = RecordType::from_name(text.as_bytes());
    known.map(|kind| kind.0 as u32).ok_or_else(|| {
        pair.field_last("-F unknown message type -")
            .expected("a record type's name or number")
            .nearest(&text, RecordType::all().map(|row| row.1))
    })
}

fn text(pair: &Pair<'_>, facts: &mut Facts) -> Result<Value, Fault> {
    let is_path = matches!(pair.field, Field::Watch | Field::Dir);
    let is_object = matches!(
        pair.field,
        Field::ObjUser | Field::ObjRole | Field::ObjType | Field::ObjLevLow | Field::ObjLevHigh
    );
    if is_path || is_object {
        pair.exit_only()?;
    }

    facts.has_perm |= is_path;
    if pair.field.is_own() {
        pair.equality_only()?;
        facts.has_exe = true;
        let checked = check_name(pair.field, &pair.value.bytes);
        checked.map_err(|expected| {
            pair.field_last("no task can have this value of")
                .expected(expected)
        })?;
    }

    if pair.field == Field::Exe {
        pair.equality_only()?;
        facts.has_exe = true;
    }

    let is_key = pair.field == Field::FilterKey;
    if is_key && !(facts.has_syscalls || facts.has_perm || facts.has_exe || facts.has_fstype) {
        return Err(Fault::at(
            pair.whole,
            "Key field needs a watch, syscall or exe path given prior to it",
        ));
    }

    let len_max = if is_key { KEY_LEN_MAX } else { TEXT_LEN_MAX };
    if pair.value.bytes.len() > len_max {
        return Err(Fault::at(&pair.value, "String value too long")
            .expected(format!("at most {len_max} bytes")));
    }

    Ok(Value::Text(pair.value.bytes.clone()))
}

/// Architectures that rules may name although this program has no call tables for them.
const OTHER_ARCHES: [(&str, u32); 7] = [
    ("ppc64", 0x8000_0015),
    ("ppc64le", 0xC000_0015),
    ("ppc", 0x0000_0014),
    ("s390x", 0x8000_0016),
    ("s390", 0x0000_0016),
    ("riscv32", 0x4000_00F3),
    ("riscv64", 0xC000_00F3),
];

/// Whether audit's tools know the architecture `number` (`AUDIT_ARCH_*`).
pub(crate) fn is_known_arch(number: u32) -> bool {
    Arch::from_audit_arch(number).is_some() || OTHER_ARCHES.iter().any(|row| row.1 == number)
}

/// The name that `auditctl -l -i` prints for an architecture.
pub(crate) fn arch_name(number: u32) -> Option<&'static str> {
    Arch::from_audit_arch(number).map(Arch::name).or_else(|| {
        OTHER_ARCHES
            .iter()
            .find(|row| row.1 == number)
            .map(|row| row.0)
    })
}

fn arch(pair: &Pair<'_>, facts: &mut Facts, host: &dyn Host) -> Result<u32, Fault> {
    if facts.has_syscalls {
        return Err(pair
            .field_first("must be before -S")
            .help("the names after -S are looked up for the architecture: put -F arch= first"));
    }

    pair.equality_only()?;
    let text = pair.text().to_ascii_lowercase();
    let number = if pair.is_number(false) {
        Some(number::unsigned(&pair.value.bytes, 0) as u32)
    } else if text == "b32" || text == "b64" {
        Arch::from_bits(&text, host.arch()).map(Arch::audit_arch)
    } else {
        Arch::from_name(&text)
            .map(Arch::audit_arch)
            .or_else(|| {
                OTHER_ARCHES
                    .iter()
                    .find(|row| row.0 == text)
                    .map(|row| row.1)
            })
            .or_else(|| Some(number::unsigned(&pair.value.bytes, 16) as u32))
    };
    let Some(number) = number.filter(|&number| is_known_arch(number)) else {
        return Err(
            Fault::at(&pair.value, format!("{} elf mapping not found", pair.name))
                .expected(
                    "b64, b32, a machine name such as x86_64 or aarch64, or an AUDIT_ARCH number",
                )
                .nearest(&text, Arch::NAMES.into_iter().chain(["b32", "b64"])),
        );
    };

    facts.arch = Some(number);
    Ok(number)
}

/// The bits of a permission letter.
pub(crate) fn perm_letter(letter: u8) -> Option<u32> {
    match letter.to_ascii_lowercase() {
        b'r' => Some(abi::PERM_READ),
        b'w' => Some(abi::PERM_WRITE),
        b'x' => Some(abi::PERM_EXEC),
        b'a' => Some(abi::PERM_ATTR),
        _ => None,
    }
}

fn perm(pair: &Pair<'_>, dialect: Dialect) -> Result<u32, Fault> {
    if !(dialect != Dialect::V3 && pair.list == List::Exclude) {
        pair.exit_only()?;
    }

    if pair.op != Op::Eq {
        return Err(pair.field_first("only takes = operator"));
    }
    if pair.value.bytes.len() > 4 {
        return Err(Fault::at(&pair.value, "String value too long").expected("letters of `rwxa`"));
    }

    pair.value.bytes.iter().try_fold(0, |bits, &letter| {
        perm_letter(letter).map(|bit| bits | bit).ok_or_else(|| {
            Fault::at(&pair.value, "Permission can only contain  'rwxa'")
                .expected("r (read), w (write), x (execute), a (attribute change)")
        })
    })
}

fn file_type(pair: &Pair<'_>) -> Result<u32, Fault> {
    pair.exit_only()?;
    let text = pair.text().to_ascii_lowercase();
    abi::file_type_number(&text).ok_or_else(|| {
        let names = [
            "file",
            "dir",
            "socket",
            "link",
            "character",
            "block",
            "fifo",
        ];
        pair.field_last("-F unknown file type - ")
            .expected("one of file, dir, socket, link, character, block, fifo")
            .nearest(&text, names)
    })
}

fn fs_type(pair: &Pair<'_>, dialect: Dialect) -> Result<u32, Fault> {
    if pair.list != List::Filesystem {
        return Err(pair.field_first("field is not valid for the filter"));
    }

    pair.equality_only()?;
    let text = pair.text().to_ascii_lowercase();
    let number = if pair.is_number(false) {
        Some(pair.number()).filter(|&number| number != u32::MAX)
    } else if dialect != Dialect::V3 || matches!(text.as_str(), "tracefs" | "debugfs") {
        abi::fs_type_number(&text)
    } else {
        None
    };

    number.ok_or_else(|| {
        pair.field_last("file system type is unknown for field:")
            .expected("tracefs, debugfs, cgroup, cgroup2 or a super-block magic number")
            .nearest(&text, ["tracefs", "debugfs", "cgroup", "cgroup2"])
    })
}

fn session(pair: &Pair<'_>) -> Result<u32, Fault> {
    if !matches!(pair.list, List::Exclude | List::User | List::Exit) {
        return Err(pair.field_first("must be used with exclude, user, or exit filter"));
    }
    if pair.is_number(true) {
        return Ok(pair.number());
    }
    // As in auditctl, any other text silently becomes 0.
    Ok(if pair.text() == "unset" { u32::MAX } else { 0 })
}

fn address_family(pair: &Pair<'_>) -> Result<u32, Fault> {
    // As in auditctl, a text that is no number silently becomes 0.
    let number = number::unsigned(&pair.value.bytes, 0) as u32;
    if number >= ADDRESS_FAMILY_MAX {
        return Err(pair
            .field_last("value is too large for field:")
            .expected(format!(
                "an address family's number below {ADDRESS_FAMILY_MAX}"
            )));
    }
    Ok(number)
}

fn not_a_number(pair: &Pair<'_>) -> Fault {
    pair.field_last("-F value should be number for")
        .expected("a number")
}

fn plain_number(pair: &Pair<'_>) -> Result<u32, Fault> {
    let exit_only = [
        Field::Devmajor,
        Field::Devminor,
        Field::Inode,
        Field::Success,
        Field::Ppid,
    ];

    if pair.field != Field::Ppid && exit_only.contains(&pair.field) {
        pair.exit_only()?;
    }

    if pair.field == Field::Inode {
        pair.equality_only()?;
    }

    if pair.field == Field::Ppid {
        pair.exit_only()?;
    }

    if !pair.is_number(false) {
        return Err(not_a_number(pair));
    }

    Ok(if pair.field == Field::Inode {
        pair.number()
    } else {
        pair.signed_number()
    })
}

/// Reads `-C pair` for a rule on `list` that has `count` conditions so far.
pub(crate) fn field_compare(
    pair: &Word,
    list: Option<List>,
    count: usize,
) -> Result<Condition, Fault> {
    if count >= CONDITIONS_MAX {
        return Err(Fault::at(
            pair,
            format!("Too many fields in rule: {}", pair.text()),
        ));
    }
    let not_equal = find(&pair.bytes, b"!=").map(|at| (at, 2, Op::Ne));
    let found = not_equal.or_else(|| find(&pair.bytes, b"=").map(|at| (at, 1, Op::Eq)));
    let Some((at, op_len, op)) = found else {
        return Err(Fault::at(
            pair,
            format!("{} only takes = or != operators", pair.text()),
        ));
    };
    let left_word = pair.part(0, at);
    let right_word = pair.part(at + op_len, pair.bytes.len());
    let name = left_word.text();
    if name.is_empty() {
        return Err(Fault::at(
            pair,
            "-C missing field name before operator for ",
        ));
    }
    if right_word.bytes.is_empty() {
        return Err(Fault::at(
            pair,
            format!("-C missing value after operation for  {name}"),
        ));
    }
    let Some(left) = Field::from_name(&name) else {
        return Err(unknown_field(&left_word, "-C unknown field:"));
    };
    let Some(right) = Field::from_name(&right_word.text()) else {
        let text = right_word.text();
        let message = format!("-C unknown right hand value for comparison with: {name}");
        return Err(Fault::at(&right_word, message)
            .expected("a field")
            .nearest(&text, abi::FIELDS.iter().map(|row| row.1)));
    };
    if list != Some(List::Exit) {
        let message = format!("{name} can only be used with exit filter list");
        return Err(Fault::at(pair, message));
    }
    let Some(compare) = Compare::of(left, right) else {
        return Err(
            Fault::at(pair, format!("-C incompatible comparison {name}")).expected(
                "two different ones of uid, euid, suid, fsuid, auid, obj_uid, \
             or of gid, egid, sgid, fsgid, obj_gid",
            ),
        );
    };
    Ok(Condition {
        field: Field::FieldCompare,
        op,
        value: Value::Number(compare.number),
    })
}
