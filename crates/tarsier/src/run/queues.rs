//! Records of calls on POSIX message queues and on the clock, made of what such calls were given and changed.
//!
//! Source: ipc/mqueue.c, which says how far a call has come when audit is told of it.

use event::record::{
    is_success, MqAttr, MqGetsetattr, MqNotify, MqOpen, MqSendrecv, TimeAdjntpval, TimeInjoffset,
};
use event::wire::{self, Event};

const EFAULT: i64 = -14;
const EINVAL: i64 = -22;
const MQ_PRIO_MAX: u64 = 32768;
const NSEC_PER_SEC: i64 = 1_000_000_000;

/// MQ_OPEN of the call with this name, if audit has one.
pub(super) fn open(name: &str, event: &Event<'_>) -> Option<MqOpen> {
    let args = &event.header().args;
    if name != "mq_open" {
        return None;
    }
    let attr = match args[3] {
        0 => MqAttr::default(),
        _ => attr(event)?,
    };
    Some(MqOpen {
        oflag: args[1] as u32,
        mode: args[2] as u16,
        attr,
    })
}

/// MQ_SENDRECV, if audit has one.
pub(super) fn sendrecv(name: &str, event: &Event<'_>) -> Option<MqSendrecv> {
    let args = &event.header().args;
    let sends = name.starts_with("mq_timedsend");
    if !sends && !name.starts_with("mq_timedreceive") {
        return None;
    }
    let is_long = name.ends_with("_time64") || !event.has_flag(wire::TARSIER_COMPAT);
    let (timeout_sec, timeout_nsec) = match args[4] {
        0 => (0, 0),
        _ => {
            let memory = event.memory()?;
            (number(memory, 0, is_long)?, number(memory, 1, is_long)?)
        }
    };
    let is_valid = timeout_sec >= 0 && (0..NSEC_PER_SEC).contains(&timeout_nsec);
    if event.exit() == Some(EINVAL) && (!is_valid || sends && args[3] >= MQ_PRIO_MAX) {
        return None;
    }
    Some(MqSendrecv {
        mqdes: args[0] as i32,
        msg_len: args[2],
        msg_prio: if sends { args[3] as u32 } else { 0 },
        timeout_sec,
        timeout_nsec,
    })
}

/// MQ_NOTIFY, if audit has one.
pub(super) fn notify(name: &str, event: &Event<'_>) -> Option<MqNotify> {
    let args = &event.header().args;
    if name != "mq_notify" || event.exit() == Some(EFAULT) && event.memory().is_none() {
        return None;
    }
    // Behind `sigev_value`, which is as long as a pointer.
    let at = match event.has_flag(wire::TARSIER_COMPAT) {
        true => 4,
        false => 8,
    };
    let sigev_signo = match args[1] {
        0 => 0,
        _ => i32::from_ne_bytes(event.memory()?.get(at..at + 4)?.try_into().ok()?),
    };
    Some(MqNotify {
        mqdes: args[0] as i32,
        sigev_signo,
    })
}

/// MQ_GETSETATTR, if audit has one: only what was set is told.
pub(super) fn getsetattr(name: &str, event: &Event<'_>) -> Option<MqGetsetattr> {
    let args = &event.header().args;
    let sets = name == "mq_getsetattr" && args[1] != 0 && event.exit().is_some_and(is_success);
    if !sets {
        return None;
    }
    Some(MqGetsetattr {
        mqdes: args[0] as i32,
        attr: attr(event)?,
    })
}

fn attr(event: &Event<'_>) -> Option<MqAttr> {
    let memory = event.memory()?;
    let is_long = !event.has_flag(wire::TARSIER_COMPAT);
    Some(MqAttr {
        flags: number(memory, 0, is_long)?,
        maxmsg: number(memory, 1, is_long)?,
        msgsize: number(memory, 2, is_long)?,
        curmsgs: number(memory, 3, is_long)?,
    })
}

/// Number `i` of a structure of longs.
fn number(memory: &[u8], i: usize, is_long: bool) -> Option<i64> {
    if is_long {
        let bytes = memory.get(i * 8..i * 8 + 8)?;
        return Some(i64::from_ne_bytes(bytes.try_into().ok()?));
    }
    let bytes = memory.get(i * 4..i * 4 + 4)?;
    Some(i32::from_ne_bytes(bytes.try_into().ok()?).into())
}

/// By how much the call set the clock, if it did.
pub(super) fn offset(event: &Event<'_>) -> Option<TimeInjoffset> {
    let [sec, nsec, ..] = event.time()?;
    (sec != 0 || nsec != 0).then(|| TimeInjoffset {
        sec: sec.saturating_add(nsec.div_euclid(NSEC_PER_SEC)),
        nsec: nsec.rem_euclid(NSEC_PER_SEC),
    })
}

/// What the call changed of the clock's discipline.
pub(super) fn adjusted(event: &Event<'_>) -> impl Iterator<Item = TimeAdjntpval> {
    let values = event.time().unwrap_or_default();
    let pairs = TimeAdjntpval::OPS.into_iter().enumerate();
    pairs
        .map(move |(i, op)| TimeAdjntpval {
            op,
            old: values[2 + 2 * i],
            new: values[3 + 2 * i],
        })
        .filter(|value| value.old != value.new)
}
