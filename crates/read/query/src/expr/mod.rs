//! Expressions of ausearch-expression(5): `(comm r= "\"cat\"" && !auid i= root) || \record_type == LOGIN`.
//!
//! An expression is evaluated for each record; it is true for an event if it is true for one of its records.

mod parse;
mod regex;
mod token;

use crate::event::{Event, Key, Record};
use crate::interpret::{Interpreter, RecordFields};
use crate::Dialect;
use regex::Regex;
use std::cmp::Ordering;

/// An expression.
pub struct Expr(Node);

/// Error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprError {
    /// Byte of the expression, from 0.
    pub at: usize,
    /// Text that says what was found or expected.
    pub message: String,
}

impl ExprError {
    fn new(at: usize, message: impl Into<String>) -> ExprError {
        ExprError {
            at,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for ExprError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "character {}: {}", self.at + 1, self.message)
    }
}

impl std::error::Error for ExprError {}

enum Node {
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    /// The text of the field, and whether it is to be equal.
    Raw(Vec<u8>, bool, Vec<u8>),
    /// The meaning of the field, and whether it is to be equal.
    Meaning(Vec<u8>, bool, Vec<u8>),
    /// Second, millisecond and perhaps serial.
    Time(Order, (u64, u32, Option<u64>)),
    Kind(Order, i32),
    Regex(Regex),
}

/// A comparison of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
    NotEqual,
}

impl Order {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Order::Less => ordering.is_lt(),
            Order::LessOrEqual => ordering.is_le(),
            Order::Equal => ordering.is_eq(),
            Order::GreaterOrEqual => ordering.is_ge(),
            Order::Greater => ordering.is_gt(),
            Order::NotEqual => ordering.is_ne(),
        }
    }
}

/// A record, whose fields are read when they are asked for.
struct LazyRecord<'e> {
    record: Record<'e>,
    key: &'e Key,
    fields: Option<RecordFields<'e>>,
}

impl<'e> LazyRecord<'e> {
    fn fields(&mut self) -> &RecordFields<'e> {
        self.fields
            .get_or_insert_with(|| RecordFields::read(&self.record, Dialect::Own))
    }
}

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// The text is not an expression; the error names the place.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        parse::parse(text).map(Expr)
    }

    /// Whether the expression is true for a record of the event.
    pub fn matches(&self, event: &Event, interpreter: &Interpreter) -> bool {
        event.records().any(|record| {
            let mut asked = LazyRecord {
                record,
                key: event.key(),
                fields: None,
            };
            self.0.is_true(&mut asked, interpreter)
        })
    }
}

impl Node {
    fn is_true(&self, asked: &mut LazyRecord<'_>, interpreter: &Interpreter) -> bool {
        match self {
            Node::Not(node) => !node.is_true(asked, interpreter),
            Node::And(a, b) => a.is_true(asked, interpreter) && b.is_true(asked, interpreter),
            Node::Or(a, b) => a.is_true(asked, interpreter) || b.is_true(asked, interpreter),
            Node::Raw(name, is_equal, value) => {
                let found = asked.fields().get(name);
                found.is_some_and(|found| (found == &value[..]) == *is_equal)
            }
            Node::Meaning(name, is_equal, value) => {
                let found = asked.fields().meaning(name, interpreter);
                found.is_some_and(|found| (found == *value) == *is_equal)
            }
            Node::Time(order, (sec, msec, serial)) => {
                let key = asked.key;
                let serial = serial.unwrap_or(key.serial);
                order.holds((key.sec, key.msec, key.serial).cmp(&(*sec, *msec, serial)))
            }
            Node::Kind(order, kind) => order.holds(asked.record.kind.cmp(kind)),
            Node::Regex(regex) => regex.is_match(asked.record.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assembler, Escape, MachineNames, TimeRange};

    const LOG: &str =
        "type=SYSCALL msg=audit(1700000000.500:7): arch=c000003e syscall=257 success=no \
        exit=-13 a0=1 a1=2 ppid=1 pid=2 auid=1000 comm=\"cat\" exe=\"/bin/cat\" key=(null)\n\
        type=CWD msg=audit(1700000000.500:7): cwd=\"/tmp\"\n";

    fn is_true(text: &str) -> bool {
        let mut assembler = Assembler::new(Dialect::Own, 2, TimeRange::default());
        for line in LOG.lines() {
            assembler.add(line.as_bytes());
        }
        assembler.finish();
        let event = assembler.pop().expect("an event");
        let interpreter = Interpreter::new(Dialect::Own, Escape::Raw, MachineNames::none());
        Expr::parse(text).expect(text).matches(&event, &interpreter)
    }

    #[test]
    fn expressions_mean_what_the_manual_page_says() {
        let (right, wrong) = (true, false);
        for (text, expected) in [
            (r#"pid r= 2"#, right),
            (r#"pid r!= 2"#, wrong),
            (r#"comm r= "\"cat\"""#, right),
            (r#"comm i= cat"#, right),
            (r#"syscall i= openat && exit r= "-13""#, right),
            // Of the same record.
            (r#"syscall i= openat && cwd i= "/tmp""#, wrong),
            (r#"nosuch r= x || nosuch r!= x"#, wrong),
            (r#"!(nosuch r= "") && comm i= cat"#, right),
            (r#"! comm i= dog && pid r= 3 || cwd i= "/tmp""#, right),
            (r#"\record_type == CWD"#, right),
            (r#"\record_type == 1302"#, wrong),
            (r#"\timestamp >= "ts:1700000000.500""#, right),
            (r#"\timestamp < "ts:1700000000.500""#, wrong),
            (r#"\timestamp_ex == "ts:1700000000.500:7""#, right),
            (r#"\timestamp_ex > "ts:1700000000.500:7""#, wrong),
            (r#"\regexp /exe="\/bin\/c.t"/"#, right),
            (r#"\regexp "^type=PATH""#, wrong),
        ] {
            assert_eq!(is_true(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        for (text, at) in [
            ("", 0),
            ("pid", 3),
            ("pid <= 2", 4),
            ("(pid r= 2", 9),
            ("pid r= 2 )", 9),
            ("pid r= -2", 7),
            ("\\nosuch == 1", 1),
            ("\\timestamp == 1", 14),
            ("\\regexp /(/", 8),
            ("a r= \"x", 5),
            ("\\record_type == NOSUCH", 16),
        ] {
            let error = Expr::parse(text).err().expect(text);
            assert_eq!(error.at, at, "{text}: {error}");
        }
        let deep = format!("{}pid r= 2{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(Expr::parse(&deep).is_err());
    }
}
