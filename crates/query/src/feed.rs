//! Lines of any form of log → the state machine: text, and the objects of `log_format = JSON`.

use crate::{json_lines, Assembler, SEPARATOR};
use serde::Deserialize;

/// Gives lines to an [`Assembler`]. A JSON object becomes the lines of its event; unit and container of its
/// `workload` stand where ENRICHED has them.
#[derive(Debug, Default)]
pub struct Feed {
    lines: Vec<u8>,
}

#[derive(Deserialize)]
struct Told {
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
    /// Takes a line, with or without its newline.
    pub fn add(&mut self, line: &[u8], assembler: &mut Assembler) {
        if line.first() != Some(&b'{') {
            assembler.add(line);
            return;
        }
        self.lines.clear();
        if !json_lines(line, &mut self.lines) {
            return;
        }
        let told = serde_json::from_slice::<Told>(line).ok();
        let mut names = told
            .and_then(|told| told.workload)
            .map(names)
            .unwrap_or_default();
        for record in self.lines.split_inclusive(|byte| *byte == b'\n') {
            if names.is_empty() {
                assembler.add(record);
                continue;
            }
            let text = record.strip_suffix(b"\n").unwrap_or(record);
            // Interpretations follow a line of text once.
            let separator = [SEPARATOR];
            let between = if text.contains(&SEPARATOR) {
                &b" "[..]
            } else {
                &separator
            };
            assembler.add(&[text, between, &std::mem::take(&mut names), b"\n"].concat());
        }
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
        match is_plain {
            true => format!("{name}=\"{value}\""),
            false => {
                let hex: String = value.bytes().map(|byte| format!("{byte:02X}")).collect();
                format!("{name}={hex}")
            }
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
