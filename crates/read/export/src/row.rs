//! A row of the table, with texts that are UTF-8.

use query::row::Row as Event;
use query::{Event as Records, NO_ID, NO_LOGIN};
use std::net::IpAddr;

/// A record of an event.
pub(crate) struct Record {
    /// `SYSCALL`, `PATH`…
    pub(crate) kind: String,
    /// Text after `msg=audit(…): `.
    pub(crate) text: String,
    /// Interpretations of ENRICHED.
    pub(crate) names: Option<String>,
}

/// A row.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) time_ms: i64,
    pub(crate) serial: i64,
    pub(crate) host: Option<String>,
    pub(crate) kind: String,
    pub(crate) pid: Option<i32>,
    pub(crate) ppid: Option<i32>,
    pub(crate) auid: Option<i64>,
    pub(crate) uid: Option<i64>,
    pub(crate) euid: Option<i64>,
    pub(crate) ses: Option<i64>,
    pub(crate) user: Option<String>,
    pub(crate) exe: Option<String>,
    pub(crate) comm: Option<String>,
    pub(crate) syscall: Option<String>,
    pub(crate) success: Option<bool>,
    pub(crate) exit: Option<i64>,
    pub(crate) cwd: Option<String>,
    pub(crate) terminal: Option<String>,
    pub(crate) remote: Option<String>,
    pub(crate) unit: Option<String>,
    pub(crate) container: Option<String>,
    pub(crate) keys: Vec<String>,
    pub(crate) paths: Vec<String>,
    pub(crate) records: Vec<Record>,
    /// Bytes of its text, about.
    pub(crate) size_bytes: usize,
}

impl Row {
    /// The row of an event. `host` is that of records without `node=`, if it is known.
    pub(crate) fn of(event: &Records, host: Option<&str>) -> Row {
        let read = Event::read(event);
        let facts = &read.facts;
        let some = |value: &Option<std::borrow::Cow<'_, [u8]>>| value.as_deref().map(text);
        let own_name = read.node.map(text).or(host.map(str::to_owned));
        // Programs that nobody has called from elsewhere write this host's name.
        let is_other = |name: &String| own_name.as_ref().is_none_or(|own| !is_same_host(own, name));
        let login = |id: u32| (id < NO_LOGIN).then(|| i64::from(id));
        let id = |id: u32| (id != NO_ID).then(|| i64::from(id));

        Row {
            time_ms: i64::try_from(read.time_ms).unwrap_or(i64::MAX),
            serial: i64::try_from(read.serial).unwrap_or(i64::MAX),
            host: own_name.clone(),
            kind: event
                .records()
                .next()
                .map_or_else(String::new, |record| kind(&record)),
            pid: (facts.ids.pid >= 0).then_some(facts.ids.pid),
            ppid: (facts.ids.ppid >= 0).then_some(facts.ids.ppid),
            auid: login(facts.ids.auid),
            uid: id(facts.ids.uid),
            euid: id(facts.ids.euid),
            ses: login(facts.ids.session),
            user: login(facts.ids.auid).and_then(|_| some(&read.auid_name)),
            exe: some(&facts.exe),
            comm: some(&facts.comm),
            syscall: read.call.as_deref().map(str::to_owned),
            success: match facts.call.success {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
            exit: facts.call.exit,
            cwd: Event::cwd(event).map(|cwd| text(&cwd)),
            terminal: some(&facts.terminal).filter(|terminal| terminal != "(none)"),
            remote: some(&facts.address).or(some(&facts.host).filter(is_other)),
            unit: some(&read.unit),
            container: some(&read.container),
            keys: facts
                .keys
                .iter()
                .flatten()
                .filter(|key| ***key != *b"(null)")
                .map(|key| text(key))
                .collect(),
            paths: Event::paths(event)
                .iter()
                .map(|item| text(&item.path))
                .collect(),
            records: event
                .records()
                .map(|record| Record {
                    kind: kind(&record),
                    text: text(body(record.text)),
                    names: record.names.map(text),
                })
                .collect(),
            size_bytes: event.text().len() * 2,
        }
    }
}

/// Whether two names, with or without domain, are of one host. An address is no name.
fn is_same_host(one: &str, other: &str) -> bool {
    let label = |name: &str| name.split('.').next().map(str::to_ascii_lowercase);
    other.parse::<IpAddr>().is_err() && label(one) == label(other)
}

/// Name of a record's type: that of audit, or else the one in the log.
fn kind(record: &query::Record<'_>) -> String {
    let name = u32::try_from(record.kind)
        .ok()
        .and_then(abi::record_type_name);
    name.map_or_else(|| text(record.type_name()), str::to_owned)
}

/// Text after the head of a record.
fn body(line: &[u8]) -> &[u8] {
    match line.windows(3).position(|window| window == b"): ") {
        Some(at) => &line[at + 3..],
        None => line,
    }
}

/// Text as UTF-8. Bytes that are none become `\xNN`, as readers of tables refuse them.
fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}
