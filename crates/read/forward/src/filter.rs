//! Selects the events that are sent, and those that are urgent, by keys and types of records.

use memchr::memmem;

use crate::config::{Config, Words};

/// Byte between several keys of one event.
const KEY_SEPARATOR: u8 = 1;

/// The filters of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    keys: Words,
    types: Words,
    urgent: Words,
}

impl Filter {
    /// The filters of `config`.
    pub fn new(config: &Config) -> Filter {
        Filter {
            keys: config.filter_keys.clone(),
            types: config.filter_types.clone(),
            urgent: config.urgent_keys.clone(),
        }
    }

    /// Filters by keys and types; nothing is urgent.
    pub fn of(keys: &Words, types: &Words) -> Filter {
        Filter {
            keys: keys.clone(),
            types: types.clone(),
            urgent: Words::default(),
        }
    }

    /// Whether any key is urgent.
    pub fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Whether an event with these lines is sent.
    pub fn passes(&self, lines: &[u8]) -> bool {
        (self.keys.is_empty() || matches(&self.keys, &keys(lines)))
            && (self.types.is_empty() || matches(&self.types, &types(lines)))
    }

    /// Whether an event with these lines does not wait for others.
    pub fn is_urgent(&self, lines: &[u8]) -> bool {
        !self.urgent.is_empty() && matches(&self.urgent, &keys(lines))
    }
}

fn matches(words: &Words, found: &[Vec<u8>]) -> bool {
    let has = |words: &[String]| {
        words
            .iter()
            .any(|word| found.iter().any(|each| each == word.as_bytes()))
    };
    !has(&words.exclude) && (words.include.is_empty() || has(&words.include))
}

/// The keys of an event, in RAW, ENRICHED or JSON.
fn keys(lines: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for at in memmem::find_iter(lines, b"key") {
        let rest = &lines[at + 3..];
        let before = at.checked_sub(1).map_or(b' ', |at| lines[at]);
        match before {
            b' ' => raw_key(rest, &mut found),
            b'"' => json_keys(rest, &mut found),
            _ => {}
        }
    }
    found
}

/// `="text"` or `=HEX`, several keys with a byte 1 between them.
fn raw_key(rest: &[u8], found: &mut Vec<Vec<u8>>) {
    let Some(value) = rest.strip_prefix(b"=") else {
        return;
    };
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let end = memchr::memchr(b'"', quoted).unwrap_or(quoted.len());
        found.push(quoted[..end].to_vec());
        return;
    }

    let is_end = |byte: &u8| matches!(byte, b' ' | b'\n' | 0x1d);
    let end = value.iter().position(is_end).unwrap_or(value.len());
    if let Some(bytes) = unhex(&value[..end]) {
        let keys = bytes.split(|byte| *byte == KEY_SEPARATOR);
        found.extend(keys.map(<[u8]>::to_vec));
    }
}

/// `":["a","b"]`.
fn json_keys(rest: &[u8], found: &mut Vec<Vec<u8>>) {
    let Some(list) = rest.strip_prefix(b"\":[") else {
        return;
    };
    let end = memchr::memchr(b']', list).unwrap_or(list.len());
    for word in list[..end].split(|byte| *byte == b',') {
        let word = word.strip_prefix(b"\"").unwrap_or(word);
        found.push(word.strip_suffix(b"\"").unwrap_or(word).to_vec());
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    if text.is_empty() || !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2)
        .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect()
}

/// The types of the records of an event.
fn types(lines: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let is_json = lines.first() == Some(&b'{');
    let needle: &[u8] = if is_json { b"\"type\":\"" } else { b"type=" };
    for at in memmem::find_iter(lines, needle) {
        let begins = at == 0 || is_json || matches!(lines[at - 1], b'\n' | b' ');
        if !begins {
            continue;
        }
        let rest = &lines[at + needle.len()..];
        let is_end = |byte: &u8| matches!(byte, b' ' | b'"' | b'\n');
        let end = rest.iter().position(is_end).unwrap_or(rest.len());
        found.push(rest[..end].to_vec());
    }

    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(include: &[&str], exclude: &[&str]) -> Words {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Words {
            include: own(include),
            exclude: own(exclude),
        }
    }

    #[test]
    fn keys_are_found_in_every_form() {
        assert_eq!(keys(b"x subj=u key=\"commands\"\n"), [b"commands"]);
        assert_eq!(keys(b"x key=610162\x1dARCH=x\n"), [b"a", b"b"]);
        assert_eq!(
            keys(b"{\"records\":[{\"key\":[\"a\",\"b\"]}]}"),
            [b"a", b"b"]
        );
        assert!(keys(b"x key=(null) monkey=\"x\"\n").is_empty());
    }

    #[test]
    fn an_excluded_key_beats_an_included_one() {
        let mut filter = Filter {
            keys: words(&["a"], &["b"]),
            ..Filter::default()
        };
        assert!(filter.passes(b"x key=\"a\"\n"));
        assert!(!filter.passes(b"x key=610162\n"));
        assert!(!filter.passes(b"x key=\"c\"\n"));
        filter.types = words(&["EXECVE"], &[]);
        assert!(!filter.passes(b"type=SYSCALL x key=\"a\"\n"));
        assert!(filter.passes(b"type=SYSCALL x key=\"a\"\ntype=EXECVE x\n"));
        filter.urgent = words(&["a"], &[]);
        assert!(filter.is_urgent(b"x key=\"a\"\n") && !filter.is_urgent(b"x key=\"z\"\n"));
    }
}
