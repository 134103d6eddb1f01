//! Facts of records that are not part of a call: messages of user space, of the daemon, and
//! single records of the kernel. The order of the fields is that of ausearch.

use crate::facts::{Facts, Labels, Wanted, AUID, UID};
use crate::number::unsigned;
use crate::walk::{find_from, Malformed, Walk};
use crate::Dialect;
use abi::record_type as kinds;
use std::borrow::Cow;

/// A message of user space. With `avc` it is USER_AVC, whose labels go there. What ausearch
/// rejects in the last parts of a record, it takes in a USER_AVC: its result there is an error above 20.
pub(crate) fn user<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    kind: i32,
    wanted: &Wanted,
    avc: Option<&mut Labels<'e>>,
) -> Result<(), Malformed> {
    if wanted.pid {
        let from = walk.require(b"pid=")?;
        facts.ids.pid = walk.number(from)? as i32;
    }

    if wanted.uid {
        let from = walk.require(b"uid=")?;
        facts.ids.set_named(UID, walk.number(from)?);
    }

    if wanted.auid {
        let from = walk.find(b"auid=").or_else(|| walk.find(b"loginuid="));
        facts
            .ids
            .set_named(AUID, walk.number(from.ok_or(Malformed)?)?);
    }

    if wanted.session {
        if let Some(session) = walk.optional_number(b"ses=")? {
            facts.ids.session = session;
        }
    }

    let is_avc = avc.is_some();
    user_labels(facts, &mut walk, wanted, avc)?;
    match user_end(facts, walk, kind, wanted) {
        Err(Rejected::InLastParts) if is_avc => Ok(()),
        Err(_) => Err(Malformed),
        Ok(()) => Ok(()),
    }
}

/// Place of an error in the second half of a message of user space.
enum Rejected {
    InLastParts,
    Before,
}

impl From<Malformed> for Rejected {
    fn from(_: Malformed) -> Rejected {
        Rejected::Before
    }
}

fn last_parts(_: Malformed) -> Rejected {
    Rejected::InLastParts
}

fn user_end<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    kind: i32,
    wanted: &Wanted,
) -> Result<(), Rejected> {
    if wanted.gid && matches!(kind, kinds::ADD_GROUP | kinds::DEL_GROUP | kinds::GRP_MGMT) {
        let gid = || {
            (kind == kinds::GRP_MGMT)
                .then(|| walk.find(b"gid="))
                .flatten()
        };
        if let Some(from) = walk.find(b" id=").or_else(gid) {
            facts.ids.gid = walk.number(from).map_err(last_parts)?;
        }
    }
    virtual_machine(facts, &mut walk, kind, wanted).map_err(last_parts)?;
    if wanted.uid {
        second_user(facts, &mut walk)?;
    }
    user_text(facts, walk, wanted)
}

fn user_labels<'e>(
    facts: &mut Facts<'e>,
    walk: &mut Walk<'e>,
    wanted: &Wanted,
    mut avc: Option<&mut Labels<'e>>,
) -> Result<(), Malformed> {
    if let Some(from) = wanted.subject.then(|| walk.find(b"subj=")).flatten() {
        let label = walk.word(from)?;
        match &mut avc {
            Some(labels) => labels.subject = Some(label),
            None => facts.labels.push(Labels::of_subject(label)),
        }
    }

    if let (Some(labels), true) = (avc, wanted.object) {
        if let Some(from) = walk.find(b"tcontext=") {
            match walk.word(from) {
                Ok(label) => labels.object = Some(label),
                Err(Malformed) => walk.at = from,
            }
        }
        if let Some(from) = walk.find(b"tclass=") {
            match walk.word(from) {
                Ok(class) => labels.class = Some(class),
                Err(Malformed) => walk.at = from,
            }
        }
    }

    Ok(())
}

fn virtual_machine<'e>(
    facts: &mut Facts<'e>,
    walk: &mut Walk<'e>,
    kind: i32,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if let Some(from) = wanted.vm.then(|| walk.find(b"vm=")).flatten() {
        facts.guest.vm = walk.value(from)?;
    }

    if let Some(from) = wanted.uuid.then(|| walk.find(b"uuid=")).flatten() {
        let rest = &walk.text[from..];
        let end = memchr::memchr2(b' ', b':', rest).unwrap_or(rest.len());
        if end == 0 {
            return Err(Malformed);
        }
        facts.guest.uuid = Some(&rest[..end]);
        walk.at = from + end;
    }

    if kind == kinds::VIRT_MACHINE_ID {
        if let Some(from) = wanted.subject.then(|| walk.find(b"vm-ctx=")).flatten() {
            facts.labels.push(Labels::of_subject(walk.word(from)?));
        }
        if let Some(from) = wanted.object.then(|| walk.find(b"img-ctx=")).flatten() {
            facts.labels.push(Labels::of_object(walk.word(from)?));
        }
    } else if kind == kinds::VIRT_RESOURCE && wanted.files {
        let disk = || walk.find(b" new-disk=");
        if let Some(from) = walk.find(b" path=").or_else(disk) {
            facts.files.add(*walk, from)?;
            walk.at = from;
        }
    }

    Ok(())
}

/// The user that the message is about, which some programs add (USER_LOGIN does).
fn second_user(facts: &mut Facts<'_>, walk: &mut Walk<'_>) -> Result<(), Rejected> {
    while let Some(from) = walk.find(b"uid=") {
        match from.checked_sub(5).map(|at| walk.text[at]) {
            Some(b'a') => walk.at = from - 3,
            Some(b's' | b'u') => return Ok(()),
            Some(b'\'' | b' ') => {
                let rest = &walk.text[from..];
                let end = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                walk.at = from + end;
                if end == 0 {
                    return Err(Rejected::Before);
                }
                let uid = unsigned(&rest[..end], 10).map_err(Malformed::from)?;
                facts.ids.set_named(UID, uid as u32);
                return Ok(());
            }
            _ => return Err(Rejected::InLastParts),
        }
    }

    Ok(())
}

/// Name, account, host, file, terminal, program and result.
fn user_text<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Rejected> {
    let after_account = {
        let mut account = walk;
        if let Some(from) = wanted.comm.then(|| walk.find(b"comm=")).flatten() {
            facts.comm = walk.value(from)?;
        }
        match account.find(b"acct=") {
            Some(from) => {
                // ausearch takes a name without its second quote, too.
                facts.acct = account.value_or_legacy(from).unwrap_or_else(|Malformed| {
                    account.at = account.text.len();
                    Some(Cow::Borrowed(&account.text[from + 1..]))
                });
                account.at
            }
            None => walk.at,
        }
    };

    walk.at = after_account;
    let start = walk;
    if let Some(from) = wanted.host.then(|| start.find(b"hostname=")).flatten() {
        host(facts, start, from)?;
    }
    if let Some(from) = wanted.files.then(|| start.find(b"cwd=")).flatten() {
        facts.files.cwd = walk.value_or_legacy(from)?;
    }

    if let Some(from) = wanted.terminal.then(|| start.find(b"terminal=")).flatten() {
        let terminal = walk.word(from).or_else(|_| walk.until(from, b')'))?;
        facts.terminal = Some(Cow::Borrowed(terminal));
    }

    if let Some(from) = wanted.exe.then(|| start.find(b"exe=")).flatten() {
        facts.exe = walk.value_or_legacy(from).map_err(last_parts)?;
    }

    if wanted.success {
        if let Some(from) = start.find(b"res=") {
            let result = walk.until(from, b'\'').map_err(last_parts)?;
            facts.call.success = i32::from(!result.starts_with(b"failed"));
        } else if let Some(from) = start.find(b"result=") {
            let result = walk.until(from, b')').map_err(last_parts)?;
            facts.call.success = i32::from(result.eq_ignore_ascii_case(b"success"));
        }
    }

    Ok(())
}

/// The host, or if that is `?`, its address.
fn host<'e>(facts: &mut Facts<'e>, mut walk: Walk<'e>, from: usize) -> Result<(), Malformed> {
    let mut name = walk.until(from, b',').or_else(|_| walk.word(from))?;
    if name == b"?" {
        walk.at += 1;
        if let Some(from) = walk.find(b"addr=") {
            name = walk.until(from, b',').or_else(|_| walk.word(from))?;
        }
    }
    facts.host = Some(Cow::Borrowed(name));
    Ok(())
}

pub(crate) fn login<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if wanted.pid {
        let from = walk.require(b"pid=")?;
        facts.ids.pid = walk.number(from)? as i32;
    }

    if wanted.uid {
        let from = walk.require(b"uid=")?;
        facts.ids.set_named(UID, walk.number(from)?);
    }

    if let Some(from) = wanted.subject.then(|| walk.find(b"subj=")).flatten() {
        facts.labels.push(Labels::of_subject(walk.word(from)?));
    }

    if wanted.auid {
        let from = [&b"new auid="[..], b" auid=", b"new loginuid="]
            .iter()
            .find_map(|name| walk.find(name));
        facts
            .ids
            .set_named(AUID, last_or_anew(&mut walk, from.ok_or(Malformed)?)?);
    }

    if wanted.success {
        facts.call.success = match walk.find(b"res=") {
            Some(from) => last_or_anew(&mut walk, from)? as i32,
            // Kernels that do not say it know no failure.
            None => 1,
        };
    }

    if wanted.session {
        let from = walk.find(b"new ses=").or_else(|| walk.find(b" ses="));
        facts.ids.session = walk.last_number(from.ok_or(Malformed)?)?;
    }

    Ok(())
}

/// The number at `from`. If it ends the record, the walk begins anew.
fn last_or_anew(walk: &mut Walk<'_>, from: usize) -> Result<u32, Malformed> {
    let number = walk.last_number(from)?;
    if walk.at == from {
        walk.at = 0;
    }
    Ok(number)
}

pub(crate) fn daemon<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    let start = memchr::memchr(b')', walk.text).unwrap_or(0);
    walk.at = start;
    if wanted.auid {
        let from = walk.require(b"auid=")?;
        facts.ids.set_named(AUID, walk.number(from)?);
    }

    if wanted.pid {
        let from = walk.require(b"pid=")?;
        facts.ids.pid = walk.number(from)? as i32;
    }

    if wanted.uid {
        if let Some(uid) = walk.optional_number(b" uid=")? {
            facts.ids.uid = uid;
        }
    }

    if wanted.session {
        if let Some(session) = walk.optional_number(b"ses=")? {
            facts.ids.session = session;
        }
    }

    if let Some(from) = wanted.subject.then(|| walk.find(b"subj=")).flatten() {
        facts.labels.push(Labels::of_subject(walk.last_word(from)));
    }

    daemon_result(facts, walk.text, start, wanted)
}

fn daemon_result(
    facts: &mut Facts<'_>,
    text: &[u8],
    start: usize,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    let from = wanted
        .success
        .then(|| find_from(text, start, b"res="))
        .flatten();
    match from.map(|from| &text[from..]) {
        Some(rest) if !rest.first().is_some_and(u8::is_ascii_alphabetic) => Err(Malformed),
        Some(rest) => {
            facts.call.success = i32::from(!rest.starts_with(b"failed"));
            Ok(())
        }
        None => Ok(()),
    }
}

pub(crate) fn daemon_connection<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if let Some(from) = wanted.host.then(|| walk.find(b"addr=")).flatten() {
        let host = walk.until(from, b':').or_else(|_| walk.word(from))?;
        facts.host = Some(Cow::Borrowed(host));
    }
    daemon_result(facts, walk.text, walk.at, wanted)
}

pub(crate) fn integrity<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
    dialect: Dialect,
) -> Result<(), Malformed> {
    if let Some(pid) = walk.optional_number(b"pid=")? {
        facts.ids.pid = pid as i32;
    }

    if wanted.uid {
        if let Some(uid) = uid_behind_blank(&mut walk, dialect)? {
            facts.ids.set_named(UID, uid);
        }
    }

    if wanted.auid {
        if let Some(from) = find_from(walk.text, 0, b"auid=") {
            facts.ids.set_named(AUID, walk.number(from)?);
        }
    }

    if wanted.session {
        if let Some(session) = walk.optional_number(b"ses=")? {
            facts.ids.session = session;
        }
    }

    if let Some(from) = wanted.subject.then(|| walk.find(b"subj=")).flatten() {
        facts.labels.push(Labels::of_subject(walk.word(from)?));
    }
    if let Some(from) = wanted.comm.then(|| walk.find(b"comm=")).flatten() {
        facts.comm = walk.value(from)?;
    }
    if let Some(from) = wanted.files.then(|| walk.find(b" name=")).flatten() {
        facts.files.add(walk, from)?;
    }

    last_result(facts, walk, wanted)
}

fn last_result(
    facts: &mut Facts<'_>,
    mut walk: Walk<'_>,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if let Some(from) = wanted.success.then(|| walk.find(b"res=")).flatten() {
        facts.call.success = walk.last_number(from)? as i32;
    }
    Ok(())
}

/// CONFIG_CHANGE (`is_config`) and changes of security modules.
pub(crate) fn simple<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    is_config: bool,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if wanted.auid {
        match walk.find(b"auid=") {
            Some(from) => facts.ids.set_named(AUID, walk.last_number(from)?),
            None if is_config => {}
            None => return Err(Malformed),
        }
    }

    if let Some(from) = wanted.session.then(|| walk.find(b"ses=")).flatten() {
        facts.ids.session = walk.last_number(from)?;
    }
    if let Some(from) = wanted.subject.then(|| walk.find(b"subj=")).flatten() {
        facts.labels.push(Labels::of_subject(walk.last_word(from)));
    }
    if let Some(from) = wanted.keys.then(|| walk.find(b"key=")).flatten() {
        crate::facts::add_keys(&mut facts.keys, walk, from)?;
    }

    if is_config {
        facts.call.success = 1;
    }

    last_result(facts, walk, wanted)
}

pub(crate) fn kernel_anomaly<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    kind: i32,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    if wanted.auid {
        let from = walk.require(b"auid=")?;
        facts.ids.set_named(AUID, walk.last_number(from)?);
    }

    if wanted.uid {
        if let Some(uid) = walk.optional_number(b"uid=")? {
            facts.ids.set_named(UID, uid);
        }
    }

    if wanted.gid {
        if let Some(gid) = walk.optional_number(b"gid=")? {
            facts.ids.gid = gid;
        }
    }

    if let Some(from) = wanted.session.then(|| walk.find(b"ses=")).flatten() {
        facts.ids.session = walk.last_number(from)?;
    }
    if kind == kinds::ANOM_PROMISCUOUS {
        return Ok(());
    }
    if let Some(from) = wanted.subject.then(|| walk.find(b"subj=")).flatten() {
        facts.labels.push(Labels::of_subject(walk.word(from)?));
    }

    if wanted.pid {
        if let Some(pid) = walk.optional_number(b"pid=")? {
            facts.ids.pid = pid as i32;
        }
    }

    if let Some(from) = wanted.comm.then(|| walk.find(b"comm=")).flatten() {
        facts.comm = walk.value(from)?;
    }

    if wanted.exe {
        match walk.find(b"exe=") {
            Some(from) => facts.exe = walk.value(from)?,
            None if kind == kinds::ANOM_ABEND => {}
            None => return Err(Malformed),
        }
    }

    if kind == kinds::SECCOMP {
        // A few kernels do not say it.
        let Some(from) = walk.find(b"arch=") else {
            return Ok(());
        };
        facts.call.arch = unsigned(walk.word(from)?, 16)? as u32;
        let from = walk.require(b"syscall=")?;
        facts.call.syscall = walk.number(from)? as i32;
    }

    last_result(facts, walk, wanted)
}

/// The user of a record of a terminal or of integrity. ausearch reads it from the `=` on, where
/// strtoul(3) finds no number.
fn uid_behind_blank(walk: &mut Walk<'_>, dialect: Dialect) -> Result<Option<u32>, Malformed> {
    let Some(from) = walk.find(b" uid=") else {
        return Ok(None);
    };
    if dialect.is_compat() {
        walk.word(from).map(|_| Some(0))
    } else {
        walk.number(from).map(Some)
    }
}

pub(crate) fn tty<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    wanted: &Wanted,
    dialect: Dialect,
) -> Result<(), Malformed> {
    if wanted.pid {
        if let Some(pid) = walk.optional_number(b"pid=")? {
            facts.ids.pid = pid as i32;
        }
    }

    if wanted.uid {
        if let Some(uid) = uid_behind_blank(&mut walk, dialect)? {
            facts.ids.set_named(UID, uid);
        }
    }

    if wanted.auid {
        let from = walk.require(b"auid=")?;
        facts.ids.set_named(AUID, walk.last_number(from)?);
    }

    if wanted.session {
        if let Some(session) = walk.optional_number(b"ses=")? {
            facts.ids.session = session;
        }
    }

    if let Some(from) = wanted.comm.then(|| walk.find(b"comm=")).flatten() {
        facts.comm = walk.value(from)?;
    }

    Ok(())
}
