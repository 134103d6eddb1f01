//! Records that exclude and user rules drop.

use super::recorder::Generation;
use event::wire::Event;
use event::RecordType;

/// Whether an exclude rule drops a record of this kind in `event`.
pub(super) fn excludes(_generation: &Generation, _kind: RecordType, _event: &Event<'_>) -> bool {
    false
}
