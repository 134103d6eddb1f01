//! Conditions that ausearch does not have: `--unit`, `--container`, `--where`.

use query::expr::Expr;
use query::{Dialect, Event, Interpreter, RecordFields};

/// Conditions on an event beyond ausearch's options. Without conditions, every event passes.
#[derive(Default)]
pub(super) struct Conditions {
    pub(super) workloads: Workloads,
    /// Expressions with their texts.
    pub(super) exprs: Vec<(String, Expr)>,
}

/// The units and containers of events.
#[derive(Debug, Clone, Default)]
pub(super) struct Workloads {
    /// Names of units; the event must be of each of them.
    pub(super) units: Vec<Vec<u8>>,
    /// Prefixes of container ids; the event must be of each of these containers.
    pub(super) containers: Vec<Vec<u8>>,
}

impl Conditions {
    /// A copy of the conditions for another thread; `None` if an expression cannot be compiled again.
    pub(super) fn again(&self) -> Option<Conditions> {
        let again = |text: &String| Some((text.clone(), Expr::parse(text).ok()?));
        let exprs = self.exprs.iter().map(|(text, _)| again(text));
        Some(Conditions {
            workloads: self.workloads.clone(),
            exprs: exprs.collect::<Option<_>>()?,
        })
    }

    /// Whether an event fulfils all conditions.
    pub(super) fn hold(&self, event: &Event, interpreter: &Interpreter) -> bool {
        self.exprs
            .iter()
            .all(|(_, expr)| expr.matches(event, interpreter))
            && self.workloads.hold(event)
    }
}

impl Workloads {
    /// The texts that lines of an event must have, plain or in hex.
    pub(super) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let texts = self.units.iter().chain(&self.containers);
        texts.map(|text| &text[..])
    }

    /// Whether an event is of all these units and containers.
    pub(super) fn hold(&self, event: &Event) -> bool {
        self.units
            .iter()
            .all(|unit| has_workload(event, &[b"unit", b"user_unit"], |name| is_unit(name, unit)))
            && self
                .containers
                .iter()
                .all(|id| has_workload(event, &[b"container"], |name| name.starts_with(id)))
    }
}

fn is_unit(name: &[u8], unit: &[u8]) -> bool {
    name == unit || name.strip_suffix(b".service") == Some(unit)
}

/// Whether a field of one of these names, from ENRICHED or from a message, has a value that `is_it` takes.
fn has_workload(event: &Event, fields: &[&[u8]], is_it: impl Fn(&[u8]) -> bool) -> bool {
    event.records().any(|record| {
        let record = RecordFields::read(&record, Dialect::Own);
        fields.iter().any(|field| {
            let name = record.names.as_ref().and_then(|names| names.get(field));
            name.or_else(|| record.get(field))
                .is_some_and(|value| is_it(&unquoted(value)))
        })
    })
}

fn unquoted(value: &[u8]) -> Vec<u8> {
    match value {
        [b'"', inner @ .., b'"'] => inner.to_vec(),
        // A container's id is 64 hex digits in quotes; without quotes they are encoded text.
        _ if !value.is_empty() && record::text::is_hex(value) && value.len().is_multiple_of(2) => {
            let mut text = Vec::new();
            record::text::unhex(&mut text, value);
            text
        }
        _ => value.to_vec(),
    }
}
