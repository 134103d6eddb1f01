//! What an io_uring operation used. Its names and descriptors are known when it is submitted, but the kernel looks at them
//! when it is carried out: by a worker, or when another operation that it is linked to has ended. Until then, any task of
//! the process may have put something else in their places.

use abi::exit::{ECANCELED, ENOENT};
use plan::Shape;
use record::wire::{self, Event};

/// Whether the operation may have used other objects than those that its names and descriptors stood for when it was
/// submitted. Hooks on kernel functions see which ones it used. What was cancelled or found nothing used none.
pub(crate) fn used_later(event: &Event<'_>, shape: &Shape) -> bool {
    if !event.has_flag(wire::TARSIER_URING) || matches!(event.exit(), Some(ENOENT | ECANCELED)) {
        return false;
    }
    let has_paths = shape.paths.iter().any(Option::is_some);
    let has_file = shape.fd != plan::NONE;
    let is_file_sure = event.file(1).is_some_and(|file| !file.is_unsure());
    has_paths && !event.objects().any(|object| is_used(object.role)) || has_file && !is_file_sure
}

/// Whether an object with this role is one that the operation used.
fn is_used(role: wire::tarsier_object_role) -> bool {
    !matches!(role, wire::TARSIER_OBJECT_NAME | wire::TARSIER_OBJECT_CWD)
}

/// Whether the file that an operation has opened, found by the number in its result, is the one that its name led to: the
/// same object, or one that it created under that name.
pub(super) fn opened_by_name(event: &Event<'_>) -> bool {
    let is_operation = event.has_flag(wire::TARSIER_URING);
    let file = event
        .file(0)
        .filter(|file| is_operation && file.is_unsure());
    let Some(file) = file else {
        return true;
    };

    let before = event.before(0).unwrap_or_default();
    if before.known & wire::TARSIER_FOUND_TARGET != 0 {
        return (before.target.ino, before.target.dev) == (file.inode.ino, file.inode.dev);
    }

    let is_created = u32::from(file.flags) & wire::TARSIER_PART_CREATED != 0;
    let last = |path: &[u8]| path.rsplit(|&byte| byte == b'/').next().map(<[u8]>::to_vec);
    let mut path = Vec::new();
    file.walked(&mut path);
    let text = event.path(0).map(|text| text.data);
    is_created && text.is_some_and(|text| last(text) == last(&path))
}
