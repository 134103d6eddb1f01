//! Decides which events are alike: the same was done by the same program of the same user to the same object, with the
//! same outcome. Only details that differ from one call to the next by themselves are left out.
//!
//! An attacker who acts as others do is counted with them; so whatever tells one act from another counts, down to the
//! flags of a call. A hash with collisions would let him choose what he is counted with.

use serde_json::Value;

use crate::events::is_call;

/// Digits of an argument that is an address: of the stack, the heap, or a shared library.
const ADDRESS_DIGITS_MIN: usize = 9;

/// Two events with the same likeness are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Likeness([u8; 32]);

/// The likeness of an event, whose lines are in RAW, ENRICHED or JSON.
pub fn likeness(lines: &[u8]) -> Likeness {
    let mut hasher = blake3::Hasher::new();
    match serde_json::from_slice(lines) {
        Ok(Value::Object(mut object)) => {
            object.remove("time");
            object.remove("serial");
            let mut event = Value::Object(object);
            leave_out_chance(&mut event);
            hasher.update(event.to_string().as_bytes());
        }
        _ => {
            for line in lines.split(|byte| *byte == b'\n') {
                record(line, &mut hasher);
            }
        }
    }

    Likeness(*hasher.finalize().as_bytes())
}

/// Adds a record in RAW or ENRICHED.
fn record(line: &[u8], hasher: &mut blake3::Hasher) {
    // Only the first type is the record's: texts of others may hold the word.
    let mut kind = None;
    for word in line.split(|byte| matches!(byte, b' ' | 0x1d)) {
        if word.starts_with(b"msg=audit(") {
            continue;
        }
        let text = std::str::from_utf8(word).unwrap_or_default();
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        if name == "type" && kind.is_none() {
            kind = Some(value);
        }
        if is_by_chance(
            name,
            value,
            kind.is_some_and(|kind| is_call(kind.as_bytes())),
        ) {
            hasher.update(name.as_bytes())
        } else {
            hasher.update(word)
        };
        hasher.update(b" ");
    }

    hasher.update(b"\n");
}

/// Removes from an event in JSON what differs by chance.
fn leave_out_chance(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let is_call = object
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(|kind| is_call(kind.as_bytes()));
            object.retain(|name, value| match value {
                Value::String(text) => !is_by_chance(name, text, is_call),
                Value::Number(number) => !is_by_chance(name, &number.to_string(), is_call),
                _ => true,
            });
            object.values_mut().for_each(leave_out_chance);
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_chance),
        _ => {}
    }
}

/// Whether a field differs between acts that are alike: process ids, addresses, and results of calls that succeed.
fn is_by_chance(name: &str, value: &str, is_call: bool) -> bool {
    match name {
        "pid" | "ppid" => true,
        "a0" | "a1" | "a2" | "a3" => is_call && value.len() >= ADDRESS_DIGITS_MIN,
        "exit" => is_call && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event with these replacements.
    fn event(changes: &[(&str, &str)]) -> Likeness {
        let mut text = "type=SYSCALL msg=audit(1795229630.644:45): arch=c000003e syscall=257 success=yes exit=3 \
                        a0=ffffff9c a1=7ffdf0a5a4c2 a2=0 a3=0 items=1 ppid=6 pid=7 auid=0 uid=1000 comm=\"cat\" \
                        exe=\"/usr/bin/cat\" key=\"k\"\x1dARCH=x86_64 UID=\"me\"\n\
                        type=PATH msg=audit(1795229630.644:45): item=0 name=\"/etc/passwd\" inode=5\n\
                        type=EXECVE msg=audit(1795229630.644:45): argc=2 a0=\"cat\" a1=\"/etc/passwd-and-more\"\n"
            .to_owned();
        for (old, new) in changes {
            assert!(text.contains(old), "{old}");
            text = text.replace(old, new);
        }
        likeness(text.as_bytes())
    }

    #[test]
    fn all_counts_but_what_differs_by_chance() {
        let by_chance = [
            ("644:45", "645:46"),
            (" pid=7", " pid=8"),
            ("ppid=6", "ppid=60"),
            ("exit=3", "exit=4"),
            ("7ffdf0a5a4c2", "55d0f0a5a4c2"),
        ];
        let on_purpose = [
            ("success=yes exit=3", "success=no exit=-13"),
            ("a2=0", "a2=241"),
            ("auid=0", "auid=1000"),
            ("UID=\"me\"", "UID=\"you\""),
            ("/usr/bin/cat", "/tmp/cat"),
            ("name=\"/etc/passwd\"", "name=\"/etc/shadow\""),
            ("inode=5", "inode=6"),
            ("a1=\"/etc/passwd-and-more\"", "a1=\"/etc/shadow-and-more\""),
            ("key=\"k\"", "key=\"k2\""),
            ("item=0 ", "item=0  "),
        ];
        for (changes, is_alike) in [(&by_chance[..], true), (&on_purpose, false)] {
            for change in changes {
                let changed = event(&[*change]);
                assert_eq!(changed == event(&[]), is_alike, "{change:?}");
            }
        }
    }

    #[test]
    fn a_text_that_names_a_type_does_not_make_a_record_that_of_a_call() {
        let event = |argument: &str| {
            likeness(
                format!("type=EXECVE msg=audit(1.000:1): x type=SYSCALL a1={argument}\n")
                    .as_bytes(),
            )
        };
        assert_ne!(event("7ffdf0a5a4c2"), event("7ffdf0a5a4c3"));
    }

    #[test]
    fn events_in_json_are_compared_by_the_same_fields() {
        let event = |serial: u32, pid: u32, a1: &str, name: &str| {
            let text = format!(
                "{{\"time\":1795229646.007,\"serial\":{serial},\"records\":[{{\"type\":\"SYSCALL\",\"pid\":{pid},\
                 \"a1\":\"{a1}\",\"exit\":{pid}}},{{\"type\":\"PATH\",\"name\":\"{name}\"}}]}}\n"
            );
            likeness(text.as_bytes())
        };
        let first = event(1, 7, "7ffdf0a5a4c2", "/a");
        assert_eq!(event(2, 8, "7ffdf0a5a4c3", "/a"), first);
        assert_ne!(event(2, 8, "241", "/a"), first);
        assert_ne!(event(2, 8, "7ffdf0a5a4c3", "/b"), first);
    }
}
