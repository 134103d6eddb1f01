//! Records of calls on POSIX message queues and on the clock, from the arguments of the calls and what they changed.
//!
//! Source: ipc/mqueue.c. Where it calls audit decides which failed calls have a record.

use abi::exit::{EFAULT, EINVAL};
use record::record::{
    is_success, MqAttr, MqGetsetattr, MqNotify, MqOpen, MqSendrecv, TimeAdjntpval, TimeInjoffset,
};
use record::wire::{self, Event};

const MQ_PRIO_MAX: u64 = 32768;
const NSEC_PER_SEC: i64 = 1_000_000_000;

/// The MQ_OPEN record, if the kernel would make one. `name` is that of the call, here and below.
pub(crate) fn open(name: &str, event: &Event<'_>) -> Option<MqOpen> {
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

/// The MQ_SENDRECV record, if the kernel would make one.
pub(crate) fn sendrecv(name: &str, event: &Event<'_>) -> Option<MqSendrecv> {
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

/// The MQ_NOTIFY record, if the kernel would make one.
pub(crate) fn notify(name: &str, event: &Event<'_>) -> Option<MqNotify> {
    let args = &event.header().args;
    if name != "mq_notify" || event.exit() == Some(EFAULT) && event.memory().is_none() {
        return None;
    }

    // Offset of `sigev_signo`, which follows `sigev_value`, a pointer.
    let at = if event.has_flag(wire::TARSIER_COMPAT) {
        4
    } else {
        8
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

/// The MQ_GETSETATTR record, if the kernel would make one: for successful calls that set attributes.
pub(crate) fn getsetattr(name: &str, event: &Event<'_>) -> Option<MqGetsetattr> {
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

/// Number `i` of a structure of C longs: 64-bit if `is_long`, else 32-bit. `None` beyond the end of `memory`.
fn number(memory: &[u8], i: usize, is_long: bool) -> Option<i64> {
    if is_long {
        let bytes = memory.get(i * 8..i * 8 + 8)?;
        return Some(i64::from_ne_bytes(bytes.try_into().ok()?));
    }
    let bytes = memory.get(i * 4..i * 4 + 4)?;
    Some(i32::from_ne_bytes(bytes.try_into().ok()?).into())
}

/// The TIME_INJOFFSET record: by how much the call set the clock; `None` if it did not.
pub(crate) fn offset(event: &Event<'_>) -> Option<TimeInjoffset> {
    let [sec, nsec, ..] = event.time()?;
    (sec != 0 || nsec != 0).then(|| TimeInjoffset {
        sec: sec.saturating_add(nsec.div_euclid(NSEC_PER_SEC)),
        nsec: nsec.rem_euclid(NSEC_PER_SEC),
    })
}

/// The TIME_ADJNTPVAL records: the values of the clock discipline that the call changed.
pub(crate) fn adjusted(event: &Event<'_>) -> impl Iterator<Item = TimeAdjntpval> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_frame::TestFrame;
    use record::wire::{TARSIER_COMPAT, TARSIER_PART_MEMORY, TARSIER_PART_TIME};

    fn bytes(numbers: &[i64]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
    }

    fn call(args: [u64; 6], exit: i64) -> TestFrame {
        let mut frame = TestFrame::of_call(0);
        (frame.header.args, frame.header.exit) = (args, exit);
        frame
    }

    #[test]
    fn a_time_out_is_told_unless_the_call_was_refused_for_it() {
        let sent = |exit, nsec| {
            let frame = call([3, 0, 10, 1, 0x1000, 0], exit);
            let frame = frame.part(TARSIER_PART_MEMORY, 0, &bytes(&[1, nsec]));
            let frame = frame.bytes();
            sendrecv("mq_timedsend", &Event::parse(&frame).expect("a frame"))
        };
        let told = sent(0, 5).expect("a record");
        assert_eq!((told.timeout_sec, told.timeout_nsec), (1, 5));
        assert_eq!((told.mqdes, told.msg_len, told.msg_prio), (3, 10, 1));
        assert!(sent(EINVAL, 5).is_some());
        assert!(sent(EINVAL, NSEC_PER_SEC).is_none());
    }

    #[test]
    fn a_32_bit_task_has_32_bit_attributes() {
        let mut frame = call([0, 0o2, 0o644, 0x1000, 0, 0], 3);
        frame.header.flags = TARSIER_COMPAT;
        let words: Vec<u8> = [0_i32, 10, -1, 2]
            .iter()
            .flat_map(|n| n.to_ne_bytes())
            .collect();
        let frame = frame.part(TARSIER_PART_MEMORY, 0, &words).bytes();
        let told = open("mq_open", &Event::parse(&frame).expect("a frame"));
        let attr = told.expect("a record").attr;
        assert_eq!((attr.maxmsg, attr.msgsize, attr.curmsgs), (10, -1, 2));
    }

    #[test]
    fn only_what_changed_of_the_clock_is_told() {
        let mut values = vec![0; wire::TARSIER_TIME_VALUES as usize];
        (values[0], values[1]) = (1, -1);
        (values[2], values[3]) = (5, 6);
        let frame = call([0; 6], 0).part(TARSIER_PART_TIME, 0, &bytes(&values));
        let frame = frame.bytes();
        let event = Event::parse(&frame).expect("a frame");
        let told = offset(&event).expect("a record");
        assert_eq!((told.sec, told.nsec), (0, NSEC_PER_SEC - 1));
        let changed: Vec<_> = adjusted(&event)
            .map(|value| (value.old, value.new))
            .collect();
        assert_eq!(changed, [(5, 6)]);
    }
}
