//! The process of an event and its ancestors, as the log tells them.

use crate::wire::ProcessId;
use crate::{json, put};

/// A program, as a process ran it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Path of its file; `None` for a thread of the kernel.
    pub exe: Option<Box<[u8]>>,
    /// Start of the command line: arguments separated by NUL. Empty if it is not known.
    pub title: Box<[u8]>,
    /// Whether the command line is longer.
    pub is_title_cut: bool,
    /// Path of the script that execve was given, whose interpreter runs; `None` if it was none.
    pub script: Option<Box<[u8]>>,
}

/// A process that made another one.
#[derive(Debug, Clone, Copy)]
pub struct Ancestor<'a> {
    /// The process.
    pub process: ProcessId,
    /// Program that it ran when it made the next one; `None` if that is not known.
    pub program: Option<&'a Program>,
}

/// The text that names the ancestors of a process. Made once, since many events share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AncestorsText {
    /// ` ANCESTORS="…"`; empty if there are none.
    enriched: Vec<u8>,
    /// `"ancestors":[…]`
    json: Vec<u8>,
}

impl AncestorsText {
    /// The text for these ancestors, the nearest first. `is_open`: there are older ones that are not known.
    pub fn of<'a>(ancestors: impl Iterator<Item = Ancestor<'a>>, is_open: bool) -> AncestorsText {
        let mut enriched = Vec::new();
        let mut json = b"\"ancestors\":[".to_vec();
        let mut is_partial = is_open;
        for (place, ancestor) in ancestors.enumerate() {
            if place > 0 {
                enriched.push(b',');
                json.push(b',');
            }
            is_partial |= ancestor.program.is_none();
            put_enriched(&mut enriched, &ancestor);
            put_json(&mut json, &ancestor);
        }

        if is_open {
            let mark = if enriched.is_empty() { "?" } else { ",?" };
            put::text(&mut enriched, mark);
        }

        if !enriched.is_empty() {
            enriched.splice(..0, *b" ANCESTORS=\"");
            enriched.push(b'"');
        }

        json.push(b']');
        if is_partial {
            put::text(&mut json, ",\"ancestors_partial\":true");
        }

        AncestorsText { enriched, json }
    }

    /// Bytes of the text, in all formats together.
    pub fn size(&self) -> usize {
        self.enriched.len() + self.json.len()
    }
}

/// Appends `PID:PATH`. What is no plain path is in hex, which does not begin with a slash: whoever chose the path must
/// not be able to add another ancestor.
fn put_enriched(out: &mut Vec<u8>, ancestor: &Ancestor<'_>) {
    put::decimal(out, ancestor.process.pid.into());
    out.push(b':');
    let Some(program) = ancestor.program else {
        return out.push(b'?');
    };
    let Some(exe) = &program.exe else {
        return put::text(out, "kernel");
    };
    put_path(out, exe);
}

/// Appends a path; in hex if it is no plain one.
fn put_path(out: &mut Vec<u8>, path: &[u8]) {
    let odd = |&byte: &u8| matches!(byte, b'"' | b',') || !(0x21..0x7f).contains(&byte);
    if path.iter().any(odd) {
        put::hex_bytes(out, path)
    } else {
        out.extend_from_slice(path)
    }
}

fn put_json(out: &mut Vec<u8>, ancestor: &Ancestor<'_>) {
    put::text(out, "{\"pid\":");
    put::decimal(out, ancestor.process.pid.into());
    put::text(out, ",\"start\":");
    put::decimal(out, ancestor.process.start_ns);
    match ancestor.program {
        None => put::text(out, ",\"exe\":null"),
        Some(Program { exe: None, .. }) => put::text(out, ",\"kernel\":true"),
        Some(program) => {
            put::text(out, ",\"exe\":");
            json::string(out, program.exe.as_deref().unwrap_or_default());
            put_script(out, program.script.as_deref());
            put_title(out, program);
        }
    }

    out.push(b'}');
}

fn put_script(out: &mut Vec<u8>, script: Option<&[u8]>) {
    if let Some(script) = script {
        put::text(out, ",\"script\":");
        json::string(out, script);
    }
}

fn put_title(out: &mut Vec<u8>, program: &Program) {
    if program.title.is_empty() {
        return;
    }
    put::text(out, ",\"argv\":");
    let title = &program.title;
    json::list(out, title.strip_suffix(b"\0").unwrap_or(title), 0);
    if program.is_title_cut {
        put::text(out, ",\"argv_cut\":true");
    }
}

/// The process of an event.
#[derive(Debug, Clone, Copy)]
pub struct ProcessText<'a> {
    /// The process.
    pub process: ProcessId,
    /// Id of this start of the system: within it, no two processes have the same number and time.
    pub boot: &'a [u8],
    /// Path of the program that it runs.
    pub exe: Option<&'a [u8]>,
    /// Path of the script that the program is the interpreter of, if that is known.
    pub script: Option<&'a [u8]>,
    /// Current directory, if the event has it.
    pub cwd: Option<&'a [u8]>,
    /// The processes that it comes from.
    pub ancestors: &'a AncestorsText,
}

impl ProcessText<'_> {
    /// Appends the text of ENRICHED.
    pub(crate) fn enriched(&self, out: &mut Vec<u8>) {
        if let Some(script) = self.script {
            put::text(out, " SCRIPT=");
            put::untrusted(out, script);
        }
        out.extend_from_slice(&self.ancestors.enriched);
    }

    /// Appends a JSON object.
    pub(crate) fn json(&self, out: &mut Vec<u8>) {
        put::text(out, "{\"pid\":");
        put::decimal(out, self.process.pid.into());
        put::text(out, ",\"start\":");
        put::decimal(out, self.process.start_ns);
        let texts = [
            (",\"boot\":", Some(self.boot)),
            (",\"exe\":", self.exe),
            (",\"script\":", self.script),
            (",\"cwd\":", self.cwd),
        ];

        for (name, value) in texts {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                put::text(out, name);
                json::string(out, value);
            }
        }

        out.push(b',');
        out.extend_from_slice(&self.ancestors.json);
        out.push(b'}');
    }
}
