//! An event in short, for people: who did what to what, with which result.

use crate::event::{Event, Record};
use crate::interpret::{Interpreter, RecordFields};
use crate::number::{signed, unescape, unsigned};
use crate::{kind, own, time, Dialect};
use abi::record_type as kinds;
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// Most objects of a line, and most bytes of each.
const OBJECTS_MAX: usize = 8;
const OBJECT_BYTES_MAX: usize = 200;

/// A file of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Absolute path, as far as the event has it.
    pub path: Option<Vec<u8>>,
    /// Device as in `dev=`, and inode.
    pub inode: Option<(Vec<u8>, u64)>,
    /// NORMAL, PARENT, CREATE, DELETE, …
    pub nametype: Vec<u8>,
}

/// An event in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSummary {
    /// Process.
    pub pid: Option<u32>,
    /// Parent process.
    pub ppid: Option<u32>,
    /// Login user, or the user if there is no login.
    pub who: Vec<u8>,
    /// Name of the task, or the program of a message.
    pub comm: Vec<u8>,
    /// Name of the call, or the record type.
    pub what: Vec<u8>,
    /// Arguments of a program, files, addresses.
    pub objects: Vec<Vec<u8>>,
    /// The result in a word; empty if the event has none.
    pub result: Vec<u8>,
    /// Whether the call failed.
    pub is_failed: bool,
    /// Return value of the call.
    pub exit: Option<i64>,
    /// Files.
    pub items: Vec<Item>,
}

/// The text of a value: without quotes, or decoded; `None` for `(null)`, `(none)` and `?`.
fn text(value: &[u8]) -> Option<Vec<u8>> {
    match value {
        [b'"', inner @ ..] => Some(inner.strip_suffix(b"\"").unwrap_or(inner).to_vec()),
        b"(null)" | b"(none)" | b"?" => None,
        _ if value.len() >= 2
            && value.len().is_multiple_of(2)
            && value.iter().all(u8::is_ascii_hexdigit) =>
        {
            unescape(value)
        }
        _ => Some(value.to_vec()),
    }
}

fn number(value: &[u8]) -> Option<u32> {
    let is_number = value.first().is_some_and(u8::is_ascii_digit);
    is_number
        .then(|| unsigned(value, 10).ok().map(|id| id as u32))
        .flatten()
}

/// An absolute path without `.`, `..` and doubled slashes; a relative one stays relative if the directory is unknown.
pub(crate) fn absolute(cwd: Option<&[u8]>, name: &[u8]) -> Vec<u8> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    let base = cwd.map(|cwd| Path::new(std::ffi::OsStr::from_bytes(cwd)));
    let mut out = PathBuf::new();
    for part in base.unwrap_or(Path::new("")).join(path).components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }

    out.into_os_string().into_vec()
}

impl EventSummary {
    /// Summarises an event.
    pub fn of(event: &Event, interpreter: &Interpreter) -> EventSummary {
        let mut summary = EventSummary::default();
        let mut cwd = None;
        let mut names: Vec<(Option<Vec<u8>>, Item)> = Vec::new();
        let mut address = None;

        // What the record of the call says of the task holds, wherever that record stands.
        let call = event.records().find(|record| kind::is_of_call(record.kind));
        if let Some(record) = call {
            summary.task(&RecordFields::read(&record, Dialect::Own), interpreter);
        }

        let mut others = Vec::new();
        for record in event.records() {
            let fields = RecordFields::read(&record, Dialect::Own);
            let value = |name: &[u8]| fields.get(name).and_then(text);
            match record.kind {
                kinds::SYSCALL => summary.call(&fields, interpreter),
                kinds::CWD => cwd = value(b"cwd"),
                kinds::PATH => {
                    let inode = fields
                        .get(b"inode")
                        .and_then(|inode| unsigned(inode, 10).ok());
                    let device = fields.get(b"dev").map(<[u8]>::to_vec);
                    let item = Item {
                        path: None,
                        inode: device.zip(inode),
                        nametype: fields.get(b"nametype").unwrap_or_default().to_vec(),
                    };
                    names.push((value(b"name"), item));
                }
                kinds::EXECVE => summary.arguments(&fields),
                kinds::SOCKADDR => address = fields.meaning(b"saddr", interpreter),
                kinds::PROCTITLE => {}
                _ => {
                    others.extend(own::paths(&record).map(Cow::into_owned));
                    summary.message(&record, &fields, interpreter);
                }
            }
        }

        for (name, mut item) in names {
            item.path = name.map(|name| absolute(cwd.as_deref(), &name));
            summary.items.push(item);
        }

        for path in others {
            if !summary
                .items
                .iter()
                .any(|item| item.path.as_ref() == Some(&path))
            {
                summary.items.push(Item {
                    path: Some(path),
                    inode: None,
                    nametype: Vec::new(),
                });
            }
        }

        summary.add_files();
        summary.objects.extend(address);
        summary
    }

    fn task(&mut self, fields: &RecordFields<'_>, interpreter: &Interpreter) {
        let id = |name: &[u8]| fields.get(name).and_then(number);
        self.pid = self.pid.or(id(b"pid"));
        self.ppid = self.ppid.or(id(b"ppid"));
        if self.who.is_empty() {
            let has_login = id(b"auid").is_some_and(|auid| auid != u32::MAX);
            let field: &[u8] = if has_login { b"auid" } else { b"uid" };
            self.who = fields.meaning(field, interpreter).unwrap_or_default();
        }

        if self.comm.is_empty() {
            let name = || fields.get(b"exe").and_then(text);
            self.comm = fields
                .get(b"comm")
                .and_then(text)
                .or_else(name)
                .unwrap_or_default();
        }
    }

    fn call(&mut self, fields: &RecordFields<'_>, interpreter: &Interpreter) {
        self.task(fields, interpreter);
        self.what = fields.meaning(b"syscall", interpreter).unwrap_or_default();
        self.exit = fields.get(b"exit").and_then(|exit| signed(exit).ok());
        self.is_failed = fields.get(b"success") == Some(b"no");
        let errno = self
            .exit
            .and_then(|exit| i32::try_from(-exit).ok())
            .filter(|errno| *errno > 0);
        self.result = match (errno.and_then(abi::errno_name), self.exit) {
            (Some(name), _) => name.as_bytes().to_vec(),
            (None, Some(exit)) => exit.to_string().into_bytes(),
            (None, None) => Vec::new(),
        };
    }

    /// EXECVE, of which only short arguments are whole.
    fn arguments(&mut self, fields: &RecordFields<'_>) {
        for number in 0..OBJECTS_MAX {
            let value = fields.get(format!("a{number}").as_bytes()).and_then(text);
            self.objects.extend(value);
        }
    }

    /// A record without a call, or beside one.
    fn message(
        &mut self,
        record: &Record<'_>,
        fields: &RecordFields<'_>,
        interpreter: &Interpreter,
    ) {
        self.task(fields, interpreter);
        if !self.what.is_empty() {
            return;
        }

        let name = u32::try_from(record.kind)
            .ok()
            .and_then(abi::record_type_name);
        self.what = name.unwrap_or("UNKNOWN").as_bytes().to_vec();
        for name in [&b"op"[..], b"unit", b"acct", b"hostname", b"key"] {
            let value = fields.get(name).and_then(text);
            self.objects.extend(value.filter(|value| !value.is_empty()));
        }

        self.result = fields.get(b"res").map(<[u8]>::to_vec).unwrap_or_default();
        self.result.retain(|byte| *byte != b'\'');
        self.is_failed = matches!(&self.result[..], b"failed" | b"0" | b"no");
    }

    /// The files, without the directories that contain them unless there is nothing else.
    fn add_files(&mut self) {
        if !self.objects.is_empty() {
            return;
        }

        let is_parent = |item: &&Item| item.nametype == b"PARENT";
        let has_others = self.items.iter().any(|item| !is_parent(&item));
        let shown = self
            .items
            .iter()
            .filter(|item| !(has_others && is_parent(item)));
        let mut paths: Vec<Vec<u8>> = shown.filter_map(|item| item.path.clone()).collect();
        paths.dedup();
        self.objects = paths;
    }

    /// Appends what was done, without who did it and when: `openat /etc/shadow -> EACCES`.
    pub fn write_action(&self, out: &mut Vec<u8>) {
        write_shown(&self.what, out);
        for object in self.objects.iter().take(OBJECTS_MAX) {
            out.push(b' ');
            write_shown(object, out);
        }

        if self.objects.len() > OBJECTS_MAX {
            out.extend_from_slice("\u{2026}".as_bytes());
        }

        if !self.result.is_empty() {
            out.extend_from_slice(b" -> ");
            write_shown(&self.result, out);
        }
    }

    /// Appends a line: time, who, what, on what, result.
    pub fn write_line(&self, event: &Event, out: &mut Vec<u8>) {
        time::write_date_time(event.key().sec, out);
        out.extend_from_slice(format!(".{:03} ", event.key().msec).as_bytes());
        if let Some(node) = &event.key().node {
            write_shown(node, out);
            out.push(b' ');
        }
        self.write_who(out);
        out.push(b' ');
        self.write_action(out);
        out.push(b'\n');
    }

    /// Appends user, task and process: `alice cat[4242]`.
    pub fn write_who(&self, out: &mut Vec<u8>) {
        write_shown(if self.who.is_empty() { b"-" } else { &self.who }, out);
        out.push(b' ');
        write_shown(
            if self.comm.is_empty() {
                b"-"
            } else {
                &self.comm
            },
            out,
        );

        if let Some(pid) = self.pid {
            out.extend_from_slice(format!("[{pid}]").as_bytes());
        }
    }
}

/// Appends text of unknown origin without characters that control a terminal, cut after 200 bytes.
pub(crate) fn write_shown(text: &[u8], out: &mut Vec<u8>) {
    let shown = &text[..text.len().min(OBJECT_BYTES_MAX)];
    for chunk in shown.utf8_chunks() {
        for character in chunk.valid().chars() {
            let is_harmless = !character.is_control() && !is_direction(character);
            if is_harmless {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes())
            } else {
                out.extend_from_slice(character.escape_unicode().to_string().as_bytes())
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }

    if shown.len() < text.len() {
        out.extend_from_slice("\u{2026}".as_bytes());
    }
}

/// Whether a character changes the direction of text.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
