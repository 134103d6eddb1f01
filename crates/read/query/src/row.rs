//! An event as a row: who did what to which files, for tables, pictures and exports.

use crate::facts::{Facts, Wanted};
use crate::number::unescape;
use crate::usual::path_fields;
use crate::walk::{find_from, Text};
use crate::{kind, own, Dialect, Event, EventView, Machine};
use abi::record_type as kinds;
use std::borrow::Cow;

/// The [`Facts`] that a row needs. Files come from [`Row::paths`], which knows their directories.
const WANTED: Wanted = Wanted {
    pid: true,
    ppid: true,
    auid: true,
    uid: true,
    euid: true,
    gid: false,
    egid: false,
    session: true,
    arch: true,
    success: true,
    exit: true,
    terminal: true,
    comm: true,
    exe: true,
    keys: true,
    files: false,
    host: true,
    subject: false,
    object: false,
    vm: false,
    uuid: false,
    all: false,
};

/// Arguments of a command line that are shown.
const ARGUMENTS_MAX: usize = 32;

/// A file of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathItem<'e> {
    /// Absolute path if the log has enough for one, else the name that the call was given.
    pub path: Text<'e>,
    /// `nametype=` of the PATH record; empty if the file is from another record.
    pub nametype: &'e [u8],
}

/// Facts of an event, borrowed from it.
#[derive(Debug, Clone)]
pub struct Row<'e> {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Serial number.
    pub serial: u64,
    /// Value of `node=`.
    pub node: Option<&'e [u8]>,
    /// Type of the first record.
    pub kind: i32,
    /// Ids, names and result.
    pub facts: Facts<'e>,
    /// Name of the login id, which ENRICHED has.
    pub auid_name: Option<Text<'e>>,
    /// System unit, which ENRICHED has if `identity = yes`.
    pub unit: Option<Text<'e>>,
    /// Container, likewise.
    pub container: Option<Text<'e>>,
    /// Name of the system call or io_uring operation; its number if there is no name.
    pub call: Option<Cow<'static, str>>,
}

impl<'e> Row<'e> {
    /// Reads `event`. Fields that are missing or damaged are absent.
    pub fn read(event: &'e Event) -> Row<'e> {
        Row::of(event.view())
    }

    /// [`Row::read`] for an event that is borrowed.
    pub fn of(event: EventView<'e>) -> Row<'e> {
        let facts = Facts::read_view(event, &WANTED, Dialect::Own).unwrap_or_default();
        let [auid_name, unit, container] = event
            .names_of([b"auid", b"unit", b"container"])
            .map(|name| name.and_then(value_at));
        let (sec, msec, serial) = event.time();

        Row {
            time_ms: sec.saturating_mul(1000).saturating_add(msec.into()),
            serial,
            node: event.node(),
            kind: event.kind(),
            auid_name,
            unit,
            container,
            call: call(event, &facts),
            facts,
        }
    }

    /// Whether the event is known to have failed.
    pub fn is_failure(&self) -> bool {
        self.facts.call.success == 0
    }

    /// Files of PATH and other records, each once and without the directories that are only parents.
    pub fn paths(event: &'e Event) -> Vec<PathItem<'e>> {
        Row::paths_of(event.view())
    }

    /// [`Row::paths`] of an event that is borrowed.
    pub fn paths_of(event: EventView<'e>) -> Vec<PathItem<'e>> {
        let mut cwd: Option<Text<'e>> = None;
        let mut items: Vec<PathItem<'e>> = Vec::new();
        for record in event.records() {
            let (name, nametype) = match record.kind {
                kinds::CWD => {
                    cwd = value(record.text, b" cwd=");
                    continue;
                }
                kinds::PATH => match path_fields(record.text) {
                    Some([name, _, _, role]) => (value_at(name.1), role.1),
                    None => (
                        value(record.text, b" name="),
                        word(record.text, b" nametype=").unwrap_or_default(),
                    ),
                },
                _ if kind::is_of_call(record.kind) => continue,
                _ => {
                    for path in own::paths(&record) {
                        push(&mut items, path, b"");
                    }
                    continue;
                }
            };
            let Some(name) = name.filter(|name| nametype != b"PARENT" && **name != *b"(null)")
            else {
                continue;
            };
            push(&mut items, absolute(cwd.as_deref(), name), nametype);
        }

        items
    }

    /// The working directory.
    pub fn cwd(event: &'e Event) -> Option<Text<'e>> {
        let record = event.records().find(|record| record.kind == kinds::CWD)?;
        value(record.text, b" cwd=")
    }

    /// The command line of EXECVE records, arguments separated by blanks.
    pub fn command(event: &Event) -> Option<Vec<u8>> {
        Row::command_of(event.view())
    }

    /// [`Row::command`] of an event that is borrowed.
    pub fn command_of(event: EventView<'_>) -> Option<Vec<u8>> {
        let record = event
            .records()
            .find(|record| record.kind == kinds::EXECVE)?;
        let mut line = Vec::new();
        for number in 0..ARGUMENTS_MAX {
            let field = format!(" a{number}=");
            let Some(argument) = value(record.text, field.as_bytes()) else {
                break;
            };
            if number > 0 {
                line.push(b' ');
            }
            line.extend_from_slice(&argument);
        }

        (!line.is_empty()).then_some(line)
    }
}

fn push<'e>(items: &mut Vec<PathItem<'e>>, path: Text<'e>, nametype: &'e [u8]) {
    if items.iter().all(|item| item.path != path) {
        items.push(PathItem { path, nametype });
    }
}

/// `name` below `cwd`, without `./`, unless it is absolute.
fn absolute<'e>(cwd: Option<&[u8]>, name: Text<'e>) -> Text<'e> {
    let Some(cwd) = cwd.filter(|cwd| cwd.starts_with(b"/") && !name.starts_with(b"/")) else {
        return name;
    };
    let rest = name.strip_prefix(b"./").unwrap_or(&name);
    let directory = cwd.strip_suffix(b"/").unwrap_or(cwd);
    match rest {
        b"" | b"." => Cow::Owned(cwd.to_vec()),
        _ => Cow::Owned([directory, b"/", rest].concat()),
    }
}

/// The value of a field: quoted, in hex, or a bare word.
fn value<'e>(text: &'e [u8], field: &[u8]) -> Option<Text<'e>> {
    let from = find_from(text, 0, field)?;
    value_at(&text[from..])
}

fn value_at(rest: &[u8]) -> Option<Text<'_>> {
    if let Some(quoted) = rest.strip_prefix(b"\"") {
        let end = memchr::memchr(b'"', quoted)?;
        return Some(Cow::Borrowed(&quoted[..end]));
    }
    let end = memchr::memchr2(b' ', b'\n', rest).unwrap_or(rest.len());
    let bare = &rest[..end];
    if !bare.is_empty() && bare.len().is_multiple_of(2) && bare.iter().all(u8::is_ascii_hexdigit) {
        unescape(bare).map(Cow::Owned)
    } else {
        (!bare.is_empty()).then_some(Cow::Borrowed(bare))
    }
}

fn word<'e>(text: &'e [u8], field: &[u8]) -> Option<&'e [u8]> {
    let from = find_from(text, 0, field)?;
    let rest = &text[from..];
    let end = memchr::memchr2(b' ', b'\n', rest).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// Name of a system call, or its number if there is no name; `None` for no call.
pub(crate) fn call_name(arch: u32, number: i32) -> Option<Cow<'static, str>> {
    let name = crate::interpret::call_name(Machine::of_elf(arch), number, Dialect::Own);
    let number = u32::try_from(number).ok()?;
    Some(name.map_or_else(|| number.to_string().into(), Cow::Borrowed))
}

fn call(event: EventView<'_>, facts: &Facts<'_>) -> Option<Cow<'static, str>> {
    for record in event.records() {
        match record.kind {
            kinds::SYSCALL => return call_name(facts.call.arch, facts.call.syscall),
            kinds::URINGOP => {
                let number = word(record.text, b" uring_op=")?;
                let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
                let name = abi::uring_op_name(number);
                return Some(name.map_or_else(|| number.to_string().into(), Cow::Borrowed));
            }
            _ => {}
        }
    }

    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Assembler;

    fn event(lines: &[&str]) -> Event {
        let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
        for line in lines {
            assembler.add(line.as_bytes());
        }
        assembler.finish();
        assembler.pop().expect("an event")
    }

    #[test]
    fn a_call_becomes_a_row_with_absolute_paths() {
        let event = event(&[
            "type=SYSCALL msg=audit(1795229629.588:9): arch=c000003e syscall=257 success=no exit=-13 a0=1 \
             a1=2 a2=0 a3=0 items=2 ppid=4 pid=7 auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 \
             fsgid=0 tty=pts0 ses=3 comm=\"cat\" exe=\"/bin/cat\" key=\"k\"\x1dARCH=x86_64 AUID=\"alice\" \
             UID=\"root\" USER_UNIT=\"x.service\" UNIT=\"ssh.service\" CONTAINER=\"c1\"",
            "type=CWD msg=audit(1795229629.588:9): cwd=\"/srv\"",
            "type=PATH msg=audit(1795229629.588:9): item=0 name=\"/srv/\" inode=1 nametype=PARENT",
            "type=PATH msg=audit(1795229629.588:9): item=1 name=\"./a\" inode=2 nametype=NORMAL",
            "type=PATH msg=audit(1795229629.588:9): item=2 name=2F78 inode=3 nametype=DELETE",
        ]);
        let row = Row::read(&event);
        assert_eq!((row.time_ms, row.serial), (1_795_229_629_588, 9));
        assert_eq!(row.auid_name.as_deref(), Some(&b"alice"[..]));
        assert_eq!(row.unit.as_deref(), Some(&b"ssh.service"[..]));
        assert_eq!(row.container.as_deref(), Some(&b"c1"[..]));
        assert_eq!(row.call.as_deref(), Some("openat"));
        assert!(row.is_failure());
        let paths = Row::paths(&event);
        let paths: Vec<_> = paths
            .iter()
            .map(|item| (&*item.path, item.nametype))
            .collect();
        let wanted = [(&b"/srv/a"[..], &b"NORMAL"[..]), (b"/x", b"DELETE")];
        assert_eq!(paths, wanted);
    }

    #[test]
    fn a_command_line_is_put_together_from_its_arguments() {
        let event = event(&[
            "type=EXECVE msg=audit(1795229629.588:9): argc=3 a0=\"sh\" a1=\"-c\" a2=61200A62",
        ]);
        assert_eq!(Row::command(&event).as_deref(), Some(&b"sh -c a \nb"[..]));
    }
}
