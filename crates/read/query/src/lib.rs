//! Searches audit logs as ausearch does: lines → events → those that match.
//!
//! * [`Lines`]: lines of any reader.
//! * [`Assembler`]: the state machine from lines to [`Event`]s.
//! * [`Facts`]: the fields of an event that a question is about, read when they are asked for.
//! * [`Filter`]: ausearch's options, compiled once.
//! * [`expr`]: expressions as of ausearch-expression(5).
//! * [`index`]: where values are in a log, so that less of it is read.
//! * [`InOrder`]: the order in which found events come out, if a log is read in pieces.
//! * [`Interpreter`]: what values mean; [`RecordFields`]: a record as names and values.
//! * [`EventSummary`]: an event in short; [`Tree`] and [`Touched`]: processes with their descendants, and files.
//! * [`time`]: dates and times of ausearch, by the C library.
//!
//! Memory is bounded: the open events of two seconds are kept, and at most 96 MiB of them.
//!
//! ```
//! use query::{Assembler, Dialect, Facts, Wanted};
//! let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
//! assembler.add(b"type=USER msg=audit(1795229629.588:9): pid=7 uid=0 text\n");
//! assembler.finish();
//! let event = assembler.pop().expect("one event");
//! let wanted = Wanted { pid: true, ..Wanted::default() };
//! let facts = Facts::read(&event, &wanted, Dialect::Own).expect("facts");
//! assert_eq!(facts.ids.pid, 7);
//! ```

mod assemble;
mod avc;
mod batch;
mod calls;
mod enriched;
mod event;
mod event_summary;
pub mod expr;
mod facts;
mod feed;
mod fields;
mod filter;
mod format;
mod head;
mod in_order;
pub mod index;
mod interpret;
mod json;
pub mod kind;
mod lines;
mod literal;
mod memo;
mod messages;
mod near;
mod number;
mod output;
pub mod overview;
mod own;
mod prefix;
mod read;
pub mod report;
pub mod row;
pub mod summary;
pub mod time;
mod touched;
mod tree;
mod usual;
mod walk;

pub use assemble::{Assembler, TimeRange};
pub use batch::Batch;
pub use event::{Event, EventView, Key, Record};
pub use event_summary::{EventSummary, Item};
pub use facts::{Call, Facts, Files, Guest, Ids, Labels, Others, Wanted, NO_ID, NO_LOGIN};
pub use feed::Feed;
pub use filter::{Filter, Matcher, UserName};
pub use format::{Columns, Extra, Interpreted, Sentences};
pub use in_order::{InOrder, PieceEvents, Sink};
pub use interpret::{
    field_type, Context, Escape, Field, FieldType, Interpretations, Interpreter, Machine,
    MachineNames, RecordFields,
};
pub use json::json_lines;
pub use lines::Lines;
pub use output::{write_default, write_raw};
pub use touched::Touched;
pub use tree::Tree;

/// Byte between a line and its interpretations in ENRICHED.
pub(crate) const SEPARATOR: u8 = 0x1d;

/// The program whose behaviour is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Lines are not cut, and an event is kept even if a field cannot be read.
    #[default]
    Own,
    /// ausearch and aureport 4.x, byte for byte.
    Compat,
}

impl Dialect {
    /// Bytes at which a line is cut: MAX_AUDIT_MESSAGE_LENGTH of libaudit, less C's zero.
    pub fn line_bytes_max(self) -> Option<usize> {
        self.is_compat().then_some(8969)
    }

    /// Whether this is the behaviour of another program.
    pub fn is_compat(self) -> bool {
        self != Dialect::Own
    }
}

/// A decimal number with a sign at the beginning of `text`; the greatest or least of 64 bits if it has more.
pub fn c_decimal(text: &[u8]) -> i64 {
    number::signed_decimal(text).unwrap_or(match text.first() {
        Some(b'-') => i64::MIN,
        _ => i64::MAX,
    })
}

/// The text of a value of ENRICHED: without its quotes, or decoded.
pub fn unescaped(value: &[u8]) -> Vec<u8> {
    interpret::escaped(value, Dialect::Own)
}

/// A number with a sign at the beginning of `text`, as C writes it: hexadecimal after `0x`, octal
/// after `0`. `None` if it has more than 64 bits.
pub fn c_number(text: &[u8]) -> Option<i64> {
    number::signed(text).ok()
}
