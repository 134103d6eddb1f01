//! Entries that rules name of objects that a call has reached by other names.

use super::items::Item;
use super::matched::matched;
use super::text;
use crate::identify::object;
use plan::{Identities, Name, Proven};
use record::record::{Inode, NameType};
use record::wire::{AliasPart, Event};

/// The names, as rules have them, of the objects that `event` has reached by other hard links. The objects may be too
/// new for `identities`.
pub(crate) fn aliases(event: &Event<'_>, identities: &Identities) -> Vec<Name> {
    let names = event.aliases();
    names.flat_map(|alias| of(&alias, identities)).collect()
}

/// The names, as rules have them, of entries that the call made or removed in a directory that it reached by another path.
pub(crate) fn entries(items: &[Item], identities: &Identities) -> Vec<Name> {
    let mut names = Vec::new();
    for item in items {
        let paths = paths_of_entry(items, item, identities);
        names.extend(paths.into_iter().map(|path| Name {
            path,
            inode: item.inode.map(matched),
            existed: item.existed,
            object: Proven::AtEnd,
            place: Proven::AtEnd,
            ..Name::default()
        }));
    }

    names
}

/// The paths, as rules have them, of the entry that the call made or removed as `item`, by the directory that it is in;
/// none for other items.
pub(crate) fn paths_of_entry(items: &[Item], item: &Item, identities: &Identities) -> Vec<Vec<u8>> {
    if !matches!(item.nametype, NameType::Create | NameType::Delete) {
        return Vec::new();
    }
    let (dir, name) = text::split(&item.path);
    let is_parent = |other: &&Item| other.nametype == NameType::Parent && other.path == dir;
    let parent = items.iter().find(is_parent).and_then(|parent| parent.inode);
    parent.map_or_else(Vec::new, |parent| identities.paths_of(object(parent), name))
}

fn of(alias: &AliasPart<'_>, identities: &Identities) -> Vec<Name> {
    let inode = Inode::from_wire(&alias.entry.object).map(matched);
    let directory = Inode::from_wire(&alias.entry.directory).map(object);
    let paths = match directory {
        Some(directory) => identities.paths_of(directory, alias.name),
        None => Vec::new(),
    };
    let is_unknown = alias.has_more || paths.is_empty();

    let name = |path| Name {
        path,
        inode,
        existed: true,
        object: Proven::AtEnd,
        place: Proven::AtEnd,
        ..Name::default()
    };
    let mut names: Vec<Name> = paths.into_iter().map(name).collect();
    if is_unknown {
        names.push(Name::unknown());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_frame::TestFrame;
    use plan::{ObjectId, PathIdentity};
    use record::wire::{self, tarsier_alias, tarsier_inode};
    use zerocopy::IntoBytes;

    const FILE: ObjectId = ObjectId { dev: 1, ino: 3 };

    fn inode(object: ObjectId) -> tarsier_inode {
        tarsier_inode {
            valid: 1,
            dev: object.dev,
            ino: object.ino,
            ..tarsier_inode::default()
        }
    }

    /// Path and inode number of each name, and whether it is unknown, of an entry of [`FILE`] in directory 2, where the
    /// rules' `/etc/conf` was when its file was another one.
    fn names(name: &[u8], flags: u32) -> Vec<(String, Option<u64>, bool)> {
        let mut identities = Identities::default();
        let conf = PathIdentity {
            object: Some(ObjectId { dev: 1, ino: 9 }),
            canonical: b"/etc/conf".to_vec(),
            directory: Some(ObjectId { dev: 1, ino: 2 }),
            ..PathIdentity::default()
        };
        identities.insert(b"/etc/conf".to_vec(), conf);
        let entry = tarsier_alias {
            object: inode(FILE),
            directory: inode(ObjectId { dev: 1, ino: 2 }),
        };
        let data = [entry.as_bytes(), name].concat();
        let frame = TestFrame::of_named_call("chmod");
        let bytes = frame
            .flagged(wire::TARSIER_PART_ALIAS, (0, flags), &data)
            .bytes();
        let event = Event::parse(&bytes).expect("a frame");
        let names = aliases(&event, &identities).into_iter();
        let told = |name: Name| {
            let ino = name.inode.map(|inode| inode.id.ino);
            (
                String::from_utf8(name.path).expect("text"),
                ino,
                name.is_unknown,
            )
        };
        names.map(told).collect()
    }

    #[test]
    fn a_file_that_was_made_at_a_path_of_a_rule_has_that_name_at_once() {
        let conf = (String::from("/etc/conf"), Some(3), false);
        assert_eq!(names(b"conf", 0), std::slice::from_ref(&conf));
        let unknown = (String::new(), None, true);
        assert_eq!(
            names(b"conf", wire::TARSIER_PART_MORE),
            [conf, unknown.clone()]
        );
        // The rules are others by now, or the entry could not be read.
        assert_eq!(names(b"other", 0), std::slice::from_ref(&unknown));
        assert_eq!(names(b"", wire::TARSIER_PART_MORE), [unknown]);
    }
}
