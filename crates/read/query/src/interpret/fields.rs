//! A record as names and values, as auparse takes it apart, and the names that ENRICHED wrote beside it.

use super::{Context, Interpreter, Machine};
use crate::event::Record;
use crate::near::near;
use crate::number::{unescape, unsigned};
use crate::Dialect;
use abi::record_type as kinds;
use std::borrow::Cow;

/// The names that ENRICHED wrote beside a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interpretations<'e> {
    /// Words such as `AUID="root"`, which are taken apart when a name is asked for.
    text: &'e [u8],
}

impl<'e> Interpretations<'e> {
    /// Reads the part of a line behind byte 0x1d. `None` if it has no names.
    pub fn read(text: &'e [u8]) -> Option<Interpretations<'e>> {
        memchr::memchr(b'=', text)?;
        let names = Interpretations { text };
        let is_complete = !text.starts_with(b"SADDR=") || names.address().is_some();
        is_complete.then_some(names)
    }

    /// The name of an address, whose parts have blanks between them.
    fn address(&self) -> Option<&'e [u8]> {
        let rest = self.text.strip_prefix(b"SADDR=")?;
        let address = &rest[memchr::memchr(b'{', rest)?..];
        memchr::memchr(b'}', address).map(|_| address)
    }

    /// The name beside the field `name`.
    pub fn get(&self, name: &[u8]) -> Option<&'e [u8]> {
        self.nth(name, 0)
    }

    /// The name beside the field `name` which `nth` others of the same name come before.
    pub fn nth(&self, name: &[u8], nth: usize) -> Option<&'e [u8]> {
        if let Some(address) = self.address() {
            return (name == b"saddr" && nth == 0).then_some(address);
        }

        let text = self.text;
        let mut ends = memchr::memchr_iter(b'=', text).filter(|end| {
            let start = end.checked_sub(name.len());
            start.is_some_and(|start| {
                (start == 0 || text[start - 1] == b' ')
                    && is_lower_case_of(name, &text[start..*end])
            })
        });

        let value = &text[ends.nth(nth)? + 1..];
        Some(&value[..near(b' ', value).unwrap_or(value.len())])
    }

    /// All names in the case of the log, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'e [u8], &'e [u8])> + use<'e> {
        let address = self.address().map(|address| (&b"saddr"[..], address));
        let others = if address.is_some() {
            &[][..]
        } else {
            self.text
        };
        let pairs = words(others).filter_map(|(word, equals)| {
            let end = equals?;
            Some((&word[..end], &word[end + 1..]))
        });
        address.into_iter().chain(pairs)
    }
}

/// Number of fields that few records of a type exceed.
fn fields_of(kind: i32) -> usize {
    match kind {
        kinds::SYSCALL => 32,
        _ => 16,
    }
}

/// The words of a text, which blanks separate, and where the first `=` of each stands.
fn words(text: &[u8]) -> impl Iterator<Item = (&[u8], Option<usize>)> {
    let mut rest = text;
    let each = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = near(b' ', rest).unwrap_or(rest.len());
        // With some bytes behind the word, eight of them can be compared at once.
        let equals = near(b'=', &rest[..rest.len().min(end + 8)]).filter(|at| *at < end);
        let word = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some((word, equals))
    });

    each.filter(|(word, _)| !word.is_empty())
}

/// Whether `name` is `known` in lower case.
fn is_lower_case_of(name: &[u8], known: &[u8]) -> bool {
    let pairs = || name.iter().zip(known);
    name.len() == known.len() && pairs().all(|(name, known)| *name == known.to_ascii_lowercase())
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'e> {
    /// Name of the field.
    pub name: &'e [u8],
    /// Value as the record has it, without the quotes and commas of messages.
    pub value: Cow<'e, [u8]>,
}

/// A record as names and values.
#[derive(Debug, Clone, Default)]
pub struct RecordFields<'e> {
    /// Record type.
    pub kind: i32,
    /// Table of the call numbers.
    pub machine: Machine,
    /// Number of the call, or -1.
    pub syscall: i32,
    /// First argument of the call.
    pub a0: u64,
    /// Second argument of the call.
    pub a1: u64,
    /// The fields, with `type` and, if there is one, `node`.
    pub fields: Vec<Field<'e>>,
    /// The names of ENRICHED.
    pub names: Option<Interpretations<'e>>,
}

impl<'e> RecordFields<'e> {
    /// Takes a record apart.
    pub fn read(record: &Record<'e>, dialect: Dialect) -> RecordFields<'e> {
        let mut fields = RecordFields {
            kind: 0,
            syscall: -1,
            fields: Vec::with_capacity(fields_of(record.kind)),
            names: record.names.and_then(Interpretations::read),
            ..RecordFields::default()
        };

        let mut words = words(record.text);
        while let Some((word, equals)) = words.next() {
            match equals {
                Some(equals) => fields.word(word, equals, dialect),
                None => fields.access(word, &mut words),
            }
        }

        fields
    }

    /// Takes apart what says which file a PATH record is about, and leaves the other fields out. `None` if the record is
    /// not in the kernel's form.
    pub(crate) fn of_path(record: &Record<'e>) -> Option<RecordFields<'e>> {
        let fields = crate::usual::path_fields(record.text)?;
        let field = |(name, value)| Field {
            name,
            value: Cow::Borrowed(trimmed(value)),
        };
        Some(RecordFields {
            kind: record.kind,
            syscall: -1,
            fields: fields.map(field).into(),
            names: record.names.and_then(Interpretations::read),
            ..RecordFields::default()
        })
    }

    /// The value of the first field `name`.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields
            .iter()
            .find(|field| *field.name == *name)
            .map(|field| &*field.value)
    }

    /// Number of fields before field `number` with its name.
    pub(crate) fn nth(&self, number: usize) -> usize {
        let name = &self.fields[number].name;
        let before = self.fields[..number].iter();
        before.filter(|field| field.name == *name).count()
    }

    /// Context on which the meaning of the record's values depends.
    pub fn context(&self) -> Context<'_> {
        Context {
            kind: self.kind,
            machine: self.machine,
            syscall: self.syscall,
            a0: self.a0,
            a1: self.a1,
            cwd: None,
            names: self.names.as_ref(),
            nth: 0,
        }
    }

    /// The meaning of the first field `name`.
    pub fn meaning(&self, name: &[u8], interpreter: &Interpreter) -> Option<Vec<u8>> {
        let value = self.get(name)?;
        Some(interpreter.value(&self.context(), name, value))
    }

    /// A word with `=` at `end`.
    fn word(&mut self, word: &'e [u8], end: usize, dialect: Dialect) {
        let (word, end) = match word.strip_prefix(b"msg=") {
            Some([b'a', ..]) => return,
            Some([b'\'', message @ ..]) => match memchr::memchr(b'=', message) {
                Some(end) => (message, end),
                None => return,
            },
            _ => (word, end),
        };

        let name = word[..end].strip_prefix(b"(").unwrap_or(&word[..end]);
        if word.len() == end + 1 {
            return;
        }

        let value = trimmed(&word[end + 1..]);
        if name == b"key" && !matches!(value, [b'(' | b'"', ..]) {
            return self.keys(value, dialect);
        }

        self.push(name, Cow::Borrowed(value));
        self.note(name, value, dialect);
    }

    fn push(&mut self, name: &'e [u8], value: Cow<'e, [u8]>) {
        self.fields.push(Field { name, value });
    }

    /// A field for each key of a list in hex.
    fn keys(&mut self, value: &'e [u8], dialect: Dialect) {
        match unescape(value) {
            Some(all) => {
                let each = all.split(|byte| *byte == 1).filter(|key| !key.is_empty());
                for key in each {
                    let hex: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
                    self.push(b"key", Cow::Owned(hex.into_bytes()));
                }
            }
            None if dialect == Dialect::Own => self.push(b"key", Cow::Borrowed(value)),
            None => self.push(b"key", Cow::Borrowed(b"")),
        }
    }

    /// Keeps a field that the meaning of others depends on. Fields count by their place, as in auparse.
    fn note(&mut self, name: &[u8], value: &[u8], dialect: Dialect) {
        // Most names are none of these.
        if !matches!(name.first(), Some(b't' | b'a' | b's' | b'u')) {
            return;
        }
        let has_node = *self.fields[0].name == *b"node";
        let place = self.fields.len() - usize::from(has_node && self.fields.len() > 1);
        if self.fields.len() == 1 && has_node {
            return;
        }

        let any = dialect == Dialect::Own;
        match name {
            b"type" if place == 1 => {
                self.kind = crate::kind::number(value, dialect);
                if self.kind == kinds::URINGOP {
                    self.machine = Machine::Uring;
                }
            }
            b"arch" if any || matches!(place, 2 | 11) => {
                self.machine = unsigned(value, 16)
                    .map_or(Machine::Unset, |number| Machine::of_elf(number as u32));
            }
            b"syscall" if any || matches!(place, 3 | 12) => self.call(value),
            b"uring_op" if place == 2 => self.call(value),
            b"a0" if place == 6 => self.a0 = unsigned(value, 16).unwrap_or(u64::MAX),
            b"a1" if place == 7 => self.a1 = unsigned(value, 16).unwrap_or(u64::MAX),
            _ => {}
        }
    }

    fn call(&mut self, value: &[u8]) {
        self.syscall = unsigned(value, 10).map_or(-1, |number| number as i32);
    }

    /// A word without `=`: result and permissions of an access that SELinux decided on.
    fn access(
        &mut self,
        word: &'e [u8],
        words: &mut impl Iterator<Item = (&'e [u8], Option<usize>)>,
    ) {
        if !matches!(self.kind, kinds::AVC | kinds::USER_AVC) {
            return;
        }

        let has_node = self
            .fields
            .first()
            .is_some_and(|field| *field.name == *b"node");
        match self.fields.len() - usize::from(has_node && !self.fields.is_empty()) {
            1 if !word.starts_with(b"avc") => self.push(b"seresult", Cow::Borrowed(word)),
            2 if word.first() == Some(&b'{') => {
                let names = words.map(|(word, _)| word);
                let names: Vec<&[u8]> = names.take_while(|word| word[0] != b'}').collect();
                self.push(b"seperms", Cow::Owned(names.join(&b',')));
            }
            _ => {}
        }
    }
}

/// `value` without the punctuation of messages behind it.
fn trimmed(value: &[u8]) -> &[u8] {
    if !matches!(value.last(), Some(b':' | b',' | b'\'' | b')')) {
        return value;
    }
    let mut rest = value;
    for mark in b":,'" {
        rest = rest.strip_suffix(&[*mark]).unwrap_or(rest);
    }
    match rest {
        b"(none)" | b"(null)" => rest,
        _ => rest.strip_suffix(b")").unwrap_or(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &[u8]) -> Vec<(String, String)> {
        let record = Record {
            kind: 0,
            text,
            names: None,
        };
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        RecordFields::read(&record, Dialect::Own)
            .fields
            .iter()
            .map(|field| (shown(field.name), shown(&field.value)))
            .collect()
    }

    #[test]
    fn a_record_is_taken_apart() {
        let fields = names(
            b"type=USER msg=audit(1.2:3): pid=1 msg='op=PAM:start, acct=\"a\" res=success' key=6101620A",
        );
        let expected = [
            ("type", "USER"),
            ("pid", "1"),
            ("op", "PAM:start"),
            ("acct", "\"a\""),
            ("res", "success"),
            ("key", "61"),
            ("key", "620A"),
        ];
        assert_eq!(fields.len(), expected.len());
        for (field, (name, value)) in fields.iter().zip(expected) {
            assert_eq!((field.0.as_str(), field.1.as_str()), (name, value));
        }
    }

    #[test]
    fn names_of_enriched_are_read() {
        let names = Interpretations::read(b"ARCH=x86_64 AUID=\"root\"").expect("names");
        assert_eq!(names.get(b"auid"), Some(&b"\"root\""[..]));
        assert_eq!(names.get(b"uid"), None);
        let address = Interpretations::read(b"SADDR={ saddr_fam=local path=/a }").expect("a name");
        assert_eq!(
            address.get(b"saddr"),
            Some(&b"{ saddr_fam=local path=/a }"[..])
        );
        assert_eq!(Interpretations::read(b""), None);
        let several = Interpretations::read(b"UID=\"a=b\" XUID=c UID= UID=d").expect("names");
        let values: Vec<_> = (0..4).map(|nth| several.nth(b"uid", nth)).collect();
        let wanted = [Some(&b"\"a=b\""[..]), Some(b""), Some(b"d"), None];
        assert_eq!(values, wanted);
    }

    #[test]
    fn the_fields_of_a_file_are_those_of_the_whole_record() {
        const PATH: &str = "type=PATH msg=audit(1.2:3): item=0 name=\"/a\" inode=5 dev=fe:00 \
                            mode=0100644 ouid=0 ogid=0 rdev=00:00 obj=a:b:c:s0 nametype=NORMAL \
                            cap_fp=0 cap_frootid=0";
        let mut usual = 0;
        for (from, to) in [
            ("", ""),
            (" obj=a:b:c:s0", ""),
            (" cap_fp=0 cap_frootid=0", ""),
            ("\"/a\"", "2F612062"),
            ("\"/a\"", "(null)"),
            ("\"/a\"", "\"/a,\""),
            ("\"/a\"", "\"/a b\""),
            ("\"/a\"", "\"/a"),
            ("\"/a\"", "\""),
            ("\"/a\"", "'/a"),
            ("\"/a\"", ""),
            ("NORMAL", "NORMAL,"),
            ("inode=5", "inode=5:"),
            ("inode=5 ", ""),
            ("item=0", "item=0 name=\"/b\""),
            ("rdev=00:00", "rdev=00:00 x=y"),
            ("type=PATH", "node=a type=PATH"),
        ] {
            let text = PATH.replacen(from, to, 1);
            let record = Record {
                kind: kinds::PATH,
                text: text.as_bytes(),
                names: None,
            };
            let whole = RecordFields::read(&record, Dialect::Own);
            let Some(short) = RecordFields::of_path(&record) else {
                continue;
            };
            usual += 1;
            assert_eq!(short.kind, whole.kind);
            for field in &short.fields {
                assert_eq!(Some(&*field.value), whole.get(field.name), "{text}");
            }
        }
        assert_eq!(usual, 9);
    }
}
