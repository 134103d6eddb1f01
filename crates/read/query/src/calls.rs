//! Facts of the records of calls: SYSCALL, PATH, CWD, SOCKADDR and others by the kernel.
//!
//! Fields are looked for in the order of ausearch, each behind the one before: that decides
//! what a value is where a record holds a name twice, and which records it rejects.

use crate::event::Record;
use crate::facts::{Facts, Labels, Wanted, AUID, EUID, NO_ID, NO_LOGIN, UID};
use crate::interpret::decoded;
use crate::number::{decode_whole, signed, unsigned};
use crate::walk::{find_from, Malformed, Walk};
use crate::Dialect;
use record::SockaddrView;
use std::borrow::Cow;

/// Bytes at the beginning of PATH and CWD records that hold type and time only.
const HEAD_BYTES: usize = 28;

pub(crate) fn syscall<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if wanted.arch {
        let from = walk.require(b"arch=")?;
        facts.call.arch = unsigned(walk.word(from)?, 16)? as u32;
    }

    let from = walk.require(b"syscall=")?;
    facts.call.syscall = walk.number(from)? as i32;
    if wanted.success {
        if let Some(from) = walk.find(b"success=") {
            facts.call.success = i32::from(walk.word(from)? == b"yes");
        }
    }

    if wanted.exit {
        let from = walk.require(b"exit=")?;
        facts.call.exit = Some(signed(walk.word(from)?)?);
    }

    for argument in [b"a0=", b"a1="] {
        let from = walk.require(argument)?;
        unsigned(walk.word(from)?, 16)?;
    }

    walk.at = task_from(facts, walk, wanted)?;
    if wanted.keys {
        if let Some(from) = walk.find(b"key=") {
            crate::facts::add_keys(&mut facts.keys, walk, from)?;
        }
    }

    Ok(())
}

/// An operation of io_uring, which audit 4 reads. It looks for the number one byte too early.
pub(crate) fn uring<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    let from = walk.require(b"uring_op=")? - 1;
    facts.call.syscall = walk.number(from)? as i32;
    if wanted.success {
        if let Some(from) = walk.find(b"success=") {
            facts.call.success = i32::from(walk.word(from)? == b"yes");
        }
    }

    if wanted.exit {
        let from = walk.require(b"exit=")?;
        facts.call.exit = Some(signed(walk.word(from)?)?);
    }

    walk.at = task_from(facts, walk, wanted)?;
    if wanted.keys {
        if let Some(from) = walk.find(b"key=") {
            crate::facts::add_keys(&mut facts.keys, walk, from)?;
        }
    }

    Ok(())
}

pub(crate) fn task<'e>(
    facts: &mut Facts<'e>,
    walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    task_from(facts, walk, wanted).map(drop)
}

/// Facts of the task. ausearch begins anew at the start of the record here, and looks for the key
/// where it was before: at the second argument.
fn task_from<'e>(
    facts: &mut Facts<'e>,
    before: Walk<'e>,
    wanted: &Wanted,
) -> Result<usize, Malformed> {
    let mut walk = Walk::new(before.text);
    if wanted.ppid {
        if let Some(ppid) = walk.optional_number(b"ppid=")? {
            facts.ids.ppid = ppid as i32;
        }
    }

    if wanted.pid {
        let from = walk.require(b" pid=")?;
        facts.ids.pid = walk.number(from)? as i32;
    }

    if wanted.auid {
        let from = walk.find(b"auid=").or_else(|| walk.find(b"loginuid="));
        facts
            .ids
            .set_named(AUID, walk.number(from.ok_or(Malformed)?)?);
    }

    if wanted.uid {
        let from = user_id(&mut walk)?;
        facts.ids.set_named(UID, walk.number(from)?);
    }

    if wanted.gid {
        let from = walk.require(b"gid=")?;
        facts.ids.gid = walk.number(from)?;
    }

    if wanted.euid {
        let from = walk.require(b"euid=")?;
        facts.ids.set_named(EUID, walk.number(from)?);
    }

    if wanted.egid {
        let from = walk.require(b"egid=")?;
        facts.ids.egid = walk.number(from)?;
    }

    program(facts, &mut walk, wanted)?;
    Ok(before.at)
}

/// Index behind the next `uid=` that is not part of `auid=`.
fn user_id(walk: &mut Walk<'_>) -> Result<usize, Malformed> {
    loop {
        let from = walk.require(b"uid=")?;
        if from < 5 || walk.text[from - 5] != b'a' {
            return Ok(from);
        }
        walk.at = from - 3;
    }
}

/// Terminal, session, name, program, label and result of a task.
fn program<'e>(
    facts: &mut Facts<'e>,
    walk: &mut Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if wanted.terminal {
        if let Some(from) = walk.find(b"tty=") {
            facts.terminal = Some(Cow::Borrowed(walk.word(from)?));
        }
    }

    if wanted.session {
        if let Some(session) = walk.optional_number(b"ses=")? {
            facts.ids.session = session;
        }
    }

    if wanted.comm {
        let from = walk.require(b"comm=")?;
        facts.comm = walk.value(from)?;
    }

    if wanted.exe {
        // From the beginning of the record, as in ausearch.
        let from = find_from(walk.text, 0, b"exe=").ok_or(Malformed)?;
        facts.exe = walk.value(from)?;
    }

    if wanted.subject {
        if let Some(from) = walk.find(b"subj=") {
            facts.labels.push(Labels::of_subject(walk.word(from)?));
        }
    }

    if wanted.success {
        if let Some(from) = walk.find(b"res=") {
            facts.call.success = walk.last_number(from)? as i32;
        }
    }

    Ok(())
}

pub(crate) fn cwd<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if let Some(from) = wanted.files.then(|| walk.find(b" cwd=")).flatten() {
        let value = walk.value(from)?;
        if facts.files.cwd.is_none() {
            facts.files.cwd = value;
        }
    }
    Ok(())
}

pub(crate) fn avc_path<'e>(
    facts: &mut Facts<'e>,
    walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if !wanted.files {
        return Ok(());
    }
    let from = walk.require(b" path=")?;
    facts.files.add(walk, from)
}

/// The text of a record behind its head. ausearch skips the head by its length, also where the separator of ENRICHED
/// stands in it.
pub(crate) fn behind_head(record: Record<'_>) -> Walk<'_> {
    let (text, skipped) = match record.names {
        Some(names) if record.text.len() < HEAD_BYTES => (names, record.text.len() + 1),
        _ => (record.text, 0),
    };
    let at = HEAD_BYTES - skipped;
    Walk { text, at }
}

pub(crate) fn path<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if let Some(from) = wanted.files.then(|| walk.find(b" name=")).flatten() {
        let key = find_from(walk.text, from, b"type=");
        let text = key.map_or(&b""[..], |key| &walk.text[key..]);
        facts.files.add_path(walk, from, text)?;
        walk.at = key.unwrap_or(from);
    }
    object(facts, walk, wanted);
    Ok(())
}

/// The label of the object.
pub(crate) fn object<'e>(facts: &mut Facts<'e>, mut walk: Walk<'e>, wanted: &Wanted) {
    if let Some(from) = wanted.object.then(|| walk.find(b"obj=")).flatten() {
        facts.labels.push(Labels::of_object(walk.last_word(from)));
    }
}

pub(crate) fn packet<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if let Some(from) = wanted.host.then(|| walk.find(b"saddr=")).flatten() {
        facts.host = Some(Cow::Borrowed(walk.word(from)?));
    }
    object(facts, walk, wanted);
    Ok(())
}

/// Families whose addresses have a host or a file.
const HAS_FACTS: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// The remote address, or the file that a socket is bound to.
pub(crate) fn sockaddr<'e>(
    facts: &mut Facts<'e>,
    walk: Walk<'e>,
    wanted: &Wanted,
    dialect: Dialect,
) -> Result<(), Malformed> {
    if !wanted.host && !wanted.files {
        return Ok(());
    }

    let Some(from) = walk.find(b"saddr=") else {
        return Ok(());
    };
    let text = &walk.text[from..];
    facts.host = None;
    let mut address = decode_whole(text).ok_or(Malformed)?;
    address.resize(address.len().max(2), 0);
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit());

    let whole = digits.count() / 2;
    match decoded(&address, whole.max(2)) {
        Some(inet @ (SockaddrView::Inet(..) | SockaddrView::Inet6(..))) => {
            let mut host = Vec::new();
            if wanted.host && inet.write_host(&mut host) {
                facts.host = Some(Cow::Owned(host));
            }
        }
        Some(SockaddrView::Unix(name)) => {
            // The kernel has no name that begins with two zeros: ausearch takes the record for malformed.
            if !dialect.is_compat() || !address[2..].starts_with(&[0, 0]) {
                add_socket(facts, wanted, name.strip_prefix(b"\0").unwrap_or(name));
            } else if wanted.files {
                return Err(Malformed);
            }
        }
        Some(SockaddrView::Unnamed) if whole < 2 => return Err(Malformed),
        Some(SockaddrView::Unnamed) => match &address[2..] {
            // Behind the bytes that it decoded in place, ausearch finds its last digit.
            [] if dialect.is_compat() => add_socket(facts, wanted, &text[3..4]),
            [] if wanted.files => return Err(Malformed),
            odd => add_socket(facts, wanted, odd),
        },
        Some(SockaddrView::Short(family)) if HAS_FACTS.contains(&family.into()) => {
            return Err(Malformed);
        }
        _ => {}
    }

    Ok(())
}

/// Adds the file that a socket is bound to.
fn add_socket(facts: &mut Facts<'_>, wanted: &Wanted, name: &[u8]) {
    if wanted.files {
        let files = facts.files.names.get_or_insert_with(Vec::new);
        files.push(Cow::Owned(name.to_vec()));
        facts.files.note_main();
    }
}

/// NETFILTER_CFG and EVENT_LISTENER: what SYSCALL has not said already.
pub(crate) fn kernel<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if wanted.pid && facts.ids.pid == -1 {
        let from = walk.require(b" pid=")?;
        facts.ids.pid = walk.number(from)? as i32;
    }

    if wanted.uid && facts.ids.uid == NO_ID && facts.ids.named[UID].is_none() {
        let uid = walk.optional_number(b"uid=")?.unwrap_or(0);
        facts.ids.set_named(UID, uid);
    }

    if wanted.auid && facts.ids.auid == NO_LOGIN && facts.ids.named[AUID].is_none() {
        let auid = walk.optional_number(b"auid=")?.unwrap_or(NO_ID);
        facts.ids.set_named(AUID, auid);
    }

    if wanted.terminal && facts.terminal.is_none() {
        let terminal: &[u8] = match walk.find(b"tty=") {
            Some(from) => walk.word(from)?,
            None => b"(none)",
        };
        facts.terminal = Some(Cow::Borrowed(terminal));
    }

    if wanted.session && facts.ids.session == NO_LOGIN {
        facts.ids.session = walk.optional_number(b"ses=")?.unwrap_or(NO_ID);
    }

    kernel_program(facts, walk, wanted)
}

fn kernel_program<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if wanted.subject && facts.labels.is_empty() {
        let from = walk.require(b"subj=")?;
        facts.labels.push(Labels::of_subject(walk.word(from)?));
    }

    if wanted.comm && facts.comm.is_none() {
        let from = walk.require(b"comm=")?;
        facts.comm = walk.value(from)?;
    }

    if wanted.exe && facts.exe.is_none() {
        // From the beginning of the record, as in ausearch.
        facts.exe = match find_from(walk.text, 0, b"exe=") {
            Some(from) => walk.value(from)?,
            None => Some(Cow::Borrowed(b"(null)")),
        };
    }

    if wanted.success {
        if let Some(from) = walk.find(b"res=") {
            facts.call.success = walk.last_number(from)? as i32;
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_path_is_skipped_by_its_length() {
        let rest = b"PATH msg=audit(1795229755.003:9): item=0 name=\"/a\" nametype=NORMAL";
        let whole = [b"type=", &rest[..]].concat();
        for (text, names) in [(&whole[..], None), (b"type", Some(&rest[..]))] {
            let kind = abi::record_type::PATH;
            let record = Record { kind, text, names };
            let (mut facts, mut wanted) = (Facts::default(), Wanted::default());
            wanted.files = true;
            assert_eq!(path(&mut facts, behind_head(record), &wanted), Ok(()));
            assert_eq!(facts.files.names, Some(vec![Cow::Borrowed(&b"/a"[..])]));
        }
    }

    #[test]
    fn addresses_of_ipv6_are_shown_as_by_the_c_library() {
        for shown in ["::64.0.0.1", "::1", "::", "::ffff:1.2.3.4", "fe80::1"] {
            let address: std::net::Ipv6Addr = shown.parse().expect("an address");
            let text = format!("saddr=0A00003500000000{:032X}02000000", u128::from(address));
            let (mut facts, mut wanted) = (Facts::default(), Wanted::default());
            wanted.host = true;
            let walk = Walk::new(text.as_bytes());
            assert_eq!(sockaddr(&mut facts, walk, &wanted, Dialect::Own), Ok(()));
            assert_eq!(facts.host.as_deref(), Some(shown.as_bytes()));

            let short = Walk::new(&text.as_bytes()[..text.len() - 2]);
            assert_eq!(
                sockaddr(&mut facts, short, &wanted, Dialect::Own),
                Err(Malformed)
            );
        }
    }

    #[test]
    fn a_socket_in_an_odd_number_of_digits_has_its_last_one() {
        let name = |dialect, digits: &str| {
            let text = format!("saddr={digits}");
            let (mut facts, mut wanted) = (Facts::default(), Wanted::default());
            wanted.files = true;
            let read = sockaddr(&mut facts, Walk::new(text.as_bytes()), &wanted, dialect);
            read.ok()?;
            facts.files.names.map(|names| names[0].to_vec())
        };
        assert_eq!(name(Dialect::Compat, "01002F776"), Some(b"/w`".to_vec()));
        assert_eq!(name(Dialect::Compat, "01002F7"), None);
        assert_eq!(name(Dialect::Compat, "0100"), Some(b"0".to_vec()));
        assert_eq!(name(Dialect::Own, "0100"), None);
        assert_eq!(name(Dialect::Compat, "01"), None);
        assert_eq!(name(Dialect::Compat, "0100000041"), None);
        assert_eq!(name(Dialect::Own, "010000410042"), Some(b"A".to_vec()));
    }
}
