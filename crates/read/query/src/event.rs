//! An event: the records that share node, time and serial.

use crate::enriched::interpretations;
use crate::Dialect;
use abi::record_type as kinds;
use std::cmp::Ordering;

/// Time, serial number and node, which the records of an event share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Key {
    /// Seconds since 1970.
    pub sec: u64,
    /// Milliseconds.
    pub msec: u32,
    /// Serial number.
    pub serial: u64,
    /// Value of `node=` before the record, if there is one.
    pub node: Option<Box<[u8]>>,
}

impl Key {
    /// Order in time. As in ausearch, nodes do not count.
    pub fn order(&self, other: &Key) -> Ordering {
        (self.sec, self.msec, self.serial).cmp(&(other.sec, other.msec, other.serial))
    }
}

/// Place of a record in the text of its event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordSpan {
    pub(crate) kind: i32,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Interpretations of ENRICHED, which end the line.
    pub(crate) names: Option<(usize, usize)>,
}

impl RecordSpan {
    /// End of the line, without its newline.
    fn line_end(&self) -> usize {
        self.names.map_or(self.end, |names| names.1)
    }

    fn record<'e>(&self, text: &'e [u8]) -> Record<'e> {
        Record {
            kind: self.kind,
            text: &text[self.start..self.end],
            names: self.names.map(|(start, end)| &text[start..end]),
        }
    }
}

/// An event that stands in a buffer of its owner.
#[derive(Debug, Clone, Copy)]
pub struct EventView<'e> {
    pub(crate) sec: u64,
    pub(crate) msec: u32,
    pub(crate) serial: u64,
    pub(crate) node: Option<&'e [u8]>,
    pub(crate) text: &'e [u8],
    pub(crate) places: &'e [RecordSpan],
    /// Lines of JSON that all records are from; empty if one is not.
    pub(crate) objects: &'e [u8],
}

impl<'e> EventView<'e> {
    /// Seconds since 1970, milliseconds, and the serial number.
    pub fn time(&self) -> (u64, u32, u64) {
        (self.sec, self.msec, self.serial)
    }

    /// Value of `node=` before the records, if there is one.
    pub fn node(&self) -> Option<&'e [u8]> {
        self.node
    }

    /// Type of the first record.
    pub fn kind(&self) -> i32 {
        self.places.first().map_or(-1, |place| place.kind)
    }

    /// The records in the order of the log.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = Record<'e>> + ExactSizeIterator {
        let text = self.text;
        self.places.iter().map(move |place| place.record(text))
    }

    /// Whether a record is of one of the types from `first` to `last`.
    pub fn has_kind(&self, first: i32, last: i32) -> bool {
        self.places
            .iter()
            .any(|place| (first..=last).contains(&place.kind))
    }

    /// The lines of the event, from the first record to the last.
    pub fn lines(&self) -> &'e [u8] {
        match (self.places.first(), self.places.last()) {
            (Some(first), Some(last)) => &self.text[first.start..last.line_end()],
            _ => &[],
        }
    }

    /// The unchanged value that ENRICHED gives to a field, which is in lower case: beside the record of the call, or
    /// else beside the first record that has one.
    pub(crate) fn name_of(&self, field: &[u8]) -> Option<&'e [u8]> {
        let call = self
            .records()
            .filter(|record| crate::kind::is_of_call(record.kind));
        call.chain(self.records())
            .filter_map(|record| record.names)
            .find_map(|names| crate::facts::nth_value(names, field, 0))
    }

    /// [`EventView::name_of`] of several fields, in one reading.
    pub(crate) fn names_of<const N: usize>(&self, fields: [&[u8]; N]) -> [Option<&'e [u8]>; N] {
        let mut found = [None; N];
        let is_call = |record: &Record<'e>| crate::kind::is_of_call(record.kind);
        let calls = self.records().filter(is_call);
        let others = self.records().filter(|record| !is_call(record));
        for names in calls.chain(others).filter_map(|record| record.names) {
            for word in names.split(|byte| *byte == b' ') {
                // A name in the log is as long as its field's.
                let place = fields.iter().position(|field| {
                    word.get(field.len()) == Some(&b'=')
                        && word[..field.len()].eq_ignore_ascii_case(field)
                });
                if let Some(place) = place.filter(|place| found[*place].is_none()) {
                    found[place] = Some(&word[fields[place].len() + 1..]);
                }
            }
        }

        found
    }

    /// [`EventView::name_of`] without quotes, or decoded.
    pub(crate) fn names_value(&self, field: &[u8]) -> Option<Vec<u8>> {
        let value = self.name_of(field)?;
        Some(crate::interpret::escaped(value, crate::Dialect::Own))
    }

    /// The interpretations by which ids have names: those of a single record, or of SYSCALL at the beginning.
    pub fn names(&self) -> Option<&'e [u8]> {
        let first = self.records().next()?;
        (self.places.len() == 1 || first.kind == kinds::SYSCALL).then_some(first.names)?
    }
}

/// A record of an event, borrowed from it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'e> {
    /// Number of the record type, -1 if its name is unknown.
    pub kind: i32,
    /// The line without newline and interpretations.
    pub text: &'e [u8],
    /// The interpretations of ENRICHED, if the line has any.
    pub names: Option<&'e [u8]>,
}

impl<'e> Record<'e> {
    /// The type as the log has it: `SYSCALL`, `1400`, or a name that is not known.
    pub fn type_name(&self) -> &'e [u8] {
        let rest = match memchr::memmem::find(self.text, b"type=") {
            Some(at) => &self.text[at + b"type=".len()..],
            None => return b"",
        };
        &rest[..memchr::memchr(b' ', rest).unwrap_or(rest.len())]
    }
}

/// An event with its records in the order of the log.
#[derive(Debug, Default)]
pub struct Event {
    pub(crate) key: Key,
    text: Vec<u8>,
    places: Vec<RecordSpan>,
    /// Lines of JSON, which say more than the records made from them.
    objects: Vec<u8>,
    /// Number of records that are from `objects`.
    of_objects: usize,
}

impl Event {
    /// Node, time and serial.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Type of the first record.
    pub fn kind(&self) -> i32 {
        self.places.first().map_or(-1, |place| place.kind)
    }

    /// Whether a record has interpretations.
    pub fn is_enriched(&self) -> bool {
        self.places.iter().any(|place| place.names.is_some())
    }

    /// The records in the order of the log.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = Record<'_>> + ExactSizeIterator {
        self.places.iter().map(|place| place.record(&self.text))
    }

    /// The lines, without their newlines, as the log has them.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let places = self.places.iter();
        places.map(|place| &self.text[place.start..place.line_end()])
    }

    /// The event, borrowed.
    pub fn view(&self) -> EventView<'_> {
        EventView {
            sec: self.key.sec,
            msec: self.key.msec,
            serial: self.key.serial,
            node: self.key.node.as_deref(),
            text: &self.text,
            places: &self.places,
            objects: self.objects(),
        }
    }

    /// Whether a record is of one of the types from `first` to `last`.
    pub fn has_kind(&self, first: i32, last: i32) -> bool {
        self.places
            .iter()
            .any(|place| (first..=last).contains(&place.kind))
    }

    /// The lines of all records, one after the other.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The lines as the log has them: of JSON where all records are from there, else those of [`Event::text`].
    pub fn source(&self) -> &[u8] {
        match self.objects() {
            [] => &self.text,
            objects => objects,
        }
    }

    fn objects(&self) -> &[u8] {
        if self.of_objects == self.places.len() {
            &self.objects
        } else {
            &[]
        }
    }

    /// Bytes of memory that the event's lines take.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.objects.len()
    }

    /// Adds the line of JSON that the last `records` records are from.
    pub(crate) fn push_object(&mut self, line: &[u8], records: usize) {
        self.objects
            .extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        self.objects.push(b'\n');
        self.of_objects += records;
    }

    /// The interpretations by which ids have names: those of a single record, or of SYSCALL at the beginning.
    pub fn names(&self) -> Option<&[u8]> {
        let first = self.records().next()?;
        (self.places.len() == 1 || first.kind == kinds::SYSCALL).then_some(first.names)?
    }

    /// Makes this the event that is borrowed, in place of the one before.
    pub fn set(&mut self, view: EventView<'_>) {
        self.clear();
        self.key = Key {
            sec: view.sec,
            msec: view.msec,
            serial: view.serial,
            node: view.node.map(Box::from),
        };

        for place in view.places {
            let names = place
                .names
                .map(|names| (place.end - place.start, names.0 - place.start));
            self.push_line(place.kind, &view.text[place.start..place.line_end()], names);
        }
        if !view.objects.is_empty() {
            self.push_object(view.objects, view.places.len());
        }
    }

    pub(crate) fn push(&mut self, kind: i32, line: &[u8], dialect: Dialect) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        self.push_line(kind, line, interpretations(line, dialect));
    }

    fn push_line(&mut self, kind: i32, line: &[u8], names: Option<(usize, usize)>) {
        let start = self.text.len();
        self.text.extend_from_slice(line);
        // Values that reach to the end of a line end there.
        self.text.push(b'\n');
        self.places.push(RecordSpan {
            kind,
            start,
            end: start + names.map_or(line.len(), |names| names.0),
            names: names.map(|names| (start + names.1, start + line.len())),
        });
    }

    pub(crate) fn clear(&mut self) {
        self.key = Key::default();
        self.text.clear();
        self.places.clear();
        self.objects.clear();
        self.of_objects = 0;
    }
}
