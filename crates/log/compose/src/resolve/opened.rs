//! Items of the calls that open a file by its name, and may create it.

use super::arg::Arg;
use super::calls::LookupOutcome;
use super::items::{is_link, Item, Items};
use super::kernel::Kernel;
use super::objects;
use super::operations::opened_by_name;
use super::text;
use abi::exit::{EEXIST, EISDIR, ELOOP, ENOTDIR};
use plan::{Shape, ShapeKind};
use record::record::{Inode, NameType};
use record::wire::{self, Event};

const O_CREAT: u64 = 0o100;
const O_EXCL: u64 = 0o200;
// These differ between architectures.
const O_NOFOLLOW: u64 = libc::O_NOFOLLOW as u64;
const O_TMPFILE: u64 = libc::O_TMPFILE as u64;

/// Adds the items of an open of `arg`.
pub(super) fn add(
    items: &mut Items,
    kernel: Kernel,
    (event, shape): (&Event<'_>, &Shape),
    arg: &mut Arg<'_>,
    succeeded: bool,
) {
    let flags = open_flags(event, shape);
    let creates = flags & O_CREAT != 0;
    let object = if succeeded {
        event.object(wire::TARSIER_OBJECT_OPENED, 0)
    } else {
        None
    };
    let opened = object.map(|opened| objects::with_path(opened, event.file(0)));

    if let Some(opened) = opened {
        if creates && (opened.is_created() || !kernel.opens_first) {
            arg.parent_inode = objects::parent(event, 0).0;
            items.parent(arg);
        }
        if opened.is_created() && kernel.opens_first && names_link(items, arg) {
            through_link(items, arg);
        }
        let inode = items.agree(arg, &opened, true);
        let nametype = if opened.is_created() {
            NameType::Create
        } else {
            NameType::Normal
        };
        return items.item(arg, nametype, inode);
    }

    let file = if succeeded && opened_by_name(event) {
        event.file(0)
    } else {
        None
    };
    let is_made = file
        .as_ref()
        .is_some_and(|f| u32::from(f.flags) & wire::TARSIER_PART_CREATED != 0);
    if creates && (is_made || !kernel.opens_first) {
        items.parent(arg);
    }

    match file.as_ref().and_then(|file| Inode::from_wire(&file.inode)) {
        Some(inode) => {
            let nametype = if is_made {
                NameType::Create
            } else {
                NameType::Normal
            };
            items.item(arg, nametype, Some(inode));
        }
        None if creates && !kernel.opens_first => {
            // An open with O_EXCL fails before audit notes the object.
            let is_passed = matches!(LookupOutcome::by(event), LookupOutcome::Missing)
                || event.exit() == Some(EEXIST);
            let found = items.view.inode(&arg.path, true);
            let inode = if is_passed { None } else { found };
            if let Some(inode) = inode {
                items.item(arg, NameType::Normal, Some(inode));
            }
        }
        None => not_opened(items, kernel, event, arg, flags),
    }
}

/// Adds the item of a file that was opened by its handle: open_by_handle_at(2).
pub(super) fn by_handle(items: &mut Items, event: &Event<'_>) {
    let Some(file) = event.file(0) else { return };
    let mut path = Vec::new();
    file.walked(&mut path);
    items.push(Item {
        name: Some(Vec::new()),
        is_real: !path.is_empty(),
        path,
        inode: Inode::from_wire(&file.inode),
        nametype: NameType::Normal,
        existed: true,
        ..Item::default()
    });
}

/// Adds the items of an open that gave no descriptor.
fn not_opened(items: &mut Items, kernel: Kernel, event: &Event<'_>, arg: &Arg<'_>, flags: u64) {
    let creates = flags & O_CREAT != 0;
    let stops_at_link =
        flags & O_NOFOLLOW != 0 && event.exit() == Some(ELOOP) || creates && flags & O_EXCL != 0;
    let told = match (event.exit(), flags & O_TMPFILE) {
        // O_TMPFILE names a directory, and the object found is not one.
        (Some(ENOTDIR), O_TMPFILE) => LookupOutcome::Missing,
        _ => LookupOutcome::by(event),
    };
    let mut is_there = || items.view.inode(&arg.path, !stops_at_link).is_some();

    // A name that ends with '/' cannot be made: open_last_lookups(), fs/namei.c. Nor does it lead to a file, as none does
    // that goes on behind one.
    let goes_on = [&b"/"[..], b"/.", b"/.."]
        .iter()
        .any(|end| arg.text.ends_with(end));
    let is_no_file = match event.exit() {
        Some(EISDIR) => creates && arg.text.ends_with(b"/"),
        Some(ENOTDIR) => goes_on,
        _ => false,
    };
    if is_no_file {
        return items.item(arg, NameType::Unknown, None);
    }

    let may_make = creates && !arg.is_barred && !matches!(told, LookupOutcome::Missing);
    if may_make && !is_there() {
        return not_made(items, kernel, event, arg);
    }

    items.looked_up(arg, !stops_at_link, told);
}

/// Adds the items of a file that could not be created: its directory and, if the kernel got that far, the missing
/// entry.
fn not_made(items: &mut Items, kernel: Kernel, event: &Event<'_>, arg: &Arg<'_>) {
    items.parent(arg);
    let has_parent = |item: &Item| item.nametype == NameType::Parent;
    let exit = event.exit().unwrap_or_default();
    if kernel.tells_failed_creation(exit) && items.list().last().is_some_and(has_parent) {
        items.not_made(arg);
    }
}

/// Whether a symbolic link has the name now.
fn names_link(items: &mut Items, arg: &Arg<'_>) -> bool {
    items.view.inode(&arg.path, false).is_some_and(is_link)
}

/// Adds the further items of a file that was created through a dangling symbolic link: the kernel notes directory
/// and entry of the link as well as those of the file, without names. The entry of the file, which the caller adds
/// last, gets a name nevertheless.
fn through_link(items: &mut Items, arg: &Arg<'_>) {
    let place = Item {
        inode: arg.parent_inode,
        nametype: NameType::Parent,
        existed: true,
        ..Item::default()
    };

    let entry = Item {
        nametype: NameType::Create,
        ..Item::default()
    };
    for item in [place.clone(), entry, place] {
        items.push(item);
    }
}

/// The directory of an opened name in /proc, if the kernel may have noted it although the file was there: it does unless
/// its cache has the entry, and entries in /proc do not stay there.
pub(super) fn passed_directory(items: &[Item], event: &Event<'_>, shape: &Shape) -> Option<Item> {
    let [item] = items else { return None };
    let is_in_proc = [&b"/proc/"[..], b"/dev/fd/"]
        .iter()
        .any(|place| item.path.starts_with(place));
    let creates = open_flags(event, shape) & O_CREAT != 0;
    let is_reached = !matches!(LookupOutcome::by(event), LookupOutcome::Missing);
    let path = if item.with_dots.is_empty() {
        &item.path
    } else {
        &item.with_dots
    };
    (creates && is_in_proc && is_reached).then(|| Item {
        path: text::split(path).0.to_vec(),
        nametype: NameType::Parent,
        existed: true,
        ..Item::default()
    })
}

/// The flags of open(2) that the call was given or implies; for creat(2), O_CREAT; none for calls that do not open.
pub(super) fn open_flags(event: &Event<'_>, shape: &Shape) -> u64 {
    if shape.kind != ShapeKind::Open {
        return 0;
    }

    let args = &event.header().args;
    match (shape.open_flags, event.open_how()) {
        (_, Some([flags, ..])) => event.opened().map_or(flags, |[used, known]| {
            flags & !u64::from(known) | u64::from(used)
        }),
        (plan::NONE, None) if shape.how == plan::NONE => O_CREAT,
        (plan::NONE, None) => 0,
        (position, None) => args.get(position as usize).copied().unwrap_or(0),
    }
}
