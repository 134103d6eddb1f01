//! Names that a file system looks up when it is mounted or configured, beyond the path arguments of the call: the device of
//! mount(2), the directories of overlayfs, and what fsconfig(2) sets. Audit notes them as the kernel's own look-ups
//! (`kern_path()`, fs/namei.c).

use super::arg::Arg;
use super::calls::{call, may_look_up_more, LookupOutcome};
use super::directories::Directories;
use super::found;
use super::items::Items;
use abi::exit::{ENODEV, ENOENT, ENOTBLK, EPERM};
use plan::ShapeKind;
use record::record::NameType;
use record::wire::Event;

/// Place of the kind of file system among the paths of mount(2).
const KIND: u8 = 3;
const FSCONFIG_SET_STRING: u32 = 1;
const FSCONFIG_SET_PATH: u32 = 3;
const FSCONFIG_SET_PATH_EMPTY: u32 = 4;

/// The options of overlayfs whose values are directories: fs/overlayfs/params.c.
const OVERLAY_DIRECTORIES: [&[u8]; 5] = [
    b"lowerdir",
    b"lowerdir+",
    b"datadir+",
    b"upperdir",
    b"workdir",
];
/// The option that sets the source of a file system, which is looked up later.
const SOURCE: &[u8] = b"source";

/// Adds the items of the names that a file system has looked up for the call.
pub(super) fn add(items: &mut Items, directories: &Directories, event: &Event<'_>) {
    let mut mounted = Mounted {
        items,
        directories,
        event,
    };
    match call(event).shape.kind {
        ShapeKind::Mount if may_look_up_more(event) => mounted.by_mount(),
        ShapeKind::Fsconfig if may_look_up_more(event) => mounted.by_fsconfig(),
        _ => {}
    }
}

struct Mounted<'r, 'e> {
    items: &'r mut Items,
    directories: &'r Directories,
    event: &'r Event<'e>,
}

impl<'e> Mounted<'_, 'e> {
    fn by_mount(&mut self) {
        // The kernel looks up where to mount first.
        if self.items.list().first().is_none_or(|item| !item.existed) {
            return;
        }
        match self.text(2) {
            Some(options) => self.overlay(options),
            None => self.source(1),
        }
    }

    fn by_fsconfig(&mut self) {
        let command = self.event.header().args[1] as u32;
        let is_overlay = |key: &[u8]| OVERLAY_DIRECTORIES.contains(&key);
        match (command, self.text(1), self.text(0)) {
            (FSCONFIG_SET_STRING, Some(b"lowerdir"), Some(value)) if value.contains(&b':') => {
                self.layers(value)
            }
            (FSCONFIG_SET_STRING, Some(key), Some(value)) if is_overlay(key) => self.value(value),
            (FSCONFIG_SET_STRING, _, _) => {}
            (FSCONFIG_SET_PATH | FSCONFIG_SET_PATH_EMPTY, Some(SOURCE), Some(value)) => {
                self.items.named(&self.arg(value))
            }
            (FSCONFIG_SET_PATH | FSCONFIG_SET_PATH_EMPTY, _, Some(value)) => self.value(value),
            _ => self.source(0),
        }
    }

    /// The options of overlayfs in mount(2), `KEY=VALUE,…`.
    fn overlay(&mut self, options: &'e [u8]) {
        for option in unescaped_split(options, b',') {
            if self.has_failed() {
                return;
            }
            let equals = option.iter().position(|&byte| byte == b'=');
            let (key, value) = option.split_at(equals.unwrap_or(option.len()));
            match (key, value.get(1..)) {
                (b"lowerdir", Some(value)) => self.layers(value),
                (key, Some(value)) if OVERLAY_DIRECTORIES.contains(&key) => self.directory(value),
                _ => {}
            }
        }
    }

    /// The layers of overlayfs, separated by `:`; behind `::` come those that have only data.
    fn layers(&mut self, value: &'e [u8]) {
        for layer in unescaped_split(value, b':') {
            if !layer.is_empty() && !self.has_failed() {
                self.directory(layer);
            }
        }
    }

    /// Whether the name that was looked up last is not there, and the call failed: it has looked up no other.
    fn has_failed(&self) -> bool {
        let is_missing = |item: &super::Item| item.nametype == NameType::Unknown;
        self.event.exit().is_some_and(|exit| exit < 0)
            && self.items.list().last().is_some_and(is_missing)
    }

    /// Path `index` of the event, if it is known in full and not empty.
    fn text(&self, index: u8) -> Option<&'e [u8]> {
        let part = self.event.path(index)?;
        let is_whole = !part.is_unreadable() && !part.is_cut() && !part.data.is_empty();
        is_whole.then_some(part.data)
    }

    fn arg<'a>(&self, text: &'a [u8]) -> Arg<'a> {
        Arg::of_kernel(self.directories, text, false)
    }

    /// The value of an option that is one path.
    fn value(&mut self, text: &[u8]) {
        let arg = self.arg(text);
        found::tell_inner(&mut self.items.view, self.event, &arg);
        self.directory(text);
    }

    fn directory(&mut self, text: &[u8]) {
        let text = unescaped(text);
        let arg = self.arg(&text);
        self.items.looked_up(&arg, true, LookupOutcome::Nothing);
    }

    /// The source of a file system, path `index` of the event. Only file systems on devices look it up: the kernel says
    /// which these are. Where that is not known, a device of this name, or an error about it, tells that this is one.
    fn source(&mut self, index: u8) {
        const S_IFMT: u16 = 0o170000;
        const S_IFBLK: u16 = 0o060000;
        let Some(text) = self.text(index) else { return };
        let mut arg = self.arg(text);
        arg.index = index;
        found::tell_inner(&mut self.items.view, self.event, &arg);
        let inode = self.items.view.inode(&arg.path, true);
        let is_device = inode.is_some_and(|inode| inode.mode & S_IFMT == S_IFBLK);
        let is_missing = inode.is_none() && text.first() == Some(&b'/');
        let of_kind = self
            .text(KIND)
            .and_then(|kind| self.items.view.needs_device(kind));

        let is_looked_up = match (self.event.exit(), of_kind) {
            // These come before the device.
            (Some(EPERM | ENODEV), _) | (_, Some(false)) => false,
            (_, Some(true)) | (Some(ENOTBLK), _) => true,
            (Some(ENOENT), None) => is_device || is_missing,
            (_, None) => is_device,
        };

        if is_looked_up {
            self.items.looked_up(&arg, true, LookupOutcome::Nothing);
        }
    }
}

/// The parts of `text` between separators, of which those behind a `\` do not count.
fn unescaped_split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_escaped = false;
    text.split(move |&byte| {
        let ends = byte == separator && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// `text` without the `\` in front of other bytes: ovl_unescape(), fs/overlayfs.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut is_escaped = false;
    let kept = text.iter().copied().filter(|&byte| {
        is_escaped = byte == b'\\' && !is_escaped;
        !is_escaped
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use crate::resolve::Resolver;
    use crate::static_system::{StaticFile, StaticSystem};
    use crate::test_frame::TestFrame;
    use record::wire::{self, Event};
    use std::sync::Arc;

    /// Names and types of the items of a call in `/srv` that has succeeded, on a system with a device and some
    /// directories.
    fn items(mut frame: TestFrame, call: &str, args: [u64; 6]) -> Vec<String> {
        frame.header.args = args;
        let frame = frame.part(wire::TARSIER_PART_CWD, 0, b"srv\0").bytes();
        let event = Event::parse(&frame).expect("a frame");
        let mut system = StaticSystem::default();
        let modes = [
            ("/proc/self/ns/mnt", 0),
            ("/mnt", 0o040755),
            ("/dev/vda", 0o060600),
            ("/srv/l1", 0o040755),
            ("/a,b", 0o040755),
            ("/c:d", 0o040755),
        ];
        for (path, mode) in modes {
            let mut file = StaticFile::default();
            (file.inode.ino, file.inode.mode) = (u64::from(event.header().mnt_ns), mode);
            system.files.insert(path, file);
        }
        let kinds = StaticFile {
            contents: b"nodev\ttmpfs\n\text4\n".to_vec(),
            ..StaticFile::default()
        };
        system.files.insert("/proc/filesystems", kinds);
        let mut resolver = Resolver::new(&(Arc::new(system) as Arc<dyn crate::System>));
        resolver.resolve(&event, &abi::call(call).shape);
        let name = |item: &crate::resolve::Item| {
            let name = item.name.as_deref().unwrap_or(b"(null)");
            format!("{} {:?}", String::from_utf8_lossy(name), item.nametype)
        };
        resolver.items().iter().map(name).collect()
    }

    #[test]
    fn only_file_systems_on_devices_look_their_source_up() {
        let mount = |source: &str, kind: &str, exit| {
            let mut frame = TestFrame::of_named_call("mount")
                .part(wire::TARSIER_PART_PATH, 0, b"/mnt")
                .part(wire::TARSIER_PART_PATH, 1, source.as_bytes())
                .part(wire::TARSIER_PART_PATH, 3, kind.as_bytes());
            frame.header.exit = exit;
            items(frame, "mount", [0; 6]).split_off(1)
        };
        assert_eq!(mount("/dev/vda", "ext4", 0), ["/dev/vda Normal"]);
        assert_eq!(mount("/none", "ext4", -2), ["/none Unknown"]);
        assert_eq!(mount("/srv/l1", "ext4", -15), ["/srv/l1 Normal"]);
        for (source, kind, exit) in [("/dev/vda", "tmpfs", 0), ("/dev/vda", "ext4", -1)] {
            assert!(
                mount(source, kind, exit).is_empty(),
                "{source} {kind} {exit}"
            );
        }
    }

    fn mount(source: &str, options: Option<&str>) -> Vec<String> {
        let frame = TestFrame::of_named_call("mount")
            .part(wire::TARSIER_PART_PATH, 0, b"/mnt")
            .part(wire::TARSIER_PART_PATH, 1, source.as_bytes());
        let frame = match options {
            Some(options) => frame.part(wire::TARSIER_PART_PATH, 2, options.as_bytes()),
            None => frame,
        };
        items(frame, "mount", [0; 6]).split_off(1)
    }

    #[test]
    fn the_source_of_a_mount_is_an_item_if_it_is_a_device() {
        assert_eq!(mount("/dev/vda", None), ["/dev/vda Normal"]);
        for other in ["tmpfs", "/srv/l1", "server:/export", ""] {
            assert!(mount(other, None).is_empty(), "{other}");
        }
    }

    #[test]
    fn the_directories_of_overlayfs_are_items_in_the_order_of_the_options() {
        let options = "rw,lowerdir=l1:/none::/c\\:d,upperdir=/a\\,b,userxattr,workdir=/mnt";
        let items = mount("overlay", Some(options));
        let expected = [
            "l1 Normal",
            "/none Unknown",
            "/c:d Normal",
            "/a,b Normal",
            "/mnt Normal",
        ];
        assert_eq!(items, expected);
    }

    #[test]
    fn what_fsconfig_sets_or_creates_is_an_item_if_the_kernel_looks_it_up() {
        let fsconfig = |command, key: &str, value: &str| {
            let frame = TestFrame::of_named_call("fsconfig")
                .part(wire::TARSIER_PART_PATH, 0, value.as_bytes())
                .part(wire::TARSIER_PART_PATH, 1, key.as_bytes());
            items(frame, "fsconfig", [3, command, 0, 0, 0, 0])
        };
        assert_eq!(fsconfig(1, "upperdir", "l1"), ["l1 Normal"]);
        assert_eq!(
            fsconfig(1, "lowerdir", "l1:/mnt"),
            ["l1 Normal", "/mnt Normal"]
        );
        assert!(fsconfig(1, "source", "/dev/vda").is_empty());
        assert_eq!(fsconfig(6, "", "/dev/vda"), ["/dev/vda Normal"]);
        assert_eq!(fsconfig(3, "source", "/dev/vda"), ["/dev/vda Unknown"]);
    }
}
