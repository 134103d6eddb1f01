//! A call that a test adds to the tables, to see that whoever reads them needs nothing else.

use super::row::CallRow;
use crate::arch::Arch;
use std::sync::OnceLock;

static ADDED: OnceLock<(CallRow, &'static [(Arch, u32)])> = OnceLock::new();

/// Adds a row, with the numbers of the call, to what every look-up of this process finds. For tests: it is not part of
/// any program.
///
/// # Panics
/// If a row has been added.
#[doc(hidden)]
pub fn add_call(row: CallRow, numbers: &'static [(Arch, u32)]) {
    assert!(ADDED.set((row, numbers)).is_ok(), "one call can be added");
}

/// The row that was added.
pub(crate) fn row() -> Option<&'static CallRow> {
    ADDED.get().map(|added| &added.0)
}

/// Number and name of the added call, if the architecture has it.
pub(crate) fn call(arch: Arch) -> Option<(u32, &'static str)> {
    let (row, numbers) = ADDED.get()?;
    let number = numbers.iter().find(|number| number.0 == arch)?;
    Some((number.1, row.name))
}
