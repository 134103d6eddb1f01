//! The rows, by what the calls are about.

mod attributes;
mod contents;
mod mounts;
mod names;
mod others;
mod processes;
mod sockets;
mod system;

use super::row::{row, CallRow};

/// All parts of the table. Ways to do one thing are shown in this order.
pub(super) const PARTS: [&[CallRow]; 8] = [
    names::ROWS,
    contents::ROWS,
    attributes::ROWS,
    mounts::ROWS,
    system::ROWS,
    processes::ROWS,
    sockets::ROWS,
    others::ROWS,
];

/// Flags by which many calls follow a symbolic link or not, and take an empty path (linux/fcntl.h).
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AT_EMPTY_PATH: u64 = 0x1000;

/// Each row once, with its name alone.
const fn plain<const N: usize>(names: [&'static str; N]) -> [CallRow; N] {
    let mut rows = [row(""); N];
    let mut at = 0;
    while at < N {
        rows[at] = row(names[at]);
        at += 1;
    }
    rows
}
