//! Reads the logs of a report with all processors, and counts their events in the order of the log.

use super::options::PageOptions;
use crate::search_command::logs::{Defaults, Input, ReadEnd};
use crate::search_command::ordered::each_piece;
use crate::search_command::pipeline;
use crate::search_command::texts::{texts, threads_for};
use anyhow::Result;
use query::overview::Overview;
use query::report::runs::{Part, Reading};
use query::summary::{Digester, Digests, Summary};
use query::{Assembler, Dialect, EventView};

/// What a page shows of the events.
#[derive(Default)]
pub(super) struct PageCounts {
    pub(super) summary: Summary,
    pub(super) overview: Overview,
}

/// Digests of events that come one after the other, and their part of the overview.
struct CountedPiece {
    digests: Digests,
    overview: Overview,
}

impl CountedPiece {
    fn begin(digester: &mut Digester) -> CountedPiece {
        CountedPiece {
            digests: digester.begin(),
            overview: Overview::default(),
        }
    }

    fn add(&mut self, event: EventView<'_>, digester: &mut Digester) {
        digester.add(event, &mut self.digests);
        self.overview.add_but_program(event);
    }

    /// Ends the piece: many events of a program are one row.
    fn end(mut self) -> CountedPiece {
        for (node, exe, count) in self.digests.programs() {
            self.overview.add_program(node, exe, count.into());
        }
        self
    }
}

impl PageCounts {
    fn take(&mut self, piece: CountedPiece) -> Result<()> {
        self.summary.count_all(&piece.digests);
        self.overview.merge(piece.overview);
        Ok(())
    }
}

/// Counts plain files whose records stand together, as nearly all do. `None` for others.
///
/// # Errors
/// A log cannot be read.
pub(super) fn in_order(
    input: &Input,
    options: &PageOptions,
    defaults: &Defaults,
) -> Result<Option<PageCounts>> {
    let Some(texts) = texts(input, Dialect::Own)? else {
        return Ok(None);
    };
    let reading = Reading {
        dialect: Dialect::Own,
        timeout_s: defaults.whole_s,
        range: options.range,
    };

    let mut counted = PageCounts::default();
    let look = |digester: &mut Digester, _, text: &[u8], part: &mut Part| {
        let mut piece = CountedPiece::begin(digester);
        let extent = part.events(text, reading, |event| piece.add(event, digester))?;
        Ok((piece.end(), extent))
    };
    let workers = (0..threads_for(&texts)).map(|_| Digester::default());
    let mut workers: Vec<Digester> = workers.collect();
    let read = each_piece(&texts, reading, &mut workers, look, |piece| {
        counted.take(piece)
    })?;

    Ok(read.map(|_| counted))
}

/// Counts logs of any form. The inner error is the message for the user.
///
/// # Errors
/// A log cannot be read.
pub(super) fn in_any_order(
    input: &Input,
    options: &PageOptions,
    defaults: &Defaults,
) -> Result<Result<PageCounts, String>> {
    let assembler = Assembler::new(Dialect::Own, defaults.whole_s, options.range);
    let mut counted = PageCounts::default();
    let read = pipeline::run(
        input,
        assembler,
        Digester::default,
        |digester, batch| {
            let mut piece = CountedPiece::begin(digester);
            batch.events().for_each(|event| piece.add(event, digester));
            piece.end()
        },
        |piece, _| counted.take(piece),
    )?;

    Ok(match read.end {
        ReadEnd::Done => Ok(counted),
        ReadEnd::Refused(message) => Err(message),
        ReadEnd::Damaged => Err("tarsier: not all of the logs could be read".to_owned()),
    })
}
