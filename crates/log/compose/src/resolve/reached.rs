//! Items of calls on the object that a path or a descriptor leads to.

use super::arg::Arg;
use super::calls::{call, looks_at_descriptor, LookupOutcome};
use super::items::{Item, Items};
use super::{found, objects};
use abi::Verb;
use plan::{NameUse, PathArg};
use record::record::{FileCaps, Inode, NameType};
use record::wire::{self, Event};

/// Adds the items of a call on the object that a path leads to.
pub(super) fn by_path(items: &mut Items, event: &Event<'_>, arg: PathArg, mut found: Arg<'_>) {
    let follow = arg.follow.by(&event.header().args);
    let is_nameless = found.text.is_empty() && looks_at_descriptor(event) == Some(true);
    match arg.use_ {
        NameUse::FileSystemKind => return items.named(&found),
        NameUse::Device => items.named(&found),
        _ => {}
    }

    match event.object(wire::TARSIER_OBJECT_TARGET, found.index) {
        Some(target) => {
            let inode = items.agree(&mut found, &target, follow);
            items.item(&found, NameType::Normal, inode);
        }
        None => {
            // If the call has two paths, the other one may be missing.
            let told = match LookupOutcome::by(event) {
                LookupOutcome::Missing if event.path(1).is_some() => LookupOutcome::Nothing,
                told => told,
            };
            items.looked_up(&found, follow, told);
        }
    }

    if is_nameless {
        if let Some(item) = items.last_mut() {
            item.name = None;
        }
    }

    let is_unmount = call(event).verb == Some(Verb::Unmount);
    if let Some(item) = items.last_mut().filter(|item| is_unmount && item.existed) {
        // For umount, audit does not read the file capabilities: AUDIT_INODE_NOEVAL.
        item.caps = FileCaps::Unknown;
    }
}

/// Adds the item of the object that the call's descriptor stands for.
pub(super) fn by_descriptor(items: &mut Items, event: &Event<'_>) {
    let target = event.object(wire::TARSIER_OBJECT_TARGET, 0);
    let (inode, path) = match (target, event.file(1)) {
        (Some(target), _) => objects::place(&target),
        (None, Some(file)) => {
            let mut path = Vec::new();
            file.walked(&mut path);
            let inode = Inode::from_wire(&file.inode);
            (found::descriptor_before(event, inode), path)
        }
        (None, None) => return,
    };

    items.push(Item {
        name: None,
        is_real: target.is_some() && !path.is_empty(),
        path,
        inode,
        nametype: NameType::Normal,
        existed: true,
        ..Item::default()
    });
}
