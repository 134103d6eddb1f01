//! Reports with a line per event.

use super::names::Names;
use super::{Kind, Request};
use crate::event::EventView;
use crate::facts::{Facts, Labels, Wanted};
use crate::interpret::keystrokes;
use crate::{time, Dialect};

/// Bytes of a name in aureport's lines.
const NAME_BYTES: usize = 63;

/// A report with a line per event.
pub struct List {
    request: Request,
    wanted: Wanted,
    names: Names,
    number: u64,
    /// Places in the output where the number of a line belongs, if lines are numbered later.
    places: Option<Vec<usize>>,
    /// Second of the last event, and its date and time.
    date: (u64, Vec<u8>),
}

/// A word of a line.
enum Word {
    /// Written unchanged.
    Plain(Vec<u8>),
    /// Written with control characters escaped.
    Text(Vec<u8>),
}

fn plain(text: impl Into<Vec<u8>>) -> Word {
    Word::Plain(text.into())
}

fn result(success: i32) -> Word {
    plain(match success {
        0 => "no",
        1 => "yes",
        _ => "unset",
    })
}

impl List {
    /// An empty report.
    pub fn new(request: Request) -> List {
        List {
            wanted: request.wanted(),
            names: Names::new(&request),
            request,
            number: 0,
            places: None,
            date: (u64::MAX, Vec::new()),
        }
    }

    /// A report whose lines get their numbers from [`List::write`] of another one.
    pub fn of_part(request: Request) -> List {
        List {
            places: Some(Vec::new()),
            ..List::new(request)
        }
    }

    /// The places in the output, since they were taken last, where the numbers of lines belong.
    pub fn take_places(&mut self) -> Vec<usize> {
        self.places.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Appends the lines of a part, numbered. `places` are where the numbers belong.
    pub fn write(&mut self, part: &[u8], places: &[usize], out: &mut Vec<u8>) {
        let ends = places.iter().skip(1).copied().chain([part.len()]);
        for (start, end) in places.iter().zip(ends) {
            self.number += 1;
            out.extend_from_slice(self.number.to_string().as_bytes());
            out.extend_from_slice(&part[*start..end]);
        }
    }

    /// Appends the lines of an event, if the report is about it. Returns whether there were any.
    pub fn add(&mut self, event: EventView<'_>, out: &mut Vec<u8>) -> bool {
        let Some(facts) = Facts::read_view(event, &self.wanted, self.request.dialect) else {
            return false;
        };
        if !self.request.takes(event, &facts) || !self.request.is_about(event, &facts) {
            return false;
        }

        match self.request.kind {
            Kind::Avc => self.avc(event, &facts, out),
            Kind::Tty => return self.tty(event, &facts, out),
            Kind::Key if is_without_key(&facts) => return false,
            _ => {
                self.begin(event, out);
                let words = self.words(event, &facts);
                self.end(event, words, out);
            }
        }

        true
    }

    fn begin(&mut self, event: EventView<'_>, out: &mut Vec<u8>) {
        match &mut self.places {
            Some(places) => places.push(out.len()),
            None => {
                self.number += 1;
                out.extend_from_slice(self.number.to_string().as_bytes());
            }
        }

        if self.date.0 != event.sec {
            self.date.0 = event.sec;
            self.date.1.clear();
            time::write_date_time(event.sec, &mut self.date.1);
        }

        out.extend_from_slice(b". ");
        out.extend_from_slice(&self.date.1);
        out.push(b' ');
    }

    /// Ends a line of an event with its words.
    fn end(&self, event: EventView<'_>, mut words: Vec<Word>, out: &mut Vec<u8>) {
        if self.request.has_hosts {
            words.push(plain(event.node().unwrap_or(b"?")));
        }

        for (number, word) in words.iter().enumerate() {
            if number > 0 {
                out.push(b' ');
            }
            match word {
                Word::Plain(text) if self.request.dialect != Dialect::Own => {
                    out.extend_from_slice(text);
                }
                Word::Plain(text) | Word::Text(text) => {
                    self.request.escape.write(text, out);
                }
            }
        }

        out.push(b'\n');
    }

    fn user(&mut self, event: EventView<'_>, id: u32) -> Vec<u8> {
        self.names.user(id, Some(event), NAME_BYTES)
    }

    /// Text that C's printf prints for a null pointer.
    fn missing(&self) -> &'static [u8] {
        match self.request.dialect {
            Dialect::Own => b"?",
            _ => b"(null)",
        }
    }

    /// A text, or the text that C prints for a missing one where aureport does not check.
    fn required(&self, text: Option<&[u8]>) -> Word {
        plain(text.unwrap_or(self.missing()))
    }

    fn type_name(&self, kind: i32) -> Word {
        Word::Plain(type_name(kind, self.request.dialect))
    }

    fn words(&mut self, event: EventView<'_>, facts: &Facts<'_>) -> Vec<Word> {
        let serial = plain(event.serial.to_string());
        let success = result(facts.call.success);
        let kind = self.type_name(event.kind());
        let exe = facts.exe.as_deref();
        let host = plain(facts.host.as_deref().unwrap_or(b"?"));
        let terminal = plain(facts.terminal.as_deref().unwrap_or(b"?"));
        let program = Word::Text(exe.unwrap_or(b"?").into());
        let comm = Word::Text(facts.comm.as_deref().unwrap_or(b"?").to_vec());
        let user = Word::Text(self.user(event, facts.ids.auid));

        match self.request.kind {
            Kind::Config => vec![kind, self.plain(user), success, serial],
            Kind::Auth | Kind::Login => self.authentication(event, facts),
            Kind::Mods => {
                let acct = plain(facts.acct.as_deref().unwrap_or(b"?"));
                let exe = plain(exe.unwrap_or(b"?"));
                vec![user, host, terminal, exe, acct, success, serial]
            }
            Kind::Event => vec![serial, kind, user, success],
            Kind::File => {
                let call = plain(self.names.syscall(event, facts));
                let file = facts.files.main(self.request.dialect);
                let file = Word::Text(file.unwrap_or_default().to_vec());
                vec![file, call, success, program, user, serial]
            }
            Kind::Host => {
                let call = plain(self.names.syscall(event, facts));
                vec![host, call, user, serial]
            }
            Kind::Pid => {
                let call = plain(self.names.syscall(event, facts));
                vec![
                    plain((facts.ids.pid as u32).to_string()),
                    program,
                    call,
                    user,
                    serial,
                ]
            }
            Kind::Syscall => {
                let call = plain(self.names.syscall(event, facts));
                let pid = plain((facts.ids.pid as u32).to_string());
                vec![call, pid, comm, user, serial]
            }
            Kind::Terminal => {
                let host = self.required(facts.host.as_deref());
                let exe = Word::Text(exe.unwrap_or(self.missing()).to_vec());
                vec![terminal, host, exe, user, serial]
            }
            Kind::User => vec![user, terminal, host, program, serial],
            Kind::Exe => vec![program, terminal, host, user, serial],
            Kind::Comm => vec![comm, terminal, host, user, serial],
            Kind::Anomaly => {
                let what = if exe.is_some() { program } else { comm };
                vec![kind, what, terminal, host, user, serial]
            }
            Kind::Mac => vec![self.plain(user), kind, success, serial],
            Kind::Crypto => vec![user, kind, success, serial],
            Kind::Key => {
                let keys = facts.keys.as_deref().unwrap_or_default();
                let key = match self.request.dialect {
                    Dialect::Own => keys.join(&b','),
                    _ => keys.first().map_or(Vec::new(), |key| key.to_vec()),
                };
                vec![plain(key), success, program, user, serial]
            }
            _ => vec![kind, success, serial],
        }
    }

    /// A name that aureport prints as it is.
    fn plain(&self, word: Word) -> Word {
        match word {
            Word::Text(text) | Word::Plain(text) => Word::Plain(text),
        }
    }

    fn authentication(&mut self, event: EventView<'_>, facts: &Facts<'_>) -> Vec<Word> {
        // Messages of logins that failed have no login id, and all of authentication are about another user.
        let is_login = self.request.kind == Kind::Login;
        let id = if is_login {
            facts.ids.auid
        } else {
            facts.ids.uid
        };

        let who = match facts.acct.as_deref() {
            Some(acct) if !is_login || facts.call.success == 0 => acct.to_vec(),
            _ => self.user(event, id),
        };
        vec![
            Word::Text(who),
            self.required(facts.host.as_deref()),
            self.required(facts.terminal.as_deref()),
            self.required(facts.exe.as_deref()),
            result(facts.call.success),
            plain(event.serial.to_string()),
        ]
    }

    fn avc(&mut self, event: EventView<'_>, facts: &Facts<'_>, out: &mut Vec<u8>) {
        let is_of_avc = |labels: &&Labels<'_>| labels.granted.is_some();
        let mut all: Vec<_> = facts.labels.iter().filter(is_of_avc).collect();
        if all.is_empty() {
            // As in aureport, one without a verdict is printed: the last.
            let is_own = self.request.dialect == Dialect::Own;
            let mut others = facts.labels.iter().rev();
            all.extend(others.find(|labels| !is_own || labels.is_of_apparmor));
        }

        for labels in all {
            self.begin(event, out);
            let verdict = match labels.granted {
                Some(true) => "granted",
                Some(false) => "denied",
                None => "unset",
            };
            let words = vec![
                Word::Text(facts.comm.as_deref().unwrap_or(b"?").to_vec()),
                self.required(labels.subject),
                plain(self.names.syscall(event, facts)),
                self.required(labels.class),
                self.required(labels.permissions),
                self.required(labels.object),
                plain(verdict),
                plain(event.serial.to_string()),
            ];
            self.end(event, words, out);
        }
    }

    fn tty(&mut self, event: EventView<'_>, facts: &Facts<'_>, out: &mut Vec<u8>) -> bool {
        let text = event
            .records()
            .next()
            .map_or(&b""[..], |record| record.text);
        self.begin(event, out);
        let Some(at) = crate::walk::find_from(text, 0, b"data=") else {
            if self.request.dialect == Dialect::Own {
                out.extend_from_slice(b"?\n");
            }
            return true;
        };

        let data = &text[at..];
        let data = &data[..memchr::memrchr(b' ', data).unwrap_or(data.len())];
        let typed = match data.len() {
            0 | 1 if data.iter().all(u8::is_ascii_hexdigit) => {
                [b"conversion error(", data, b")"].concat()
            }
            _ => keystrokes(data),
        };

        let words = vec![
            plain(event.serial.to_string()),
            Word::Text(self.user(event, facts.ids.auid)),
            plain(facts.terminal.as_deref().unwrap_or(b"?")),
            plain(facts.ids.session.to_string()),
            Word::Text(facts.comm.as_deref().unwrap_or(b"?").to_vec()),
            plain(typed),
        ];

        self.end(event, words, out);
        true
    }
}

/// Whether the key is `(null)`, as in calls without a key.
fn is_without_key(facts: &Facts<'_>) -> bool {
    let first = facts.keys.as_deref().and_then(<[_]>::first);
    first.is_none_or(|key| **key == b"(null)"[..])
}

/// The name of a record type, or the text that C prints for a missing one.
pub(super) fn type_name(kind: i32, dialect: Dialect) -> Vec<u8> {
    let name = u32::try_from(kind)
        .ok()
        .and_then(|number| crate::kind::name(number, dialect));
    match name {
        Some(name) => name.as_bytes().to_vec(),
        None if dialect == Dialect::Own => format!("UNKNOWN[{kind}]").into_bytes(),
        None => b"(null)".to_vec(),
    }
}
