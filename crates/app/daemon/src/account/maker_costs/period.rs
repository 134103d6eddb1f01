//! Costs of the makers of events in a period, by unit, container, uid and executable.

use super::table::{ById, Row, Sums, Table};
use crate::protocol::MakerKind;
use std::sync::Arc;
use std::time::Instant;

/// A maker of events, as one of the kinds sees it.
#[derive(Clone, Debug)]
pub(super) enum Name {
    /// The name, after its hash with a random key.
    Known(u64, Arc<[u8]>),
    /// No name: the maker is in no unit or container, or is a thread of the kernel.
    None,
    /// The name could not be found out.
    Unknown,
}

/// Makers of one kind.
#[derive(Debug, Default)]
struct Makers {
    named: Table,
    nameless: Sums,
    unknown: Sums,
}

/// The costs of a period.
#[derive(Debug)]
pub(super) struct Period {
    pub(super) began: Instant,
    total: Sums,
    kinds: [Makers; MakerKind::EVERY.len()],
}

/// The makers of one kind, and their costs in one period or several.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Makers with a name, most bytes first.
    pub(super) named: Vec<Row>,
    pub(super) nameless: Sums,
    pub(super) unknown: Sums,
    pub(super) total: Sums,
    /// Limit of the bytes of a name that is not there.
    pub(super) unseen_bytes_max: u64,
    /// Number of times that a name was replaced by another.
    pub(super) replaced: u64,
}

impl Period {
    /// A period that begins now.
    pub(super) fn new() -> Period {
        Period {
            began: Instant::now(),
            total: Sums::default(),
            kinds: Default::default(),
        }
    }

    /// Counts events of a maker, which has a name of each kind.
    pub(super) fn add(&mut self, names: &[Name; MakerKind::EVERY.len()], sums: Sums) {
        self.total += sums;
        for (makers, name) in self.kinds.iter_mut().zip(names) {
            match name {
                Name::Known(id, name) => makers.named.add(*id, name, sums),
                Name::None => makers.nameless += sums,
                Name::Unknown => makers.unknown += sums,
            }
        }
    }
}

/// The makers of all these periods.
pub(super) fn found(periods: &[&Period], kind: MakerKind) -> Found {
    let mut found = Found::default();
    let mut rows: ById<(Row, u64)> = ById::default();

    for period in periods {
        let makers = &period.kinds[kind as usize];
        let unseen = makers.named.unseen_bytes_max();
        for row in makers.named.rows() {
            let (all, unseen_elsewhere) = rows.entry(row.id).or_insert_with(|| {
                let none = Row {
                    sums: Sums::default(),
                    missing_bytes_max: 0,
                    ..row.clone()
                };
                (none, 0)
            });
            all.sums += row.sums;
            all.missing_bytes_max += row.missing_bytes_max;
            *unseen_elsewhere += unseen;
        }

        found.nameless += makers.nameless;
        found.unknown += makers.unknown;
        found.total += period.total;
        found.unseen_bytes_max += unseen;
        found.replaced += makers.named.replaced;
    }

    // A maker without a row in a period may have had as much there as the table says of those it has replaced.
    let unseen = found.unseen_bytes_max;
    let rows = rows.into_values().map(|(row, seen)| Row {
        missing_bytes_max: row.missing_bytes_max + (unseen - seen),
        ..row
    });
    found.named = rows.collect();

    found.named.sort_by(|a, b| {
        let by_bytes = b.sums.bytes.cmp(&a.sums.bytes);
        by_bytes.then_with(|| a.name.cmp(&b.name))
    });
    found
}
