//! Finds the parts of an event: from the record of its call, or from its only record.

use super::normal::Finder;
use super::{objects, simple, verbs};
use abi::record_type as kinds;

/// The event cannot be told: it has no SYSCALL record among several.
#[derive(Debug)]
pub(super) struct NotNormal;

/// Finds the parts of the event, and puts the cursor back to its beginning.
///
/// # Errors
/// Several records, none of which is of a call.
pub(super) fn parts(finder: &mut Finder<'_, '_>) -> Result<(), NotNormal> {
    let is_call = finder.cursor.kind() == kinds::SYSCALL;
    let found = if finder.cursor.record_count() > 1 || is_call {
        call(finder)
    } else {
        simple::find(finder);
        Ok(())
    };
    finder.cursor.rewind();
    found
}

/// Events with the record of a call.
fn call(finder: &mut Finder<'_, '_>) -> Result<(), NotNormal> {
    let first_kind = finder.cursor.kind();
    while finder.cursor.kind() != kinds::SYSCALL {
        if !finder.cursor.next_record() || finder.cursor.kind() == 0 {
            return Err(NotNormal);
        }
    }

    finder.normal.kind = Some(verbs::group(first_kind));
    let record = finder.cursor.record_number();
    let call = finder.cursor.find(b"syscall").map(|_| finder.meaning());
    match finder.cursor.find(b"success") {
        Some(value) => {
            finder.success = i32::from(value != b"no");
            finder.normal.result = Some(finder.found_in(record));
        }
        None => back_to(finder, record),
    }

    if !finder.subject(b"auid", record) {
        back_to(finder, record);
    }
    if !finder.acting(b"uid", record) {
        back_to(finder, record);
    }

    call_fields(finder);
    finder.cursor.first_field();
    if !finder.how() {
        back_to(finder, record);
    }

    if finder
        .cursor
        .find(b"key")
        .is_some_and(|key| key != b"(null)")
    {
        finder.normal.key = Some(finder.found_in(record));
    }

    match first_kind {
        kinds::ANOM_LINK => finder.act_by_kind(first_kind),
        kinds::CONFIG_CHANGE => {
            if finder.cursor.find_anywhere(b"op").is_some() {
                finder.normal.action = Some(finder.meaning());
                finder.normal.object.place = simple::simple_object(finder, first_kind);
            }
        }
        _ => objects::deed(finder, &call.unwrap_or_default(), first_kind),
    }

    Ok(())
}

fn back_to(finder: &mut Finder<'_, '_>, record: usize) {
    finder.cursor.go_to_record(record);
    finder.cursor.first_field();
}

/// Session and further fields of the subject of a call.
fn call_fields(finder: &mut Finder<'_, '_>) {
    const NAMES: [&[u8]; 10] = [
        b"ppid", b"pid", b"gid", b"euid", b"suid", b"fsuid", b"egid", b"sgid", b"fsgid", b"tty",
    ];

    finder.cursor.rewind();
    loop {
        if finder.cursor.kind() == kinds::SYSCALL {
            let record = finder.cursor.record_number();
            if !finder.has_fields {
                finder.session(record);
                return;
            }
            for name in NAMES {
                finder.subject_field(name, record);
            }
            finder.session(record);
            finder.subject_field(b"subj", record);
            return;
        }
        if !finder.cursor.next_record() {
            return;
        }
    }
}
