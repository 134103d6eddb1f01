//! Chooses the PATH record that is the object of an event, and finds its absolute path.

use super::act::Act;
use super::parsed::{base, known_kind, text_of, Object, Parsed};
use super::value::Value;
use abi::{NameUse, NONE};

/// The objects of an event.
#[derive(Default)]
pub(crate) struct Items {
    /// The object acted on; after a rename or link, the one with the new name.
    pub(crate) object: Option<Object>,
    /// The object under the old name of a rename or link.
    pub(crate) origin: Option<Object>,
}

/// `nametype=` in the order of preference: what an act makes or removes is its object, not the directory around it.
fn preference(act: Act) -> &'static [&'static str] {
    match act {
        Act::Delete => &["DELETE", "NORMAL", "UNKNOWN"],
        Act::Execute | Act::Mount | Act::Unmount => &["NORMAL", "UNKNOWN"],
        _ => &["CREATE", "NORMAL", "DELETE", "UNKNOWN"],
    }
}

/// Chooses the objects of an event.
pub(crate) fn choose(parsed: &Parsed, act: Act) -> Items {
    let items: Vec<&Object> = parsed.records("PATH").collect();
    let find = |nametype: &str| {
        let is_it = |item: &&Object| item.get("nametype").map(text_of).as_deref() == Some(nametype);
        items.iter().position(is_it)
    };
    let object = preference(act).iter().find_map(|nametype| find(nametype));
    let origin = match act {
        Act::Rename => find("DELETE"),
        Act::Link => find("NORMAL"),
        _ => None,
    };

    // A call that failed early has looked up only the directory.
    let directory = || {
        let parent = find("PARENT")?;
        let mut item = describe(parsed, &items, parent);
        if let Some(path) = item.remove("path") {
            item.insert("directory".into(), path);
        }
        item.remove("name");
        Some(item)
    };

    Items {
        object: object
            .map(|place| describe(parsed, &items, place))
            .or_else(directory)
            .or_else(|| refused(parsed)),
        origin: origin.map(|place| describe(parsed, &items, place)),
    }
}

/// The object that a record of a security module, of IMA or of fs-verity names, in an event without PATH records.
fn refused(parsed: &Parsed) -> Option<Object> {
    let record = parsed.records.iter().find(|record| names_file(record))?;
    let path = ["path", "file", "name"]
        .iter()
        .find_map(|field| record.get(field));
    let path = text_of(path.filter(|path| !path.is_null())?);
    let mut out = Object::new();
    if path.starts_with('/') {
        put_path(&path, &mut out);
    } else {
        // SELinux knows only the last component of some names.
        out.insert("name".into(), base(&path).into());
    }

    for (field, to) in [
        ("ino", "inode"),
        ("dev", "dev"),
        ("ouid", "ouid"),
        ("hash", "hash"),
        ("tclass", "class"),
    ] {
        if let Some(value) = record.get(field) {
            out.insert(to.into(), value.clone());
        }
    }

    let kind = match record.get("tclass").map(text_of).as_deref() {
        Some("file") => "file",
        Some("dir") => "dir",
        Some("lnk_file") => "symlink",
        Some("chr_file") => "character-device",
        Some("blk_file") => "block-device",
        Some("fifo_file") => "fifo",
        Some("sock_file") => "socket",
        _ => return Some(out),
    };

    out.insert("type".into(), kind.into());
    Some(out)
}

/// Whether the `path`, `file` or `name` of a record is that of a file: AppArmor also has names of signals, capabilities
/// and profiles.
fn names_file(record: &Object) -> bool {
    let is = |field: &str, words: &[&str]| {
        let word = record.get(field).map(text_of).unwrap_or_default();
        words
            .iter()
            .any(|known| word == *known || word.ends_with(known) && known.starts_with('_'))
    };

    match known_kind(record) {
        "INTEGRITY_DATA"
        | "INTEGRITY_METADATA"
        | "INTEGRITY_RULE"
        | "INTEGRITY_USERSPACE"
        | "INTEGRITY_PCR"
        | "LANDLOCK_ACCESS"
        | "IPE_ACCESS" => true,
        "AVC" if record.contains_key("tclass") => is("tclass", &["file", "dir", "_file"]),
        "AVC" | "APPARMOR_DENIED" | "APPARMOR_ALLOWED" | "APPARMOR_AUDIT" => {
            let name = record.get("name").map(text_of).unwrap_or_default();
            name.starts_with('/')
                && !is(
                    "operation",
                    &["profile_load", "profile_replace", "profile_remove"],
                )
        }
        _ => false,
    }
}

/// Puts a path, and its parts where it is absolute.
fn put_path(path: &str, out: &mut Object) {
    let path = match path.trim_end_matches('/') {
        "" => path,
        short => short,
    };
    if let Some((directory, name)) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty()) {
        let directory = if directory.is_empty() { "/" } else { directory };
        if path.starts_with('/') {
            out.insert("directory".into(), directory.into());
        }
        if let Some((stem, extension)) = name.rsplit_once('.') {
            if !stem.is_empty() && !extension.is_empty() {
                out.insert("extension".into(), extension.into());
            }
        }
    }

    out.insert("name".into(), base(path).into());
    out.insert("path".into(), path.into());
}

fn describe(parsed: &Parsed, items: &[&Object], place: usize) -> Object {
    let item = items[place];
    let mut out = Object::new();
    if let Some(path) = path(parsed, items, place) {
        put_path(&path, &mut out);
    }

    for field in ["inode", "dev", "ouid", "ogid", "nametype", "obj"] {
        if let Some(value) = item.get(field) {
            out.insert(field.into(), value.clone());
        }
    }

    let mode = item.get("mode").map(text_of);
    if let Some(mode) = mode.and_then(|mode| u32::from_str_radix(&mode, 8).ok()) {
        out.insert("mode".into(), format!("{:04o}", mode & 0o7777).into());
        out.insert("type".into(), file_type(mode).into());
    }

    if let Some(names) = parsed.path_names.get(place) {
        for (name, to) in [("OUID", "owner"), ("OGID", "group")] {
            if let Some(value) = names.get(name) {
                out.insert(to.into(), value.clone());
            }
        }
    }

    out
}

/// The kind of a file, in the words of ECS.
fn file_type(mode: u32) -> &'static str {
    match mode & 0o170_000 {
        0o100_000 => "file",
        0o040_000 => "dir",
        0o120_000 => "symlink",
        0o020_000 => "character-device",
        0o060_000 => "block-device",
        0o010_000 => "fifo",
        0o140_000 => "socket",
        _ => "unknown",
    }
}

/// The path of an item. A relative name follows the directory of its PARENT item or, unless the call names another
/// directory by a descriptor, CWD; else it stays relative.
fn path(parsed: &Parsed, items: &[&Object], place: usize) -> Option<String> {
    let name = name_of(items[place])?;
    if name.starts_with('/') {
        return Some(plain(&name));
    }

    if !name.contains('/') {
        if let Some(parent) = parent_of(items, place).and_then(name_of) {
            if parent.starts_with('/') {
                return Some(plain(&format!("{parent}/{name}")));
            }
        }
    }

    let cwd = parsed.record("CWD").and_then(|record| record.get("cwd"));
    let cwd = cwd.map(text_of).filter(|cwd| cwd.starts_with('/'));
    match cwd {
        Some(cwd) if !is_elsewhere(parsed, items[place]) => Some(plain(&format!("{cwd}/{name}"))),
        _ => Some(name),
    }
}

fn name_of(item: &Object) -> Option<String> {
    let name = item.get("name").filter(|name| !name.is_null())?;
    Some(text_of(name)).filter(|name| !name.is_empty())
}

/// The PARENT item of a name: of several, the one with the same place among the names (rename has old and new).
fn parent_of<'p>(items: &[&'p Object], place: usize) -> Option<&'p Object> {
    let is_parent = |item: &Object| item.get("nametype").map(text_of).as_deref() == Some("PARENT");
    let parents: Vec<&Object> = items
        .iter()
        .copied()
        .filter(|item| is_parent(item))
        .collect();
    let is_new = items[place].get("nametype").map(text_of).as_deref() == Some("CREATE");

    if is_new {
        parents.last().copied()
    } else {
        parents.first().copied()
    }
}

/// Whether the name is relative to something that no record has: to a directory that the call is given by its descriptor
/// (`openat(7, …)`), or as the text of a symbolic link to the place of the link. Records of io_uring operations have no
/// arguments, so that a descriptor cannot be told from AT_FDCWD.
fn is_elsewhere(parsed: &Parsed, item: &Object) -> bool {
    let path_of = |name: &Value| {
        let paths = abi::call(&text_of(name).to_ascii_lowercase()).shape.paths;
        // Of two names, the call makes the second.
        let is_new = item.get("nametype").map(text_of).as_deref() == Some("CREATE");
        let second = if is_new { paths[1] } else { None };
        second.or(paths[0])
    };

    let mut operations = parsed.records("URINGOP").peekable();
    if operations.peek().is_some() {
        let mut paths = operations.map(|record| path_of(record.get("uring_op")?));
        return paths.any(|path| path.is_none_or(|path| path.dir != NONE));
    }

    let Some(record) = parsed.record("SYSCALL") else {
        return false;
    };
    let Some(path) = record.get("syscall").and_then(path_of) else {
        return false;
    };

    let is_cwd = |word: &Value| {
        let text = text_of(word);
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).is_ok_and(|word| word as u32 as i32 == libc::AT_FDCWD)
    };
    let is_cwd_given = || record.get(&format!("a{}", path.dir)).is_some_and(is_cwd);
    path.use_ == NameUse::SymlinkTarget || path.dir != NONE && !is_cwd_given()
}

/// A path without empty components and `.`; `..` stays, since links may stand before it.
fn plain(path: &str) -> String {
    let parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    let joined: String = parts.flat_map(|part| ["/", part]).collect();
    if joined.is_empty() {
        "/".into()
    } else {
        joined
    }
}
