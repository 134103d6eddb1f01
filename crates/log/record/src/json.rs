//! `log_format = JSON`: one object for each event. `docs/json.md` of this crate describes it.
//!
//! Objects are made from the text of RAW, so that records of the kernel and our own are treated alike.

use abi::Arch;
use identity::Workload;

use crate::pending::Pending;
use crate::record::Execve;
use crate::remembered::RememberedRecord;
use crate::text::{self, fields, Field};
use crate::{put, sockaddr, ContainerNames, RecordType, SockaddrView, Stamp};

/// Appends the object of the event whose bodies are pending, and a newline. Clears the bodies.
pub(crate) fn event(out: &mut Vec<u8>, node: &[u8], stamp: Stamp, pending: &mut Pending) {
    put::text(out, "{\"time\":");
    put::decimal(out, stamp.sec);
    out.push(b'.');
    put::padded(out, stamp.msec.into(), 3);
    put::text(out, ",\"serial\":");
    put::decimal(out, stamp.serial.into());

    if !node.is_empty() {
        put::text(out, ",\"node\":");
        string(out, node);
    }

    if !pending.workload.is_empty() {
        put::text(out, ",\"workload\":");
        out.append(&mut pending.workload);
    }

    if !pending.process.is_empty() {
        put::text(out, ",\"process\":");
        out.append(&mut pending.process);
    }

    out.append(&mut pending.labels);
    if !pending.hashes.is_empty() {
        put::text(out, ",\"hashes\":");
        out.append(&mut pending.hashes);
    }

    put::text(out, ",\"records\":[");
    records(out, pending);
    put::text(out, "]}\n");
}

/// Appends the objects of the records whose bodies are pending, with commas. Clears the bodies.
fn records(out: &mut Vec<u8>, pending: &mut Pending) {
    let Pending {
        text,
        bodies,
        scratch,
        argv,
        remembered,
        ..
    } = pending;

    let mut comma = "";
    let mut rest = &bodies[..];
    // The type of the record before, and the number of its records behind each other.
    let (mut before, mut number) = (RecordType::NONE, 0);
    while let Some((kind, span)) = rest.first().cloned() {
        put::text(out, comma);
        comma = ",";
        number = if kind == before { number + 1 } else { 0 };
        before = kind;
        let same = rest.iter().take_while(|(next, _)| *next == kind).count();
        let taken = if kind == RecordType::EXECVE { same } else { 1 };
        let known = remembered.record(kind, number);
        out.extend_from_slice(known.head());
        if kind == RecordType::EXECVE {
            argv.clear();
            let fit = rest[..taken]
                .iter()
                .try_for_each(|(_, span)| argv.push(&text[span.clone()]));
            match fit {
                Ok(()) => argument_list(out, &argv.record()),
                Err(_) => {
                    put::text(out, ",\"text\":");
                    string(out, &text[span.start..rest[taken - 1].1.end]);
                }
            }
        } else {
            Object {
                out,
                scratch,
                kind,
                arch: None,
            }
            .record(&text[span], known);
        }
        out.push(b'}');
        rest = &rest[taken..];
    }

    text.clear();
    bodies.clear();
}

/// The object that says whose work an event is. `is_cut`: there is more of the path.
pub(crate) fn workload(
    workload: &Workload<'_>,
    names: Option<&ContainerNames>,
    path: &[u8],
    is_cut: bool,
) -> Vec<u8> {
    let mut out = b"{".to_vec();
    let texts = [
        ("\"unit\":", workload.unit.as_deref()),
        ("\"user_unit\":", workload.user_unit.as_deref()),
        ("\"slice\":", workload.slice.as_deref()),
    ];

    for (name, value) in texts {
        if let Some(value) = value {
            put::text(&mut out, name);
            string(&mut out, value);
            out.push(b',');
        }
    }

    if let Some(container) = &workload.container {
        put::text(&mut out, "\"container\":{\"id\":");
        string(&mut out, &container.id);
        if let Some(names) = names {
            put_name(&mut out, ",\"name\":", &names.container);
            put_name(&mut out, ",\"image\":", &names.image);
        }
        if let Some(runtime) = container.runtime {
            put::text(&mut out, ",\"runtime\":");
            string(&mut out, runtime.name().as_bytes());
        }
        if let Some(outer) = &workload.outer {
            put::text(&mut out, ",\"outer\":");
            string(&mut out, outer);
        }
        put::text(&mut out, "},");
    }

    if let Some(pod) = &workload.pod {
        put::text(&mut out, "\"pod\":{\"uid\":");
        string(&mut out, pod);
        if let Some(names) = names {
            put_name(&mut out, ",\"name\":", &names.pod);
            put_name(&mut out, ",\"namespace\":", &names.namespace);
        }
        put::text(&mut out, "},");
    }

    put::text(&mut out, "\"cgroup\":");
    string(&mut out, path);
    if is_cut {
        put::text(&mut out, ",\"cgroup_cut\":true");
    }

    out.push(b'}');
    out
}

/// Appends a name, or `null` if it is not known.
fn put_name(out: &mut Vec<u8>, label: &str, name: &Option<String>) {
    put::text(out, label);
    match name {
        Some(name) => string(out, name.as_bytes()),
        None => put::text(out, "null"),
    }
}

/// Appends the object of a message without a valid stamp.
pub(crate) fn unparsed(out: &mut Vec<u8>, node: &[u8], kind: RecordType, message: &[u8]) {
    put::text(out, "{\"type\":\"");
    put::record_type(out, kind);
    out.push(b'"');
    if !node.is_empty() {
        put::text(out, ",\"node\":");
        string(out, node);
    }
    put::text(out, ",\"text\":");
    string(out, message);
    put::text(out, "}\n");
}

fn argument_list(out: &mut Vec<u8>, record: &Execve<'_>) {
    put::text(out, ",\"argc\":");
    put::decimal(out, record.argc());
    put::text(out, ",\"argv\":");
    match record.iter().next() {
        Some(_) => list(
            out,
            record.args.strip_suffix(b"\0").unwrap_or(record.args),
            0,
        ),
        None => put::text(out, "[]"),
    }

    if record.cut_bytes > 0 {
        put::text(out, ",\"cut_bytes\":");
        put::decimal(out, record.cut_bytes);
    }
}

/// Appends `["a","b"]`: the pieces of `text` between separators.
pub(crate) fn list(out: &mut Vec<u8>, text: &[u8], separator: u8) {
    let mut mark = b'[';
    for piece in text.split(|&byte| byte == separator) {
        out.push(mark);
        string(out, piece);
        mark = b',';
    }
    out.push(b']');
}

/// Whether text can be put in quotes as it is.
fn is_plain(text: &[u8]) -> bool {
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\');
    match text.len() {
        // Names and numbers: a loop over few bytes is quicker than one that is made for many.
        0..16 => text.iter().all(|&byte| is_plain(byte)),
        _ => text
            .iter()
            .fold(true, |plain, &byte| plain & is_plain(byte)),
    }
}

/// Appends a JSON string, or `{"text":"…\ufffd…","hex":"…"}` if the bytes are not UTF-8.
pub(crate) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    if is_plain(bytes) {
        return put::quoted(out, bytes);
    }

    match core::str::from_utf8(bytes) {
        Ok(text) => plain_string(out, text.as_bytes()),
        Err(_) => {
            put::text(out, "{\"text\":");
            plain_string(out, bytes);
            put::text(out, ",\"hex\":\"");
            put::hex_bytes(out, bytes);
            put::text(out, "\"}");
        }
    }
}

/// Appends a JSON string, with U+FFFD in place of bytes that are not UTF-8.
fn plain_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if is_plain(bytes) {
        return put::quoted(out, bytes);
    }

    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend([b'\\', character as u8]),
                '\n' => put::text(out, "\\n"),
                '\t' => put::text(out, "\\t"),
                // C1 too, which a terminal obeys.
                _ if character.is_control() => {
                    put::text(out, "\\u00");
                    put::hex(out, character.into(), 2);
                }
                _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            put::text(out, "\\ufffd");
        }
    }

    out.push(b'"');
}

/// A number with so many digits fits into 64 bits.
const DIGITS_SURE: usize = 18;

/// The meaning of a value, which its spelling alone does not tell.
enum Class {
    Arch,
    Syscall,
    UringOp,
    /// A register or flag word in hex without 0x.
    Hex,
    /// Text, even if it looks like a number.
    Text,
    /// An untrusted string: in quotes or in hex.
    Untrusted,
    Keys,
    CommandLine,
    Sockaddr,
    /// A number if it looks like one, otherwise text.
    Plain,
}

fn class(kind: RecordType, name: &[u8]) -> Class {
    match name {
        b"arch" => Class::Arch,
        b"syscall" => Class::Syscall,
        b"uring_op" => Class::UringOp,
        // A rule's key; that of an AVC is the number of shared memory or a semaphore.
        b"key" if kind != RecordType::AVC => Class::Keys,
        b"proctitle" => Class::CommandLine,
        b"saddr" if kind == RecordType::SOCKADDR => Class::Sockaddr,
        b"comm" | b"exe" | b"name" | b"cwd" | b"ocomm" | b"path" | b"dir" | b"data" | b"cmd"
        | b"acct" | b"device" | b"vm" | b"ocwd" | b"grp" | b"file" | b"profile" | b"sw"
        | b"root_dir" => Class::Untrusted,
        b"per" | b"qbytes" => Class::Hex,
        [b'a', b'0'..=b'9'] if matches!(kind, RecordType::SYSCALL | RecordType::SOCKETCALL) => {
            Class::Hex
        }
        b"mode" | b"oflag" | b"fver" | b"cap_fver" | b"cap_fp" | b"cap_fi" | b"cap_pi"
        | b"cap_pp" | b"cap_pe" | b"cap_pa" | b"fp" | b"fi" | b"pp" | b"pi" | b"pe" | b"pa"
        | b"old_pp" | b"old_pi" | b"old_pe" | b"old_pa" | b"hostname" | b"addr" | b"terminal"
        | b"tty" | b"subj" | b"obj" | b"ver" | b"kernel" | b"unit" | b"text" | b"op" => Class::Text,
        _ => Class::Plain,
    }
}

/// One record being written.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    scratch: &'a mut Vec<u8>,
    kind: RecordType,
    arch: Option<Arch>,
}

impl Object<'_> {
    /// [`body`](Self::body), by means of the members of the record of its type before.
    fn record(&mut self, body: &[u8], remembered: &mut RememberedRecord) {
        let mut has_words = false;
        let (mut rest, mut place) = (body, 0);
        while !rest.is_empty() {
            let copied = remembered.copy(place, rest, &mut self.arch, self.out);
            if let Some(after) = copied {
                (rest, place) = (after, place + 1);
                continue;
            }

            let mut left = fields(rest);
            let Some(field) = left.next() else { break };
            let text = &rest[..rest.len() - left.rest().len()];
            rest = left.rest();
            if !field.has_value {
                has_words |= !field.value.is_empty();
                continue;
            }

            let (start, arch) = (self.out.len(), self.arch);
            self.out.push(b',');
            self.field(&field);
            let json = &self.out[start..];
            remembered.keep(place, (text, &field), json, (arch, self.arch));
            place += 1;
        }

        if has_words {
            self.words(body);
        }
    }

    /// Appends `,"name":value` for each field, and all bare words together as `"words"`.
    fn body(&mut self, body: &[u8]) {
        let mut has_words = false;
        for field in fields(body) {
            if field.has_value {
                self.out.push(b',');
                self.field(&field);
            } else {
                has_words |= !field.value.is_empty();
            }
        }

        if has_words {
            self.words(body);
        }
    }

    fn words(&mut self, body: &[u8]) {
        self.scratch.clear();
        for word in fields(body).filter(|field| !field.has_value && !field.value.is_empty()) {
            if !self.scratch.is_empty() {
                self.scratch.push(b' ');
            }
            self.scratch.extend_from_slice(word.value);
        }
        put::text(self.out, ",\"words\":");
        string(self.out, self.scratch);
    }

    fn field(&mut self, field: &Field<'_>) {
        plain_string(self.out, field.name);
        self.out.push(b':');
        if field.value == b"(null)" {
            return put::text(self.out, "null");
        }

        match class(self.kind, field.name) {
            Class::Arch => self.arch_name(field.value),
            Class::Syscall => self.syscall_name(field.value),
            Class::UringOp => {
                let op = text::number(field.value, 10).and_then(|op| u32::try_from(op).ok());
                self.named(op.and_then(abi::uring_op_name), field.value);
            }
            Class::Hex => {
                put::text(self.out, "\"0x");
                self.out.extend(
                    field
                        .value
                        .iter()
                        .filter(|byte| byte.is_ascii_alphanumeric()),
                );
                self.out.push(b'"');
            }
            Class::Text => string(self.out, field.quoted().unwrap_or(field.value)),
            Class::Untrusted => {
                self.decode(field);
                string(self.out, self.scratch);
            }
            Class::Keys => {
                self.decode(field);
                list(self.out, self.scratch, 1);
            }
            Class::CommandLine if field.value == b"\"(null)\"" => put::text(self.out, "null"),
            Class::CommandLine => {
                self.decode(field);
                list(self.out, self.scratch, 0);
            }
            Class::Sockaddr => self.sockaddr(field),
            Class::Plain => self.plain(field),
        }
    }

    /// Decodes an untrusted string into `scratch`.
    fn decode(&mut self, field: &Field<'_>) {
        self.scratch.clear();
        match field.quoted() {
            Some(inner) => self.scratch.extend_from_slice(inner),
            None if text::is_hex(field.value) => text::unhex(self.scratch, field.value),
            None => self.scratch.extend_from_slice(field.value),
        }
    }

    fn named(&mut self, name: Option<&str>, value: &[u8]) {
        string(self.out, name.map_or(value, str::as_bytes));
    }

    fn arch_name(&mut self, value: &[u8]) {
        let number = text::number(value, 16).and_then(|number| u32::try_from(number).ok());
        self.arch = number.and_then(Arch::from_audit_arch);
        self.named(self.arch.map(Arch::name), value);
    }

    fn syscall_name(&mut self, value: &[u8]) {
        let number = text::number(value, 10).and_then(|number| u32::try_from(number).ok());
        let name = self
            .arch
            .zip(number)
            .and_then(|(arch, number)| abi::syscall_name(arch, number));
        self.named(name, value);
    }

    fn plain(&mut self, field: &Field<'_>) {
        match field.value {
            [b'\'', inner @ .., b'\''] => {
                string(self.out, inner);
                put::text(self.out, ",\"msg_fields\":{");
                let start = self.out.len();
                self.body(inner);
                if self.out.len() > start {
                    self.out.remove(start); // the comma before the first field
                }
                self.out.push(b'}');
            }
            value if is_number(value) => self.out.extend_from_slice(value),
            value => string(self.out, field.quoted().unwrap_or(value)),
        }
    }

    /// Appends the address as `"hex"`, and its parts under the names that ENRICHED uses.
    fn sockaddr(&mut self, field: &Field<'_>) {
        string(self.out, field.value);
        self.scratch.clear();
        text::unhex(self.scratch, field.value);
        let Some(address) = SockaddrView::parse(self.scratch) else {
            return;
        };

        put::text(self.out, ",\"saddr_fam\":");
        let family = address.family();
        match sockaddr::family_name(family) {
            Some(name) => string(self.out, name.as_bytes()),
            None => put::decimal(self.out, family.into()),
        }

        match address {
            SockaddrView::Unix(path) => {
                put::text(self.out, ",\"path\":");
                string(self.out, path);
            }
            SockaddrView::Inet(address, port) => {
                put::text(self.out, ",\"laddr\":\"");
                sockaddr::ipv4(self.out, address);
                put::field(self.out, "\",\"lport\":", port.into());
            }
            SockaddrView::Inet6(address, port, scope) => {
                put::text(self.out, ",\"laddr\":\"");
                sockaddr::ipv6(self.out, address, scope);
                put::field(self.out, "\",\"lport\":", port.into());
            }
            SockaddrView::Netlink(port) => put::field(self.out, ",\"nlnk-pid\":", port),
            SockaddrView::Other(_)
            | SockaddrView::Short(_)
            | SockaddrView::Unnamed
            | SockaddrView::Ax25(_)
            | SockaddrView::Atmpvc(_)
            | SockaddrView::X25(_) => {}
        }
    }
}

/// Whether the value is a decimal number in JSON's syntax (no leading zero, no plus) that fits into 64 bits.
fn is_number(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let canonical = match digits {
        [b'0'] => value.len() == 1,
        [b'1'..=b'9', ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if digits.len() <= DIGITS_SURE {
        return canonical;
    }
    let text = core::str::from_utf8(value).unwrap_or_default();
    canonical && (text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok())
}
