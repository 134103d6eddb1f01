//! Records behind something else: the prefix of syslog or of the kernel's log, or in a journal's export.

use memchr::memmem;

/// Bytes of a line in which a record begins.
const PREFIX_BYTES_MAX: usize = 512;
const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// What some programs write before the first line of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a line that is no record may have one in it.
pub(crate) fn may_have_record(line: &[u8]) -> bool {
    memmem::find(line, b"audit(").is_some() || line.starts_with(b"_AUDIT_")
}

/// The record behind a prefix, and the host that the prefix names. The record may lack `msg=`, as in the kernel's log.
pub(crate) fn record(line: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let window = &line[..line.len().min(PREFIX_BYTES_MAX)];
    let is_begin = |at: usize| {
        at == 0 || matches!(window[at - 1], b' ' | b':' | b'\t') || &window[..at] == BYTE_ORDER_MARK
    };
    let is_record = |at: &usize| {
        let is_word = is_begin(*at) || window[*at - 1] == b'"';
        let rest = &window[at + b"type=".len()..];
        let stamp = memchr::memchr(b' ', rest).map(|blank| &rest[blank + 1..]);
        let starts =
            |stamp: &[u8]| stamp.starts_with(b"msg=audit(") || stamp.starts_with(b"audit(");
        is_word && stamp.is_some_and(starts)
    };

    let at = memmem::find_iter(window, b"type=").find(is_record)?;
    let node = memmem::rfind(&window[..at], b"node=");
    let node = node.filter(|node| is_begin(*node));
    match node {
        Some(node) => Some((None, &line[node..])),
        None => Some((host(&window[..at]), &line[at..])),
    }
}

/// The host in the prefix of syslog: of RFC 3164, RFC 5424, or with a time of ISO 8601.
fn host(prefix: &[u8]) -> Option<&[u8]> {
    let rest = match prefix.strip_prefix(b"<") {
        Some(rest) => &rest[memchr::memchr(b'>', rest)? + 1..],
        None => prefix,
    };
    let mut words = rest.split(|byte| matches!(byte, b' ' | b'\t'));
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let is_iso = |word: &[u8]| {
        word.first().is_some_and(u8::is_ascii_digit) && word.contains(&b'T') && word.contains(&b':')
    };
    let host = match words.next()? {
        b"1" if rest.len() < prefix.len() => words.nth(1)?,
        word if MONTHS.contains(&word) => words.nth(2)?,
        word if is_iso(word) => words.next()?,
        _ => return None,
    };

    let is_tag = host.ends_with(b":") || host.contains(&b'[') || host == b"-";
    (!is_tag).then_some(host)
}

/// Appends a record found by [`record`], with the node of its host and the `msg=` that it may lack.
pub(crate) fn write(host: Option<&[u8]>, record: &[u8], out: &mut Vec<u8>) {
    if let Some(host) = host {
        out.extend_from_slice(b"node=");
        out.extend_from_slice(host);
        out.push(b' ');
    }

    let lacks = memmem::find(record, b" audit(")
        .filter(|at| memmem::find(record, b" msg=audit(").is_none_or(|stamp| stamp > *at));
    match lacks {
        Some(at) => {
            out.extend_from_slice(&record[..=at]);
            out.extend_from_slice(b"msg=");
            out.extend_from_slice(&record[at + 1..]);
        }
        None => out.extend_from_slice(record),
    }
}

/// An entry of `journalctl -o export` or `-o json`, whose fields come one by one.
#[derive(Debug, Default)]
pub(crate) struct JournalEntry {
    message: Vec<u8>,
    host: Vec<u8>,
    kind: Vec<u8>,
    serial: Vec<u8>,
    time_us: Option<u64>,
    /// The next line is the message, behind eight bytes with its length.
    is_binary: bool,
}

impl JournalEntry {
    /// Takes a line of an export. False if it is none.
    pub(crate) fn add_line(&mut self, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if std::mem::take(&mut self.is_binary) {
            self.message = line.get(8..).unwrap_or_default().to_vec();
            return true;
        }
        if line == b"MESSAGE" {
            self.is_binary = true;
            return true;
        }
        let Some(equals) = memchr::memchr(b'=', line) else {
            return false;
        };
        self.add(&line[..equals], &line[equals + 1..])
    }

    /// Takes a field. False if the journal has none of this name, as far as records go.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> bool {
        let into = match name {
            b"MESSAGE" => &mut self.message,
            b"_HOSTNAME" => &mut self.host,
            b"_AUDIT_TYPE_NAME" => &mut self.kind,
            b"_AUDIT_TYPE" if self.kind.is_empty() => &mut self.kind,
            b"_AUDIT_ID" => &mut self.serial,
            b"_SOURCE_REALTIME_TIMESTAMP" => {
                self.time_us = std::str::from_utf8(value)
                    .ok()
                    .and_then(|us| us.parse().ok());
                return true;
            }
            _ => return false,
        };

        *into = value.to_vec();
        true
    }

    /// Appends the record of the entry, if it has one, and begins the next.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        let entry = std::mem::take(self);
        let host = (!entry.host.is_empty()).then_some(&entry.host[..]);
        if let Some((_, record)) = record(&entry.message) {
            let has_node = record.starts_with(b"node=");
            write(if has_node { None } else { host }, record, out);
            out.push(b'\n');
            return;
        }

        let (Some(time_us), false) = (entry.time_us, entry.serial.is_empty()) else {
            return;
        };
        if entry.kind.is_empty() {
            return;
        }

        // journald writes the type before the text.
        let text = entry.message.strip_prefix(&entry.kind[..]);
        let text = text.unwrap_or(&entry.message).trim_ascii_start();
        let stamp = format!(
            " msg=audit({}.{:03}:{}): ",
            time_us / 1_000_000,
            time_us / 1000 % 1000,
            String::from_utf8_lossy(&entry.serial)
        );
        let line = [b"type=", &entry.kind[..], stamp.as_bytes(), text].concat();
        write(host, &line, out);

        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &str) -> Option<String> {
        let (host, record) = record(line.as_bytes())?;
        let mut out = Vec::new();
        write(host, record, &mut out);
        Some(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn records_are_found_behind_the_prefixes_of_syslog_and_of_the_kernel() {
        let record = "type=USER msg=audit(1700000000.100:1): pid=5";
        for (prefix, node) in [
            ("Nov 14 22:13:20 web1 audisp-syslog[812]: ", "web1"),
            ("Nov  4 22:13:20 web1 audispd: ", "web1"),
            ("<13>Nov 14 22:13:20 web1 audispd: ", "web1"),
            (
                "<13>1 2023-11-14T22:13:20.1Z web1 audisp-syslog 812 - - ",
                "web1",
            ),
            (
                "2023-11-14T22:13:20.123456+01:00 web1 audisp-syslog: ",
                "web1",
            ),
            ("[   12.345678] audit: ", ""),
        ] {
            let node = match node {
                "" => String::new(),
                node => format!("node={node} "),
            };
            let wanted = format!("{node}{record}");
            assert_eq!(
                written(&format!("{prefix}{record}")),
                Some(wanted),
                "{prefix}"
            );
        }
        let own = format!("Nov 14 22:13:20 collector audispd: node=db1 {record}");
        assert_eq!(written(&own), Some(format!("node=db1 {record}")));
        let kernel =
            "Nov 14 22:13:20 web1 kernel: [  1.2] audit: type=1400 audit(1700000000.100:1): \
                      apparmor=\"DENIED\"";
        let wanted = "node=web1 type=1400 msg=audit(1700000000.100:1): apparmor=\"DENIED\"";
        assert_eq!(written(kernel).as_deref(), Some(wanted));
        assert_eq!(
            written("Nov 14 22:13:20 web1 sshd[1]: type=x audited"),
            None
        );
    }

    #[test]
    fn an_entry_of_a_journal_is_a_record() {
        let entry = "__CURSOR=x\n_HOSTNAME=web1\n_TRANSPORT=audit\n_AUDIT_TYPE=1112\n\
                     _AUDIT_TYPE_NAME=USER_LOGIN\n_AUDIT_ID=7\n\
                     _SOURCE_REALTIME_TIMESTAMP=1700000000100000\n\
                     MESSAGE=USER_LOGIN pid=5 uid=0 msg='op=login res=success'\n";
        let (mut journal, mut out) = (JournalEntry::default(), Vec::new());
        for line in entry.split_inclusive('\n') {
            journal.add_line(line.as_bytes());
        }
        journal.end(&mut out);
        let wanted = "node=web1 type=USER_LOGIN msg=audit(1700000000.100:7): pid=5 uid=0 \
                      msg='op=login res=success'\n";
        assert_eq!(String::from_utf8(out).expect("text"), wanted);
    }
}
