//! Records in the form in which kernels write them: what they say is found without taking them apart field by field.
//! Whatever differs from that form by a byte is left to [`crate::fields::Fields`].

use crate::event::EventView;
use crate::facts::Files;
use crate::fields::{Field, Fields};
use crate::near::near;
use crate::walk::Text;
use abi::record_type as kinds;
use memchr::{memchr, memrchr};

/// A SYSCALL record: the call, and who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsualCall {
    /// AUDIT_ARCH of the call.
    pub(crate) arch: u32,
    /// Number of the call.
    pub(crate) number: i32,
    pub(crate) is_success: bool,
    /// Result of the call.
    pub(crate) exit: i64,
    /// Index in the record at which the fields of the caller begin. They say nothing about the call, and are the same
    /// bytes for many calls of a process.
    pub(crate) caller_at: usize,
}

/// Names of the fields of a caller, with what stands behind them. A label and the key follow.
const CALLER: [&[u8]; 15] = [
    b"ppid=", b"pid=", b"auid=", b"uid=", b"gid=", b"euid=", b"suid=", b"fsuid=", b"egid=",
    b"sgid=", b"fsgid=", b"tty=", b"ses=", b"comm=", b"exe=",
];

/// Indices in a record at which the values of a caller's fields begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallerPlaces {
    /// In the order of [`CALLER`].
    values: [usize; CALLER.len()],
    label: Option<usize>,
    key: usize,
}

impl CallerPlaces {
    /// Names and places of the fields, but for label and key.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static [u8], usize)> + use<'_> {
        let names = CALLER.iter().map(|name| &name[..name.len() - 1]);
        names.zip(self.values)
    }

    /// Place of `subj=`.
    pub(crate) fn label(&self) -> Option<usize> {
        self.label
    }

    /// Place of `key=`.
    pub(crate) fn key(&self) -> usize {
        self.key
    }
}

impl UsualCall {
    /// Reads the text of a SYSCALL record (kernel/auditsc.c, `audit_log_exit`).
    pub(crate) fn of(text: &[u8]) -> Option<UsualCall> {
        let start = body(text)?;
        let mut rest = RestOfRecord(&text[start..]);
        let arch = rest.number(b"arch=", 16)?;
        let number = rest.number(b"syscall=", 10)?;
        // The personality is written unless it is Linux's own.
        if rest.0.starts_with(b"per=") {
            rest.value(b"per=")?;
        }

        let is_success = match rest.value(b"success=")? {
            b"yes" => true,
            b"no" => false,
            _ => return None,
        };
        let exit = rest.value(b"exit=")?;
        let exit = std::str::from_utf8(exit).ok()?.parse().ok()?;

        // Each with its own length, which the compiler knows: a call of memcmp would take longer than comparing does.
        for name in [b"a0=", b"a1=", b"a2=", b"a3="] {
            rest.value(name)?;
        }
        rest.value(b"items=")?;

        rest.0.starts_with(CALLER[0]).then_some(UsualCall {
            arch,
            number: i32::try_from(number).ok()?,
            is_success,
            exit,
            caller_at: text.len() - rest.0.len(),
        })
    }

    /// Where the fields of the caller stand in `text`, the text of the record.
    pub(crate) fn caller(&self, text: &[u8]) -> Option<CallerPlaces> {
        let mut at = self.caller_at;
        let mut values = [0; CALLER.len()];
        for (place, name) in values.iter_mut().zip(CALLER) {
            *place = behind(text, at, name)?;
            at = next_field(text, *place)?;
        }

        let label = behind(text, at, b"subj=");
        if let Some(place) = label {
            at = next_field(text, place)?;
        }

        // The key ends the record.
        let key = behind(text, at, b"key=")?;
        next_field(text, key)
            .is_none()
            .then_some(CallerPlaces { values, label, key })
    }

    /// Index of the blank before the key, which ends `text`, the text of the record. `None` if no single field does so.
    pub(crate) fn key_at(&self, text: &[u8]) -> Option<usize> {
        let blank = memrchr(b' ', text).filter(|blank| *blank > self.caller_at)?;
        let value = text[blank + 1..].strip_prefix(b"key=")?;
        match value {
            [b'"', key @ .., b'"'] => memchr(b'"', key).is_none().then_some(blank),
            [b'"' | b'\'', ..] => None,
            _ => Some(blank),
        }
    }

    /// The call of an event whose records are all of that call, the first of them SYSCALL.
    pub(crate) fn of_event(event: EventView<'_>) -> Option<UsualCall> {
        let (first, others) = event.places.split_first()?;
        let is_of_call = |kind| {
            matches!(
                kind,
                kinds::PATH | kinds::CWD | kinds::EXECVE | kinds::PROCTITLE | kinds::EOE
            )
        };
        let are_of_call = others.iter().all(|place| is_of_call(place.kind));
        if first.kind != kinds::SYSCALL || !are_of_call {
            return None;
        }
        UsualCall::of(&event.text[first.start..first.end])
    }
}

/// Interpretations of a SYSCALL record without those of the call, which stand first.
pub(crate) fn caller_names(names: &[u8]) -> &[u8] {
    let behind = |names: &[u8], name: &[u8]| {
        let end = names.starts_with(name).then(|| memchr(b' ', names));
        end.flatten().map_or(0, |end| end + 1)
    };
    let names = &names[behind(names, b"ARCH=")..];
    &names[behind(names, b"SYSCALL=")..]
}

/// Index in the text of a PATH record at which device, mode and owner of the file begin, which many files share.
pub(crate) fn owner_at(text: &[u8]) -> Option<usize> {
    let number = behind(text, body(text)?, b"item=")?;
    let name = behind(text, next_field(text, number)?, b"name=")?;
    let inode = behind(text, next_field(text, name)?, b"inode=")?;
    let at = next_field(text, inode)?;
    text[at..].starts_with(b"dev=").then_some(at)
}

/// The fields of a PATH record that say which file it is and what became of it: `name`, `inode`, `mode` and `nametype`,
/// with their values as the record has them. `None` if it is not in the kernel's form, or a value has a blank.
pub(crate) fn path_fields(text: &[u8]) -> Option<[(&'static [u8], &[u8]); 4]> {
    let mut at = body(text)?;
    let mut value = |name: &[u8]| {
        let place = behind(text, at, name)?;
        let end = near(b' ', &text[place..]).map_or(text.len(), |length| place + length);
        at = (end + 1).min(text.len());
        // A quote that is not closed before the blank.
        let is_whole = text[place] != b'"' || (end > place + 1 && text[end - 1] == b'"');
        (end > place && is_whole).then(|| &text[place..end])
    };

    value(b"item=")?;
    let (name, inode) = (value(b"name=")?, value(b"inode=")?);
    value(b"dev=")?;
    let mode = value(b"mode=")?;
    for other in [&b"ouid="[..], b"ogid=", b"rdev="] {
        value(other)?;
    }
    // Only of hosts with labels.
    let _ = value(b"obj=");
    let role = value(b"nametype=")?;

    Some([
        (b"name", name),
        (b"inode", inode),
        (b"mode", mode),
        (b"nametype", role),
    ])
}

/// Index behind `name`, if it stands at `at`, and does not begin a text with fields of its own.
fn behind(text: &[u8], at: usize, name: &[u8]) -> Option<usize> {
    let rest = text[at..].strip_prefix(name)?;
    (rest.first() != Some(&b'\'')).then(|| at + name.len())
}

/// Index of the field behind the value at `place`; `None` if there is none, or no single blank between them.
fn next_field(text: &[u8], place: usize) -> Option<usize> {
    let (_, next) = Field::at(text, b"", place);
    (text.get(next) == Some(&b' ')).then_some(next + 1)
}

/// What is left of a record.
struct RestOfRecord<'e>(&'e [u8]);

impl<'e> RestOfRecord<'e> {
    /// The value of the field that comes next, which has a blank behind it.
    #[inline]
    fn value<const N: usize>(&mut self, name: &[u8; N]) -> Option<&'e [u8]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        if first != name {
            return None;
        }
        let end = near(b' ', rest)?;
        let value = &rest[..end];
        self.0 = &rest[end + 1..];
        // A quote would begin a value with blanks.
        let first = value.first()?;
        (first.is_ascii_alphanumeric() || *first == b'-').then_some(value)
    }

    #[inline]
    fn number<const N: usize>(&mut self, name: &[u8; N], base: u32) -> Option<u32> {
        number_of(self.value(name)?, base)
    }
}

fn number_of(digits: &[u8], base: u32) -> Option<u32> {
    let mut number = 0_u32;
    for digit in digits {
        let digit = char::from(*digit).to_digit(base)?;
        number = number.checked_mul(base)?.checked_add(digit)?;
    }
    (!digits.is_empty()).then_some(number)
}

/// Index at which the fields of a record begin, behind its head without a blank in the node's name.
fn body(line: &[u8]) -> Option<usize> {
    let close = memchr(b')', &line[..line.len().min(400)])?;
    line[close..].starts_with(b"): ").then_some(close + 3)
}

/// Gives the names of the files of PATH records to `each`, joined to the working directory as [`crate::facts::Files`]
/// joins them. A PATH record names one file, its first `name=`.
pub(crate) fn each_path<'e>(event: EventView<'e>, mut each: impl FnMut(Text<'e>)) {
    let mut cwd = None;
    for record in event.records() {
        match record.kind {
            // Looked at only if a name needs it.
            kinds::CWD => cwd = cwd.or(Some(record)),
            kinds::PATH => {
                let Some(name) = name_field(record.text).and_then(|field| field.file()) else {
                    continue;
                };
                if !Files::is_joined(&name) {
                    each(name);
                    continue;
                }
                let cwd = cwd.and_then(|cwd| {
                    let field = Fields::of(cwd.text).find(|field| field.name == b"cwd")?;
                    field.text()
                });
                each(Files::joined(cwd.as_deref(), name));
            }
            _ => {}
        }
    }
}

/// The first field `name` of a PATH record.
fn name_field(text: &[u8]) -> Option<Field<'_>> {
    let usual = || {
        let number = behind(text, body(text)?, b"item=")?;
        behind(text, next_field(text, number)?, b"name=")
    };
    match usual() {
        Some(at) => Some(Field::at(text, b"name", at).0),
        None => Fields::of(text).find(|field| field.name == b"name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str =
        "type=SYSCALL msg=audit(1795229629.588:9): arch=c000003e syscall=257 success=no exit=-13 \
                        a0=ffffff9c a1=7ffd a2=0 a3=0 items=1 ppid=4 pid=7 auid=1000 uid=0 gid=1 \
                        euid=2 suid=3 fsuid=4 egid=5 sgid=6 fsgid=7 tty=pts0 ses=3 comm=\"c at\" \
                        exe=\"/bin/cat\" subj=a_t:s0 key=\"k\"";

    #[test]
    fn a_call_as_kernels_write_it_is_told_from_its_caller() {
        for text in [
            CALL.to_owned(),
            CALL.replace("success", "per=400000 success"),
        ] {
            let call = UsualCall::of(text.as_bytes()).expect("the usual form");
            assert_eq!((call.arch, call.number), (0xc000_003e, 257));
            assert_eq!((call.is_success, call.exit), (false, -13));
            assert!(text[call.caller_at..].starts_with("ppid=4 pid=7 "));
            let caller = call.caller(text.as_bytes()).expect("the usual form");
            let value = |at| {
                let (field, _) = Field::at(text.as_bytes(), b"", at);
                String::from_utf8_lossy(field.value).into_owned()
            };
            let fields: Vec<_> = caller.fields().map(|field| value(field.1)).collect();
            assert_eq!(
                fields.join(" "),
                "4 7 1000 0 1 2 3 4 5 6 7 pts0 3 c at /bin/cat"
            );
            assert_eq!(value(caller.key()), "k");
            assert_eq!(caller.label().map(value).as_deref(), Some("a_t:s0"));
        }
    }

    #[test]
    fn any_other_form_is_left_to_the_parser_of_fields() {
        for (from, to) in [
            ("arch=", "arhc="),
            ("arch=c000003e", "arch=x86_64"),
            ("exit=-13", "exit=--13"),
            ("exit=-13", "exit=99999999999999999999"),
            ("success=no", "success=maybe"),
            ("a1=7ffd", "a1=\"x ppid=1\""),
            ("a1=7ffd", "a1='x"),
            ("a3=0", "a3=0 key=x"),
            ("gid=1", "gid=1 acct=x"),
            ("tty=pts0", "tty='pts0"),
            ("subj=a_t:s0", "subj=/bin/cat (enforce)"),
            ("key=", "name="),
            (" key=", " key=x key="),
            ("items=1 ppid=4", "items=1"),
            ("9): ", "9) "),
        ] {
            let line = CALL.replace(from, to);
            assert_ne!(line, CALL);
            let call = UsualCall::of(line.as_bytes());
            let caller = call.and_then(|call| call.caller(line.as_bytes()));
            assert_eq!(caller, None, "{line}");
        }
    }
}
