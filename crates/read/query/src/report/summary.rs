//! Reports that count.

use super::list::type_name;
use super::names::Names;
use super::select::{
    is_access, ACCOUNT, ANOMALY, CONFIG_CHANGE, CRYPTO, DAEMON_CONFIG, FEATURE_CHANGE, GRP_AUTH,
    GRP_MGMT, INTEGRITY, KERNEL_ANOMALY, KERNEL_CRYPTO, MAC, NETFILTER_CFG, RESPONSE, ROLE,
    USER_AUTH, USER_CHAUTHTOK, USER_LOGIN, USER_LSPP, USER_MAC_CONFIG_CHANGE, USER_MGMT,
    USYS_CONFIG, VIRT,
};
use super::table::{Numbers, Texts};
use super::{Kind, Request, NONE_FOUND};
use crate::event::EventView;
use crate::facts::{Facts, Wanted, NO_LOGIN};
use crate::{time, Dialect};
use abi::record_type as kinds;

/// Numbers of the main summary, in the order in which they are printed.
#[derive(Debug, Clone, Copy)]
enum Total {
    Changes,
    AccountChanges,
    GoodLogins,
    BadLogins,
    GoodAuthentications,
    BadAuthentications,
    Avcs,
    Mac,
    FailedSyscalls,
    Anomalies,
    Responses,
    Crypto,
    Integrity,
    Virt,
    Events,
}

const TOTALS: usize = Total::Events as usize + 1;

/// Tables of the main summary; a report on one thing has only the first.
#[derive(Debug, Clone, Copy)]
enum Column {
    Main,
    Terminals,
    Hosts,
    Exes,
    Comms,
    Files,
    Keys,
}

const COLUMNS: usize = Column::Keys as usize + 1;

/// A report that counts. Several can be made of parts of a log and merged.
pub struct Summary {
    request: Request,
    wanted: Wanted,
    names: Names,
    totals: [u64; TOTALS],
    texts: [Texts; COLUMNS],
    numbers: Numbers,
    /// Place in the log of the text counted last.
    place: u128,
    scratch: Vec<u8>,
}

impl Summary {
    /// An empty report. `part` is the position of its part of the log among those it is merged with.
    pub fn new(request: Request, part: u32) -> Summary {
        let exact = request.dialect != Dialect::Own;
        Summary {
            wanted: request.wanted_to_count(),
            names: Names::new(&request),
            request,
            totals: [0; TOTALS],
            texts: std::array::from_fn(|_| Texts::new(exact)),
            numbers: Numbers::new(exact),
            place: u128::from(part) << 40,
            scratch: Vec::new(),
        }
    }

    /// Goes on with another part of the log.
    pub fn set_part(&mut self, part: u32) {
        self.place = u128::from(part) << 40;
    }

    /// Counts an event, if the report is about it.
    pub fn add(&mut self, event: EventView<'_>) {
        let Some(facts) = Facts::read_view(event, &self.wanted, self.request.dialect) else {
            return;
        };
        if !self.request.takes(event, &facts) {
            return;
        }

        if self.request.dialect == Dialect::Own {
            // Events of a log that is not wholly in order count in the order of their times, whoever reads it.
            let time = u128::from(event.sec) << 64 | u128::from(event.msec) << 54;
            self.place = time | u128::from(event.serial & ((1 << 38) - 1)) << 16;
        }

        match self.request.kind {
            Kind::Main => self.everything(event, &facts),
            _ if self.request.is_about(event, &facts) => self.one(event, &facts),
            _ => {}
        }
    }

    /// Adds what another part counted.
    pub fn merge(&mut self, other: Summary) {
        for (mine, its) in self.totals.iter_mut().zip(other.totals) {
            *mine += its;
        }
        for (mine, its) in self.texts.iter_mut().zip(other.texts) {
            mine.merge(its);
        }
        self.numbers.merge(other.numbers);
    }

    fn one(&mut self, event: EventView<'_>, facts: &Facts<'_>) {
        let mut add = |text: Option<&[u8]>| {
            if let Some(text) = text {
                self.place += 1;
                self.texts[0].add(text, self.place);
            }
        };

        match self.request.kind {
            Kind::Pid => self.numbers.add(facts.ids.pid),
            Kind::Host => add(facts.host.as_deref()),
            Kind::Terminal => add(facts.terminal.as_deref()),
            Kind::Exe => add(facts.exe.as_deref()),
            Kind::Comm => add(facts.comm.as_deref()),
            Kind::File => facts
                .files
                .names
                .iter()
                .flatten()
                .for_each(|file| add(Some(file))),
            Kind::Key => keys(facts).for_each(|key| add(Some(key))),
            Kind::Avc => {
                let objects = facts.labels.iter().filter(|label| label.granted.is_some());
                objects.for_each(|label| add(label.object));
            }
            Kind::Syscall => {
                let mut name = self.names.syscall(event, facts);
                if self.request.dialect != Dialect::Own {
                    name.truncate(31);
                }
                add(Some(&name));
            }
            Kind::User => add(Some(&self.names.user(facts.ids.auid, Some(event), 31))),
            Kind::Auth => match facts.acct.as_deref() {
                Some(acct) if facts.ids.auid == NO_LOGIN => add(Some(acct)),
                _ => add(Some(&self.names.user(facts.ids.auid, Some(event), 63))),
            },
            Kind::Login => match facts.acct.as_deref() {
                Some(acct) if (facts.ids.auid as i32) < 0 => add(Some(acct)),
                _ => add(Some(&self.names.user(facts.ids.auid, Some(event), 63))),
            },
            _ => self.numbers.add(event.kind()),
        }
    }

    fn everything(&mut self, event: EventView<'_>, facts: &Facts<'_>) {
        self.count(Total::Events, 1);
        self.kinds(event, facts);
        let first_call = i32::from(self.request.dialect != Dialect::Own);
        if facts.call.success == 0 && facts.call.syscall >= first_call {
            self.count(Total::FailedSyscalls, 1);
        }

        let place = self.place;
        if facts.ids.auid != NO_LOGIN {
            self.scratch.clear();
            self.scratch
                .extend_from_slice(&facts.ids.auid.to_ne_bytes());
            self.texts[Column::Main as usize].add(&self.scratch, place);
        }

        let single = [
            (Column::Terminals, &facts.terminal),
            (Column::Hosts, &facts.host),
            (Column::Exes, &facts.exe),
            (Column::Comms, &facts.comm),
        ];
        for (column, text) in single {
            if let Some(text) = text {
                self.texts[column as usize].add(text, place);
            }
        }

        for file in facts.files.names.iter().flatten() {
            self.texts[Column::Files as usize].add(file, place);
        }
        for key in keys(facts) {
            self.texts[Column::Keys as usize].add(key, place);
        }
        if facts.ids.pid != -1 {
            self.numbers.add(facts.ids.pid);
        }
    }

    fn count(&mut self, total: Total, by: u64) {
        self.totals[total as usize] += by;
    }

    fn kinds(&mut self, event: EventView<'_>, facts: &Facts<'_>) {
        // Calls and what belongs to them, which most events are, count below for nothing.
        if event
            .records()
            .all(|record| matches!(record.kind, kinds::SYSCALL..=kinds::SOCKETCALL | kinds::SOCKADDR..=kinds::NETFILTER_PKT | kinds::PROCTITLE))
        {
            return;
        }
        let of = |range| u64::from(event.has_of(range));

        let configuration = [
            CONFIG_CHANGE,
            DAEMON_CONFIG,
            USYS_CONFIG,
            NETFILTER_CFG,
            FEATURE_CHANGE,
            USER_MAC_CONFIG_CHANGE,
        ];

        let some = |kinds: &[i32]| kinds.iter().filter(|kind| event.has(**kind)).count() as u64;
        self.count(Total::Changes, some(&configuration) + of(MAC));
        let accounts = some(&[USER_CHAUTHTOK, USER_MGMT, GRP_MGMT]) + of(ACCOUNT) + of(ROLE);
        self.count(Total::AccountChanges, accounts);
        self.count(Total::Crypto, of(KERNEL_CRYPTO) + of(CRYPTO));
        self.count(Total::Mac, of(MAC) + of(USER_LSPP));
        self.count(Total::Virt, of(VIRT));
        self.count(Total::Integrity, of(INTEGRITY));

        self.count(Total::Anomalies, of(ANOMALY) + of(KERNEL_ANOMALY));
        self.count(Total::Responses, of(RESPONSE));
        if is_access(event, self.request.dialect) {
            self.count(Total::Avcs, 1);
        }

        let (good, bad) = (facts.call.success == 1, facts.call.success == 0);
        if event.has(USER_LOGIN) {
            self.count(Total::GoodLogins, good.into());
            self.count(Total::BadLogins, bad.into());
        }

        // Management of users counts only if it failed.
        let is_management = !event.has(USER_AUTH) && event.has(USER_MGMT);
        if event.has(USER_AUTH) || is_management || event.has(GRP_AUTH) {
            let counted = good && !is_management;
            self.count(Total::GoodAuthentications, counted.into());
            self.count(Total::BadAuthentications, bad.into());
        }
    }

    /// Appends the report. `first` and `last` are the times of the log in seconds and milliseconds.
    pub fn write(&mut self, first: (u64, u32), last: (u64, u32), out: &mut Vec<u8>) {
        match self.request.kind {
            Kind::Main => self.write_main(first, last, out),
            Kind::Pid => {
                let rows = self.numbers.rows().into_iter();
                let rows = rows.map(|(pid, hits)| (hits, pid.to_string().into_bytes()));
                self.write_rows(rows.collect(), false, out);
            }
            Kind::Host | Kind::Terminal | Kind::Avc => self.write_texts(false, out),
            Kind::File | Kind::Exe | Kind::Comm | Kind::Key | Kind::Syscall => {
                self.write_texts(true, out);
            }
            Kind::User | Kind::Auth | Kind::Login => self.write_users(out),
            _ => {
                let name = |kind: i32| {
                    if self.request.interpret {
                        type_name(kind, self.request.dialect)
                    } else {
                        kind.to_string().into_bytes()
                    }
                };
                let rows = self.numbers.rows().into_iter();
                let rows = rows.map(|(kind, hits)| (hits, name(kind))).collect();
                self.write_rows(rows, false, out);
            }
        }
    }

    fn write_texts(&self, is_escaped: bool, out: &mut Vec<u8>) {
        let rows = self.texts[0].rows().into_iter();
        let rows = rows.map(|(text, hits)| (hits, text.to_vec())).collect();
        self.write_rows(rows, is_escaped, out);
    }

    /// Users, some of them still as numbers.
    fn write_users(&mut self, out: &mut Vec<u8>) {
        let mut rows = Vec::new();
        for (text, hits) in self.texts[0].rows() {
            let name = match text.first() {
                Some(b'-' | b'0'..=b'9') => {
                    let id = crate::number::signed_decimal(text).unwrap_or(i64::MAX) as u32;
                    self.names.user(id, None, 63)
                }
                _ => text.to_vec(),
            };
            rows.push((hits, name));
        }

        self.write_rows(rows, true, out);
    }

    fn write_rows(&self, rows: Vec<(u64, Vec<u8>)>, is_escaped: bool, out: &mut Vec<u8>) {
        if rows.is_empty() {
            out.extend_from_slice(NONE_FOUND.as_bytes());
            return;
        }

        for (hits, text) in rows {
            out.extend_from_slice(format!("{hits}  ").as_bytes());
            if is_escaped || self.request.dialect == Dialect::Own {
                self.request.escape.write(&text, out)
            } else {
                out.extend_from_slice(&text)
            }
            out.push(b'\n');
        }

        let others = self.numbers.others + self.texts[0].others;
        if others > 0 {
            out.extend_from_slice(format!("{others}  (others, beyond what is kept)\n").as_bytes());
        }
    }

    fn write_main(&self, first: (u64, u32), last: (u64, u32), out: &mut Vec<u8>) {
        let exact = |(sec, msec): (u64, u32), out: &mut Vec<u8>| {
            time::write_date_time(sec, out);
            out.extend_from_slice(format!(".{msec:03}").as_bytes());
        };
        out.extend_from_slice(b"Range of time in logs: ");
        exact(first, out);
        out.extend_from_slice(b" - ");
        exact(last, out);

        out.extend_from_slice(b"\nSelected time for report: ");
        match self.request.start_s {
            0 => time::write_date_time(first.0, out),
            start_s => time::write_date_time(start_s as u64, out),
        }

        out.extend_from_slice(b" - ");
        match self.request.end_s {
            0 => exact(last, out),
            end_s => time::write_date_time(end_s as u64, out),
        }

        out.push(b'\n');
        let total = |which: Total| (self.totals[which as usize], false);
        let distinct = |which: Column| {
            let table = &self.texts[which as usize];
            (table.len() as u64, table.others > 0)
        };

        let rows = [
            ("changes in configuration", total(Total::Changes)),
            (
                "changes to accounts, groups, or roles",
                total(Total::AccountChanges),
            ),
            ("logins", total(Total::GoodLogins)),
            ("failed logins", total(Total::BadLogins)),
            ("authentications", total(Total::GoodAuthentications)),
            ("failed authentications", total(Total::BadAuthentications)),
            ("users", distinct(Column::Main)),
            ("terminals", distinct(Column::Terminals)),
            ("host names", distinct(Column::Hosts)),
            ("executables", distinct(Column::Exes)),
            ("commands", distinct(Column::Comms)),
            ("files", distinct(Column::Files)),
            ("AVC's", total(Total::Avcs)),
            ("MAC events", total(Total::Mac)),
            ("failed syscalls", total(Total::FailedSyscalls)),
            ("anomaly events", total(Total::Anomalies)),
            ("responses to anomaly events", total(Total::Responses)),
            ("crypto events", total(Total::Crypto)),
            ("integrity events", total(Total::Integrity)),
            ("virt events", total(Total::Virt)),
            ("keys", distinct(Column::Keys)),
            (
                "process IDs",
                (self.numbers.len() as u64, self.numbers.others > 0),
            ),
            ("events", total(Total::Events)),
        ];

        for (what, (number, is_least)) in rows {
            let least = if is_least { "at least " } else { "" };
            out.extend_from_slice(format!("Number of {what}: {least}{number}\n").as_bytes());
        }

        out.push(b'\n');
    }
}

/// Keys, without the `(null)` of calls that have none.
fn keys<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = &'f [u8]> {
    let keys = facts.keys.iter().flatten().map(|key| &**key);
    keys.filter(|key| *key != b"(null)")
}
