//! What an event counts for in a summary: its texts, by table.

use super::Kind;
use crate::facts::{Facts, NO_LOGIN};
use crate::memo::Memo;

/// Tables of the main summary; a report on one thing has only the first.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Main,
    Terminals,
    Hosts,
    Exes,
    Comms,
    Files,
    Keys,
}

pub(super) const COLUMNS: usize = Column::Keys as usize + 1;

/// What every call of a caller counts for.
#[derive(Debug)]
pub(super) struct CallerCounts {
    pub(super) texts: Vec<(Column, Box<[u8]>)>,
    pub(super) pid: Option<i32>,
    pub(super) hits: u64,
    /// Place in the log of the first call.
    pub(super) first: u128,
}

/// Callers that have not been counted.
pub(super) type Callers = Memo<CallerCounts>;

/// The texts of the main summary, but for files.
pub(super) fn each_text(facts: &Facts<'_>, mut add: impl FnMut(Column, &[u8])) {
    if facts.ids.auid != NO_LOGIN {
        add(Column::Main, &facts.ids.auid.to_ne_bytes());
    }

    let single = [
        (Column::Terminals, &facts.terminal),
        (Column::Hosts, &facts.host),
        (Column::Exes, &facts.exe),
        (Column::Comms, &facts.comm),
    ];
    for (column, text) in single {
        if let Some(text) = text {
            add(column, text);
        }
    }

    keys(facts).for_each(|key| add(Column::Keys, key));
}

/// The texts of a report on one thing, if they are the log's own.
pub(super) fn each_of_kind(kind: Kind, facts: &Facts<'_>, mut add: impl FnMut(&[u8])) {
    match kind {
        Kind::Host => facts.host.iter().for_each(|host| add(host)),
        Kind::Terminal => facts.terminal.iter().for_each(|terminal| add(terminal)),
        Kind::Exe => facts.exe.iter().for_each(|exe| add(exe)),
        Kind::Comm => facts.comm.iter().for_each(|comm| add(comm)),
        Kind::File => facts
            .files
            .names
            .iter()
            .flatten()
            .for_each(|file| add(file)),
        Kind::Key => keys(facts).for_each(add),
        Kind::Avc => {
            let objects = facts.labels.iter().filter(|label| label.granted.is_some());
            objects.filter_map(|label| label.object).for_each(add);
        }
        _ => {}
    }
}

/// Keys, without the `(null)` of calls that have none.
fn keys<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = &'f [u8]> {
    let keys = facts.keys.iter().flatten().map(|key| &**key);
    keys.filter(|key| *key != b"(null)")
}
