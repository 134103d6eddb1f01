//! Records that are taken apart when something in them is asked for.

use crate::event::Record;
use crate::interpret::RecordFields;
use crate::Dialect;
use abi::record_type as kinds;
use std::cell::OnceCell;
use std::ops::Deref;

/// A record, and its names and values once they were asked for.
pub(crate) struct OnDemand<'e> {
    /// Record type, as [`RecordFields::kind`].
    pub(crate) kind: i32,
    record: Record<'e>,
    dialect: Dialect,
    fields: OnceCell<RecordFields<'e>>,
}

impl<'e> OnDemand<'e> {
    pub(crate) fn new(record: Record<'e>, dialect: Dialect) -> OnDemand<'e> {
        let mut made = OnDemand {
            kind: record.kind,
            record,
            dialect,
            fields: OnceCell::new(),
        };

        if !has_plain_type(made.record.text) {
            made.kind = made
                .fields
                .get_or_init(|| RecordFields::read(&made.record, dialect))
                .kind;
        }

        made
    }
}

impl<'e> OnDemand<'e> {
    /// A record behind that of a call, of which nothing is asked but which files it is about.
    pub(crate) fn of_call(record: Record<'e>, dialect: Dialect) -> OnDemand<'e> {
        let path = (record.kind == kinds::PATH).then(|| RecordFields::of_path(&record));
        OnDemand {
            // The log's reader knows the type by the whole first word, as the fields would.
            kind: record.kind,
            record,
            dialect,
            fields: path.flatten().map_or_else(OnceCell::new, OnceCell::from),
        }
    }

    /// The type as the log has it.
    pub(crate) fn type_name(&self) -> &'e [u8] {
        self.record.type_name()
    }
}

impl<'e> Deref for OnDemand<'e> {
    type Target = RecordFields<'e>;

    fn deref(&self) -> &RecordFields<'e> {
        self.fields
            .get_or_init(|| RecordFields::read(&self.record, self.dialect))
    }
}

/// Whether the log's reader and auparse certainly read the same type: it is the first word, short, and without
/// punctuation.
fn has_plain_type(text: &[u8]) -> bool {
    let name = text.strip_prefix(b"type=").and_then(|rest| {
        let end = rest.iter().take(40).position(|byte| *byte == b' ')?;
        Some(&rest[..end])
    });
    name.is_some_and(|name| {
        !name.is_empty()
            && name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_that_of_the_fields() {
        for text in [
            "type=SYSCALL msg=audit(1700000000.123:3): a=b",
            "type=SYSCALL: msg=audit(1700000000.123:3): a=b",
            "type=UNKNOWN[1999] msg=audit(1700000000.123:3): a=b",
            "node=h type=PATH msg=audit(1700000000.123:3): a=b",
            " type=PATH msg=audit(1700000000.123:3): a=b",
            "type= type=PATH msg=audit(1700000000.123:3): a=b",
            "nothing",
        ] {
            for dialect in [Dialect::Own, Dialect::Compat] {
                let kind =
                    crate::head::head(text.as_bytes(), 0, dialect).map_or(0, |head| head.kind);
                let record = || Record {
                    kind,
                    text: text.as_bytes(),
                    names: None,
                };
                let made = OnDemand::new(record(), dialect);
                assert_eq!(
                    made.kind,
                    RecordFields::read(&record(), dialect).kind,
                    "{text}"
                );
            }
        }
    }
}
