//! Sessions from login to logout, as aulast puts them together.
//!
//! A session begins with LOGIN, has its terminal and host from USER_LOGIN, and ends with USER_END. A boot
//! ends all sessions, and is a session itself.

use super::report::write_session;
use super::session::{Session, Status};
use crate::event::Event;
use crate::format::cursor::Cursor;
use crate::format::on_demand::OnDemand;
use crate::interpret::Interpreter;
use crate::Dialect;

const LOGIN: i32 = 1006;
const USER_END: i32 = 1106;
const USER_LOGIN: i32 = 1112;
const SYSTEM_BOOT: i32 = 1127;
const SYSTEM_SHUTDOWN: i32 = 1128;
const DAEMON_START: i32 = 1200;

/// Options of aulast.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Failed logins instead of sessions.
    pub bad: bool,
    /// Print the serial numbers of the events, and the command that finds them.
    pub proof: bool,
    /// Say which events are left out.
    pub debug: bool,
    /// Only sessions whose terminal contains this.
    pub terminal: Option<Vec<u8>>,
    /// Only sessions of this user.
    pub user: Option<Vec<u8>>,
}

/// Text that is written while events are read.
#[derive(Debug, Default)]
pub struct Written {
    /// Text for standard output.
    pub out: Vec<u8>,
    /// Text for standard error.
    pub errors: Vec<u8>,
    /// Records for `--extract`.
    pub records: Vec<u8>,
}

/// The sessions of a log.
pub struct Sessions {
    options: Options,
    interpreter: Interpreter,
    open: Vec<Session>,
    /// Index of the session that was last looked at; past the end for none.
    at: usize,
    kernel: Option<Vec<u8>>,
    now: fn() -> u64,
    written: Written,
}

/// The number of the field that the cursor is at, or -1.
fn number_at(cursor: &Cursor<'_, '_>, is_found: bool) -> i32 {
    match is_found {
        true => cursor.number().unwrap_or(-1),
        false => -1,
    }
}

fn number(cursor: &mut Cursor<'_, '_>, field: &[u8]) -> i32 {
    let is_found = cursor.find(field).is_some();
    number_at(cursor, is_found)
}

impl Sessions {
    /// No session yet. `now` is the clock, for sessions that have not ended.
    pub fn new(options: Options, interpreter: Interpreter, now: fn() -> u64) -> Sessions {
        Sessions {
            options,
            interpreter,
            open: Vec::new(),
            at: 0,
            kernel: None,
            now,
            written: Written::default(),
        }
    }

    /// Takes the text written since the last call.
    pub fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        let kind = event.kind();
        let of_interest = [
            LOGIN,
            USER_LOGIN,
            USER_END,
            SYSTEM_BOOT,
            SYSTEM_SHUTDOWN,
            DAEMON_START,
        ];
        if !of_interest.contains(&kind) {
            return;
        }
        let dialect = self.interpreter.dialect();
        let records: Vec<_> = event
            .records()
            .map(|record| OnDemand::new(record, dialect))
            .collect();
        let mut cursor = Cursor::new(&records, event.key().sec, dialect);
        let (time, serial) = (event.key().sec, event.key().serial);
        match kind {
            LOGIN => self.login(&mut cursor, time, serial),
            USER_LOGIN => self.user_login(&mut cursor, time, serial),
            USER_END => self.logout(&mut cursor, time, serial),
            SYSTEM_BOOT => self.boot(time, serial),
            SYSTEM_SHUTDOWN => self.shutdown(time, serial),
            _ => {
                if let Some(kernel) = cursor.find(b"kernel") {
                    self.kernel = Some(kernel.to_vec());
                }
            }
        }
        // Where the last field was found, or nowhere if it was not.
        let record = cursor.record_at().and_then(|at| event.records().nth(at));
        let text = record.map_or(&b"(null)"[..], |record| record.text);
        self.written.records.extend_from_slice(text);
        self.written.records.push(b'\n');
    }

    /// Reports the sessions that are left.
    pub fn finish(&mut self) {
        for at in 0..self.open.len() {
            self.report(at);
        }
    }

    fn debug(&mut self, what: &str, serial: u64) {
        if self.options.debug {
            let text = format!("{what} for event: {serial}\n");
            self.written.errors.extend_from_slice(text.as_bytes());
        }
    }

    fn report(&mut self, at: usize) {
        let Some(session) = self.open.get_mut(at) else {
            return;
        };
        if session.result != i32::from(self.options.bad) {
            return;
        }
        let is_running = session.name.is_some() && session.end == 0;
        if is_running {
            session.end = (self.now)();
        }
        let is_own = self.interpreter.dialect() == Dialect::Own;
        write_session(
            session,
            is_running,
            self.options.proof,
            is_own,
            &mut self.written.out,
        );
    }

    /// Forgets the session that was looked at; the one before it is looked at then.
    fn delete(&mut self) {
        if self.at < self.open.len() {
            self.open.remove(self.at);
            self.at = self.at.saturating_sub(1);
        }
    }

    fn push(&mut self, session: Session) {
        self.open.push(session);
        self.at = self.open.len() - 1;
    }

    fn find(&mut self, is_it: impl Fn(&Session) -> bool) -> bool {
        match self.open.iter().position(is_it) {
            Some(at) => {
                self.at = at;
                true
            }
            None => false,
        }
    }

    fn login(&mut self, cursor: &mut Cursor<'_, '_>, time: u64, serial: u64) {
        let pid = number(cursor, b"pid");
        let has_auid = second(cursor, b"old-auid", b"auid");
        let auid = number_at(cursor, has_auid);
        let name = match has_auid {
            true => cursor.meaning(&self.interpreter),
            false => None,
        };
        let has_session = second(cursor, b"old-ses", b"ses");
        let session = number_at(cursor, has_session);
        if pid == -1 || auid == -1 || session == -1 {
            return self.debug("Bad login", serial);
        }
        if self.find(|open| open.number == session as u32) {
            let open = &mut self.open[self.at];
            (open.status, open.end) = (Status::Gone, time);
            self.report(self.at);
            self.delete();
        }
        if let Some(user) = &self.options.user {
            if name.as_ref() != Some(user) {
                let user = String::from_utf8_lossy(user).into_owned();
                return self.debug(&format!("login reporting limited to {user}"), serial);
            }
        }
        self.push(Session {
            number: session as u32,
            start: time,
            end: 0,
            auid: auid as u32,
            pid,
            result: -1,
            name,
            terminal: None,
            host: None,
            status: Status::LoggedIn,
            proofs: [serial, 0, 0],
        });
    }

    fn user_login(&mut self, cursor: &mut Cursor<'_, '_>, time: u64, serial: u64) {
        let pid = number(cursor, b"pid");
        let session = number(cursor, b"ses");
        let mut uid = -1;
        if cursor.find(b"uid").is_some() {
            uid = number_at(cursor, true);
        } else {
            cursor.rewind();
            if cursor.find(b"id").is_some() {
                uid = number_at(cursor, true);
            }
            cursor.rewind();
        }
        let mut host = cursor.find(b"hostname");
        if host == Some(b"?") {
            host = cursor.find(b"addr");
        }
        let terminal = cursor.find(b"terminal").unwrap_or(b"?").to_vec();
        let result = match cursor.find(b"res") {
            Some(_) => i32::from(cursor.meaning(&self.interpreter).as_deref() != Some(b"success")),
            None => -1,
        };
        let mut name = None;
        if result == 1 {
            cursor.rewind();
            if cursor.find(b"acct").is_some() {
                name = cursor.meaning(&self.interpreter);
            }
        } else if pid == -1 || uid == -1 || session == -1 {
            return self.debug("Bad user login", serial);
        }
        let is_it = |open: &Session| {
            open.pid == pid && open.auid == uid as u32 && open.number == session as u32
        };
        if result == 0 && self.find(is_it) {
            let wanted = self.options.terminal.as_deref();
            if wanted.is_some_and(|wanted| memchr::memmem::find(&terminal, wanted).is_none()) {
                let wanted = String::from_utf8_lossy(wanted.unwrap_or_default()).into_owned();
                self.delete();
                return self.debug(&format!("User login limited to {wanted}"), serial);
            }
            let open = &mut self.open[self.at];
            open.status = Status::Started;
            open.terminal = Some(terminal);
            open.host = host.map(<[u8]>::to_vec).or(open.host.take());
            open.result = result;
            open.proofs[1] = serial;
        } else if self.options.bad && result == 1 {
            let failed = Session {
                number: 0,
                start: time,
                end: time,
                auid: uid as u32,
                pid,
                result,
                name,
                terminal: Some(terminal),
                host: host.map(<[u8]>::to_vec),
                status: Status::LoggedOut,
                proofs: [0, serial, 0],
            };
            let is_own = self.interpreter.dialect() == Dialect::Own;
            let out = &mut self.written.out;
            write_session(&failed, false, self.options.proof, is_own, out);
        } else if self.options.debug {
            let text = b"Session not found or updated\n";
            self.written.out.extend_from_slice(text);
        }
    }

    fn logout(&mut self, cursor: &mut Cursor<'_, '_>, time: u64, serial: u64) {
        let pid = number(cursor, b"pid");
        let auid = number(cursor, b"auid");
        let session = number(cursor, b"ses");
        if pid == -1 || auid == -1 || session == -1 {
            return self.debug("Bad user logout", serial);
        }
        let is_it = |open: &Session| {
            open.pid == pid && open.auid == auid as u32 && open.number == session as u32
        };
        if !self.find(is_it) {
            return;
        }
        if self.open[self.at].start != 0 {
            self.close(time, serial);
            self.report(self.at);
        } else {
            self.debug("start time error", serial);
        }
        self.delete();
    }

    fn close(&mut self, time: u64, serial: u64) {
        let open = &mut self.open[self.at];
        (open.end, open.status, open.proofs[2]) = (time, Status::LoggedOut, serial);
    }

    fn boot(&mut self, time: u64, serial: u64) {
        for status in [Status::Crash, Status::Down] {
            for at in 0..self.open.len() {
                let open = &mut self.open[at];
                let is_it = match status {
                    Status::Crash => open.name.is_some(),
                    _ => open.status != Status::Crash,
                };
                if is_it {
                    open.proofs[2] = serial;
                    (open.status, open.end) = (status, time);
                    self.report(at);
                }
            }
        }
        self.open.clear();
        let host = self.kernel.clone();
        self.push(Session {
            number: 0,
            start: time,
            end: 0,
            auid: 0,
            pid: 0,
            result: 0,
            name: Some(b"reboot".to_vec()),
            terminal: Some(b"system boot".to_vec()),
            host,
            status: Status::LoggedIn,
            proofs: [serial, 0, 0],
        });
    }

    fn shutdown(&mut self, time: u64, serial: u64) {
        if self.find(|open| open.name.is_some()) {
            self.close(time, serial);
            self.report(self.at);
            self.delete();
        }
    }
}

/// Goes to the `field` that follows `old`, or to the second one from kernels that have no `old`.
fn second(cursor: &mut Cursor<'_, '_>, old: &[u8], field: &[u8]) -> bool {
    if cursor.find(old).is_none() {
        cursor.rewind();
        cursor.find(field);
        cursor.next_field();
    }
    cursor.find(field).is_some()
}
