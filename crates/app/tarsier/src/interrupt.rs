//! Whether SIGINT has ended the reading of logs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Set by the first SIGINT.
static INTERRUPT: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// What the signal sets.
pub(crate) fn flag() -> &'static Arc<AtomicBool> {
    INTERRUPT.get_or_init(Arc::default)
}

/// Whether the command was interrupted: reading ends as if the logs ended here.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPT
        .get()
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}
