//! Names of POSIX message queues, which are in a file system of their own.
//!
//! Source: do_mq_open(), mq_unlink(), ipc/mqueue.c. Audit counts the root directory of that file system in `items=` but
//! does not print it.

use super::calls::call;
use super::items::{Item, Items};
use super::objects;
use abi::exit::{EACCES, EEXIST, ENOENT};
use plan::ShapeKind;
use record::record::{Inode, NameType};
use record::wire::{self, Event};

const O_CREAT: u64 = 0o100;

/// Adds the items of a queue that is opened or removed; `name` is as user space passed it.
pub(super) fn add(items: &mut Items, event: &Event<'_>, name: &[u8]) {
    let exit = event.exit().unwrap_or_default();
    if call(event).shape.kind != ShapeKind::Open {
        items.hide_one();
        if let Some(inode) = objects::entry(event, wire::TARSIER_OBJECT_DELETE, 0) {
            items.push(item(name, NameType::Delete, inode));
        } else if exit == 0 {
            items.push(item(name, NameType::Delete, None));
        }
        return;
    }

    if let Some(inode) = objects::entry(event, wire::TARSIER_OBJECT_CREATE, 0) {
        items.hide_one();
        return items.push(item(name, NameType::Create, inode));
    }

    let opened = if exit >= 0 { event.file(0) } else { None };
    let inode = opened.and_then(|file| Inode::from_wire(&file.inode));
    match exit {
        ENOENT if event.header().args[1] & O_CREAT == 0 => {
            items.push(item(name, NameType::Unknown, None));
        }
        0.. | EEXIST | EACCES => items.push(item(name, NameType::Normal, inode)),
        _ => {}
    }
}

fn item(name: &[u8], nametype: NameType, inode: Option<Inode>) -> Item {
    Item {
        name: Some(name.to_vec()),
        inode,
        nametype,
        existed: nametype != NameType::Unknown,
        ..Item::default()
    }
}
