//! `--format interpret`: the records of an event, last one first, with the meaning of their values.

use super::without_node;
use crate::event::{Event, Record};
use crate::interpret::{field_type, Context, FieldType, Interpretations, Interpreter, Machine};
use crate::number::unsigned;
use crate::walk::find_from;
use crate::{time, Dialect};
use abi::record_type as kinds;
use abi::Arch;

/// Prints events with the meaning of their values.
#[derive(Default)]
pub struct Interpreted {
    /// Arguments of the last call, by which ausearch also names those of SECCOMP records.
    a0: u64,
    a1: u64,
    /// Whether the filter compares names of users. ausearch then shows the record that it prints first with those names.
    is_by_name: bool,
}

/// A field, as its record is walked through.
struct Part<'r> {
    name: &'r [u8],
    value: &'r [u8],
    has_comma: bool,
}

impl Interpreted {
    /// A format for events of a filter that compares names of users, or does not.
    pub fn new(is_by_name: bool) -> Interpreted {
        Interpreted {
            is_by_name,
            ..Interpreted::default()
        }
    }

    /// Appends an event. Returns the number of records without a readable time.
    pub fn write(&mut self, event: &Event, interpreter: &Interpreter, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(b"----\n");
        interpreter.begin_event();
        if interpreter.dialect() == Dialect::Own {
            (self.a0, self.a1) = (0, 0);
        }

        let mut records = event.records().rev();
        let Some(last) = records.next() else {
            return 0;
        };

        let is_by_name = self.is_by_name && interpreter.dialect().is_compat();
        let has_head = event.records().len() == 1 || event.kind() == kinds::SYSCALL;
        let first = Record {
            names: if is_by_name && has_head {
                event.names()
            } else {
                last.names
            },
            ..last
        };

        let mut bad = usize::from(!self.record(&first, event, interpreter, out));
        if (kinds::DAEMON_START..kinds::SYSCALL).contains(&last.kind) {
            return bad;
        }
        for record in records {
            bad += usize::from(!self.record(&record, event, interpreter, out));
        }

        bad
    }

    /// Appends a record. False if it has no time.
    fn record(
        &mut self,
        record: &Record<'_>,
        event: &Event,
        interpreter: &Interpreter,
        out: &mut Vec<u8>,
    ) -> bool {
        let text = without_node(record, event);
        let Some(open) = memchr::memchr(b'(', text) else {
            return false;
        };
        if let Some(node) = &event.key().node {
            out.extend_from_slice(b"node=");
            out.extend_from_slice(node);
            out.push(b' ');
        }

        let name = u32::try_from(record.kind)
            .ok()
            .and_then(|kind| crate::kind::name(kind, interpreter.dialect()));
        match name {
            Some(name) => out.extend_from_slice(format!("type={name} msg=audit(").as_bytes()),
            None => out.extend_from_slice(&text[..=open]),
        }

        let Some(close) = memchr::memchr(b')', &text[open..]) else {
            return true;
        };
        let key = event.key();
        time::write_date_time(key.sec, out);
        out.extend_from_slice(format!(".{:03}:{}) ", key.msec, key.serial).as_bytes());
        if record.kind == kinds::SYSCALL {
            (self.a0, self.a1) = arguments(text);
        }

        let names = record.names.and_then(Interpretations::read);
        self.fields(
            &text[open + close + 1..],
            record.kind,
            names.as_ref(),
            interpreter,
            out,
        );

        true
    }

    fn fields(
        &self,
        text: &[u8],
        kind: i32,
        names: Option<&Interpretations<'_>>,
        interpreter: &Interpreter,
        out: &mut Vec<u8>,
    ) {
        let mut context = Context {
            kind,
            machine: Machine::Unset,
            syscall: -1,
            a0: self.a0,
            a1: self.a1,
            cwd: None,
            names,
            nth: 0,
        };

        let mut named: Vec<&[u8]> = Vec::new();
        let dialect = interpreter.dialect();
        let (mut rest, mut has_comma, mut is_found) = (Some(text), false, false);
        while let Some(text) = rest.filter(|text| !text.is_empty()) {
            let Some(equals) = memchr::memchr(b'=', text) else {
                break;
            };
            is_found = true;
            has_comma = false;
            out.extend_from_slice(&text[..=equals]);
            let name = &text[memchr::memrchr(b' ', &text[..equals]).unwrap_or(0)..equals];
            if name == b"msg" {
                rest = Some(&text[equals + 1..]);
                continue;
            }
            let name = name.strip_prefix(b"'").unwrap_or(name);
            let (part, after) = part(&text[equals + 1..], name, kind);
            has_comma = part.has_comma;
            rest = after;
            if names.is_some() && !dialect.is_compat() {
                let name = part.name.trim_ascii_start();
                context.nth = named.iter().filter(|known| **known == name).count();
                named.push(name);
            }
            value(&part, &mut context, interpreter, out);
        }

        let tail = rest.unwrap_or_default();
        let is_shown = (!is_found && !tail.is_empty())
            || has_comma
            || (dialect == Dialect::Own && !tail.is_empty());
        if is_shown {
            crate::output::write_escaped(tail, interpreter.escape(), out);
        }

        out.push(b'\n');
    }
}

/// The value at the beginning of `text`, and what follows it.
fn part<'r>(text: &'r [u8], name: &'r [u8], kind: i32) -> (Part<'r>, Option<&'r [u8]>) {
    let whole = |value, has_comma, rest| {
        let part = Part {
            name,
            value,
            has_comma,
        };
        (part, rest)
    };

    if let Some(quote @ (b'\'' | b'"')) = text.first() {
        return match memchr::memchr(*quote, &text[1..]) {
            Some(end) => {
                let (value, rest) = text.split_at(end + 2);
                whole(value, false, Some(rest.get(1..).unwrap_or_default()))
            }
            None => whole(text, false, None),
        };
    }

    let comma = memchr::memchr(b',', text);
    let blank = memchr::memchr(b' ', text);
    let is_label = || field_type(kind, name, text) == FieldType::MacLabel;
    match (comma, blank) {
        (Some(comma), Some(blank)) if comma < blank && !is_label() => {
            whole(&text[..comma], true, Some(&text[comma + 1..]))
        }
        (_, Some(blank)) => whole(&text[..blank], false, Some(&text[blank + 1..])),
        (Some(comma), None) if !is_label() => whole(&text[..comma], true, Some(&text[comma + 1..])),
        _ => whole(text, false, None),
    }
}

/// Appends the meaning of a value.
fn value(part: &Part<'_>, context: &mut Context<'_>, interpreter: &Interpreter, out: &mut Vec<u8>) {
    let blanks = part
        .name
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'('))
        .count();
    let name = &part.name[blanks..];

    let value = match (name, part.value) {
        (b"acct", [value @ .., b':']) => value,
        _ => part.value,
    };
    let field = field_type(context.kind, name, value);
    if let Err(message) = note_call(name, value, context) {
        out.extend_from_slice(message.as_bytes());
        out.extend_from_slice(b"(");
        out.extend_from_slice(value);
        out.extend_from_slice(b") ");
        return;
    }

    let of_call = is_of_call(context.kind);
    let shown = Context {
        syscall: if of_call { context.syscall } else { 0 },
        ..*context
    };

    match field {
        FieldType::Unclassified => {
            out.extend_from_slice(value);
            out.push(if part.has_comma { b',' } else { b' ' });
        }
        _ => {
            let text = interpreter.value_of_type(field, &shown, name, value);
            match name {
                b"key" => write_keys(&text, out),
                _ => out.extend_from_slice(&text),
            }
            if field != FieldType::TtyData {
                out.push(b' ');
            }
        }
    }
}

fn is_of_call(kind: i32) -> bool {
    matches!(kind, kinds::SYSCALL | kinds::SECCOMP | kinds::URINGOP)
}

/// Keeps the architecture and the number of the call for the fields that follow.
fn note_call(name: &[u8], value: &[u8], context: &mut Context<'_>) -> Result<(), &'static str> {
    if !is_of_call(context.kind) {
        return Ok(());
    }

    if context.kind == kinds::URINGOP {
        context.machine = Machine::Uring;
    } else if context.machine == Machine::Unset {
        context.machine = Machine::Known(Arch::native());
    }

    match name {
        b"arch" => {
            let number = unsigned(value, 16).map_err(|_| "arch conversion error")?;
            context.machine = Machine::of_elf(number as u32);
        }
        b"syscall" | b"uring_op" if context.syscall < 0 => {
            context.syscall = unsigned(value, 10).map_err(|_| "syscall conversion error")? as i32;
        }
        _ => {}
    }

    Ok(())
}

/// Several keys are shown as several fields.
fn write_keys(keys: &[u8], out: &mut Vec<u8>) {
    for (number, key) in keys.split(|byte| *byte == 1).enumerate() {
        if number > 0 {
            out.extend_from_slice(b" key=");
        }
        out.extend_from_slice(key);
    }
}

/// The first two arguments of a call.
fn arguments(text: &[u8]) -> (u64, u64) {
    let at = find_from(text, 0, b"syscall=").unwrap_or(0);
    let read = |at, name| {
        let from = find_from(text, at, name)?;
        Some((from, unsigned(&text[from..], 16).unwrap_or(0)))
    };
    let Some((at, a0)) = read(at, b"a0=") else {
        return (0, 0);
    };
    (a0, read(at, b"a1=").map_or(0, |(_, a1)| a1))
}
