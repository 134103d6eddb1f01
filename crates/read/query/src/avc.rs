//! Facts of AVC and USER_AVC.

use crate::facts::{Facts, Labels, Wanted};
use crate::messages::user;
use crate::walk::{find_from, Malformed, Walk};
use abi::record_type as kinds;
use memchr::{memchr, memmem};

/// AVC of the kernel, and USER_AVC. The order of the fields is that of ausearch.
pub(crate) fn avc<'e>(
    facts: &mut Facts<'e>,
    mut walk: Walk<'e>,
    kind: i32,
    wanted: &Wanted,
) -> Result<(), Malformed> {
    let mut labels = Labels::default();
    if let Some(from) = walk.find(b"avc: ") {
        if let Some(length) = memchr(b'{', &walk.text[from..]) {
            if wanted.success {
                let verdict = &walk.text[from..from + length];
                let granted = memmem::find(verdict, b"denied").is_none();
                facts.call.success = i32::from(granted);
                labels.granted = Some(granted);
            }
            let text = walk.until(from + length + 1, b'}')?;
            labels.permissions = Some(text.trim_ascii());
            while walk.at > 0 && walk.text[walk.at - 1] == b' ' {
                walk.at -= 1;
            }
        }
    }

    if kind == kinds::USER_AVC {
        // ausearch begins anew at the start of the record.
        let result = user(facts, Walk::new(walk.text), kind, wanted, Some(&mut labels));
        facts.labels.push(labels);
        return result;
    }

    if wanted.pid {
        if let Some(pid) = walk.optional_number(b"pid=")? {
            facts.ids.pid = pid as i32;
        }
    }

    if wanted.comm && facts.comm.is_none() {
        let from = walk.require(b"comm=")?;
        facts.comm = Some(walk.value(from)?.ok_or(Malformed)?);
        if walk.text.get(from) != Some(&b'"') {
            walk.at = (from + 6).min(walk.text.len());
        }
    }

    if wanted.files {
        if let Some(from) = walk.find(b" path=").or_else(|| walk.find(b" name=")) {
            facts.files.add(walk, from)?;
            walk.at = (walk.at + 7).min(walk.text.len());
        }
    }

    if let Some(from) = wanted.subject.then(|| walk.find(b"scontext=")).flatten() {
        labels.subject = Some(walk.word(from)?);
    }
    if let Some(from) = wanted.object.then(|| walk.find(b"tcontext=")).flatten() {
        labels.object = Some(walk.word(from)?);
    }

    let from = find_from(walk.text, walk.at, b"tclass=").ok_or(Malformed)?;
    labels.class = Some(walk.last_word(from));
    facts.labels.push(labels);
    Ok(())
}
