//! Lines of any form of log → the state machine: text, text behind the prefix of syslog or the kernel's log, the objects
//! of `log_format = JSON`, and what `journalctl -o export` and `-o json` write.

use crate::prefix::{self, JournalEntry};
use crate::{json_lines, Assembler, SEPARATOR};
use serde::Deserialize;

/// Gives lines to an [`Assembler`]. A JSON object becomes the lines of its event; unit and container of its
/// `workload` stand where ENRICHED has them. Records behind a prefix lose it; the host that it names becomes their node.
#[derive(Debug, Default)]
pub struct Feed {
    lines: Vec<u8>,
    journal: JournalEntry,
    is_in_journal: bool,
    /// Node of records that have none.
    host: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct JsonLine {
    workload: Option<Workload>,
}

#[derive(Deserialize)]
struct Workload {
    unit: Option<String>,
    container: Option<Container>,
}

#[derive(Deserialize)]
struct Container {
    id: Option<String>,
}

impl Feed {
    /// A feed for the log of `host`, which is the node of its records without one.
    pub fn of_host(host: Option<&str>) -> Feed {
        Feed {
            host: host.map(|host| host.as_bytes().to_vec()),
            ..Feed::default()
        }
    }

    /// Takes a line, with or without its newline.
    pub fn add(&mut self, line: &[u8], assembler: &mut Assembler) {
        if assembler.dialect().is_compat() {
            assembler.add(line);
            return;
        }

        match line.first() {
            Some(b'{') => return self.object(line, assembler),
            Some(b't') if self.host.is_some() => return self.of_this_host(line, assembler),
            Some(b't' | b'n') if assembler.take(line) => return,
            _ => {}
        }

        if self.is_in_journal || line.starts_with(b"__CURSOR=") {
            return self.of_journal(line, assembler);
        }

        if let Some((host, record)) = prefix::record(line) {
            self.lines.clear();
            let host = if record.starts_with(b"node=") {
                host
            } else {
                host.or(self.host.as_deref())
            };
            prefix::write(host, record, &mut self.lines);
            assembler.add(&self.lines);
        }
    }

    /// Takes what has not been taken at the end of a log.
    pub fn end(&mut self, assembler: &mut Assembler) {
        if self.is_in_journal {
            self.lines.clear();
            self.journal.end(&mut self.lines);
            assembler.add(&self.lines);
        }
    }

    fn of_this_host(&mut self, line: &[u8], assembler: &mut Assembler) {
        self.lines.clear();
        prefix::write(self.host.as_deref(), line, &mut self.lines);
        assembler.add(&self.lines);
    }

    fn of_journal(&mut self, line: &[u8], assembler: &mut Assembler) {
        self.is_in_journal = true;
        if line == b"\n" || line.starts_with(b"__CURSOR=") {
            return self.end(assembler);
        }
        self.journal.add_line(line);
    }

    /// An object of JSON: an event, or an entry of a journal.
    fn object(&mut self, line: &[u8], assembler: &mut Assembler) {
        self.lines.clear();
        if !json_lines(line, &mut self.lines) {
            let fields = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(line);
            for (name, value) in fields.into_iter().flatten() {
                let text = value.as_str().unwrap_or_default();
                self.journal.add(name.as_bytes(), text.as_bytes());
            }
            self.journal.end(&mut self.lines);
            assembler.add(&self.lines);
            return;
        }

        // The line is read again only if it has what the lines do not.
        let has_workload = memchr::memmem::find(line, b"\"workload\"").is_some();
        let parsed = if has_workload {
            serde_json::from_slice::<JsonLine>(line).ok()
        } else {
            None
        };
        let mut names = parsed
            .and_then(|parsed| parsed.workload)
            .map(names)
            .unwrap_or_default();
        let separator = [SEPARATOR];
        let mut lines = Vec::with_capacity(self.lines.len() + names.len() + 2);
        for (number, record) in self
            .lines
            .split_inclusive(|byte| *byte == b'\n')
            .enumerate()
        {
            if number > 0 || names.is_empty() {
                lines.extend_from_slice(record);
                continue;
            }
            let text = record.strip_suffix(b"\n").unwrap_or(record);
            // Interpretations follow a line of text once.
            let between = if text.contains(&SEPARATOR) {
                &b" "[..]
            } else {
                &separator
            };
            lines.extend_from_slice(&[text, between, &std::mem::take(&mut names), b"\n"].concat());
        }
        assembler.add_object(line, lines.split_inclusive(|byte| *byte == b'\n'));
    }
}

fn names(workload: Workload) -> Vec<u8> {
    let container = workload.container.and_then(|container| container.id);
    let fields = [("UNIT", workload.unit), ("CONTAINER", container)];
    let fields = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let fields = fields.map(|(name, value)| {
        let is_plain = value
            .bytes()
            .all(|byte| byte > b' ' && byte < 0x7f && byte != b'"');
        if is_plain {
            format!("{name}=\"{value}\"")
        } else {
            let hex: String = value.bytes().map(|byte| format!("{byte:02X}")).collect();
            format!("{name}={hex}")
        }
    });

    fields.collect::<Vec<_>>().join(" ").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;
    use crate::Dialect;

    #[test]
    fn an_object_of_json_is_an_event_with_its_unit_and_container() {
        let line = br#"{"time":1795229646.007,"serial":42,"node":"web1","workload":{"unit":"a b.service","container":{"id":"c1"}},"records":[{"type":"SYSCALL","arch":"x86_64","syscall":"openat","success":"no","exit":-13,"a0":"0x1","a1":"0x2","a2":"0x3","a3":"0x4","items":1,"ppid":4,"pid":7,"auid":1000,"uid":0,"gid":0,"euid":0,"suid":0,"fsuid":0,"egid":0,"sgid":0,"fsgid":0,"tty":"pts0","ses":3,"comm":"cat","exe":"/bin/cat","key":["k"]},{"type":"PATH","item":0,"name":"/etc/shadow","nametype":"NORMAL"}]}"#;
        let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
        let mut feed = Feed::default();
        feed.add(line, &mut assembler);
        feed.add(b"{no json", &mut assembler);
        assembler.finish();
        let event = assembler.pop().expect("an event");
        let row = Row::read(&event);
        assert_eq!((row.facts.ids.pid, row.node), (7, Some(&b"web1"[..])));
        assert_eq!(row.unit.as_deref(), Some(&b"a b.service"[..]));
        assert_eq!(row.container.as_deref(), Some(&b"c1"[..]));
        assert_eq!(&*Row::paths(&event)[0].path, b"/etc/shadow");
        assert!(row.is_failure());
        assert!(assembler.pop().is_none());
    }
}
