//! Made-up logs of several hosts, and what every record of them says.

use std::collections::BTreeMap;

/// Pseudo-random numbers of a seed.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    pub(super) fn of<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

pub(super) const HOSTS: [&str; 3] = ["web1", "db1", "mail"];
pub(super) const KEYS: [&str; 4] = ["identity", "passwd-changes", "exec", "time"];
pub(super) const COMMS: [&str; 4] = ["cat", "bash", "sshd", "cron job"];
pub(super) const EXES: [&str; 4] = [
    "/usr/bin/cat",
    "/bin/bash",
    "/usr/sbin/sshd",
    "/usr/sbin/cron",
];
pub(super) const FILES: [&str; 4] = ["/etc/passwd", "/etc/shadow", "/srv/a b", "notes.txt"];
const CALLS: [&str; 4] = ["257", "59", "87", "42"];
const EXITS: [&str; 4] = ["0", "3", "-13", "-2"];

/// A record: its host, its event, its type and its fields.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) at_ms: u64,
    /// Host, milliseconds and serial number.
    pub(super) event: (String, u64, u64),
    pub(super) kind: &'static str,
    pub(super) line: String,
}

impl Record {
    /// Names and values, read in the plainest way: at blanks, and without quotes and encodings.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        let body = self.line.split_once("): ").expect("a head").1;
        let mut fields = Vec::new();
        let mut rest = body.trim_end().replace("msg='", "").replace('\'', "");
        while let Some((before, after)) = rest.split_once('=') {
            let name = before
                .rsplit([' ', '('])
                .next()
                .unwrap_or_default()
                .to_owned();
            let (value, next) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').expect("an end"),
                None => after.split_once(' ').unwrap_or((after, "")),
            };
            let is_quoted = after.starts_with('"');
            fields.push((name.clone(), text_of(&name, value, is_quoted)));
            rest = next.to_owned();
        }
        fields
    }
}

/// The text that a value is, or encodes.
fn text_of(name: &str, value: &str, is_quoted: bool) -> String {
    let is_text = ["comm", "exe", "name", "cwd", "acct", "key"].contains(&name);
    let is_hex =
        value.len().is_multiple_of(2) && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_quoted || !is_text || !is_hex || value.is_empty() {
        return value.to_owned();
    }
    let byte = |at: usize| u8::from_str_radix(&value[at..at + 2], 16).expect("hex");
    let bytes = (0..value.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes).expect("text")
}

/// A text as the kernel writes it: in quotes, or in hex if it has a blank.
fn written(text: &str) -> String {
    if text.contains(' ') {
        text.bytes().map(|byte| format!("{byte:02X}")).collect()
    } else {
        format!("\"{text}\"")
    }
}

/// The records of a log, in the order of time.
pub(super) fn records(numbers: &mut Numbers, events: u64) -> Vec<Record> {
    let mut at_ms = 1_700_000_000_000;
    let mut serials: BTreeMap<&str, u64> = BTreeMap::new();
    let mut records = Vec::new();
    for _ in 0..events {
        at_ms += numbers.below(700);
        let host = numbers.of(&HOSTS);
        let serial = serials.entry(host).or_insert(100);
        *serial += 1;
        let event = (host.to_owned(), at_ms, *serial);
        let mut add = |kind: &'static str, body: String| {
            let (sec, msec) = (at_ms / 1000, at_ms % 1000);
            let line = format!(
                "node={host} type={kind} msg=audit({sec}.{msec:03}:{}): {body}\n",
                event.2
            );
            records.push(Record {
                at_ms,
                event: event.clone(),
                kind,
                line,
            });
        };
        match numbers.below(10) {
            0..=5 => call(numbers, &mut add),
            6 => add("USER_LOGIN", message(numbers)),
            7 => add("USER_AUTH", message(numbers)),
            8 => add(
                "CONFIG_CHANGE",
                format!(
                    "auid={} ses=3 op=add_rule key={} list=4 res=1",
                    id(numbers),
                    written(numbers.of(&KEYS))
                ),
            ),
            _ => add(
                "SERVICE_START",
                "pid=1 uid=0 auid=4294967295 ses=4294967295 msg='unit=cron comm=\"systemd\" \
                 exe=\"/usr/lib/systemd/systemd\" hostname=? addr=? terminal=? res=success'"
                    .to_owned(),
            ),
        }
    }
    records
}

fn id(numbers: &mut Numbers) -> &'static str {
    numbers.of(&["0", "1000", "1001", "33"])
}

fn call(numbers: &mut Numbers, add: &mut impl FnMut(&'static str, String)) {
    let exit = numbers.of(&EXITS);
    let success = if exit.starts_with('-') { "no" } else { "yes" };
    // A call may be recorded with few of its arguments.
    let arguments = numbers.of(&["a0=1 a1=2 a2=3 a3=4 items=1", "a0=0 items=0", ""]);
    let key = match numbers.below(3) {
        0 => "(null)".to_owned(),
        _ => written(numbers.of(&KEYS)),
    };
    if numbers.below(4) == 0 {
        add(
            "AVC",
            format!(
                "avc:  denied  {{ read }} for  pid={} comm={} name=\"x\" dev=\"dm-0\" ino=7 \
                 scontext=u:r:a_t:s0 tcontext=u:r:b_t:s0 tclass=file permissive=0",
                300 + numbers.below(8),
                written(numbers.of(&COMMS)),
            ),
        );
    }
    let (ppid, pid) = (numbers.below(4) + 1, 300 + numbers.below(8));
    let (auid, uid, gid, euid) = (id(numbers), id(numbers), id(numbers), id(numbers));
    let space = if arguments.is_empty() { "" } else { " " };
    add(
        "SYSCALL",
        format!(
            "arch=c000003e syscall={} success={success} exit={exit} {arguments}{space}ppid={ppid} pid={pid} \
             auid={auid} uid={uid} gid={gid} euid={euid} suid=0 fsuid=0 egid={} sgid=0 fsgid=0 tty=pts{} ses={} \
             comm={} exe=\"{}\" subj=u:r:c_t:s0 key={key}",
            numbers.of(&CALLS),
            id(numbers),
            numbers.below(3),
            numbers.below(4) + 1,
            written(numbers.of(&COMMS)),
            numbers.of(&EXES),
        ),
    );
    add("CWD", "cwd=\"/home/alice\"".to_owned());
    let file = written(numbers.of(&FILES));
    add(
        "PATH",
        format!("item=0 name={file} inode=9 dev=08:01 mode=0100644 ouid=0 ogid=0 rdev=00:00 nametype=NORMAL"),
    );
    add(
        "PROCTITLE",
        "proctitle=636174002F6574632F706173737764".to_owned(),
    );
}

fn message(numbers: &mut Numbers) -> String {
    format!(
        "pid={} uid={} auid={} ses={} msg='op=login acct=\"{}\" exe=\"{}\" hostname={} addr={} terminal=ssh res={}'",
        300 + numbers.below(8),
        id(numbers),
        id(numbers),
        numbers.below(4) + 1,
        numbers.of(&["root", "alice"]),
        numbers.of(&EXES),
        numbers.of(&["?", "far.example"]),
        numbers.of(&["?", "203.0.113.9"]),
        numbers.of(&["success", "failed"]),
    )
}
