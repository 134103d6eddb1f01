//! Typed text: the data of TTY records.

use crate::number::decode_whole;

/// Texts in quotes and named keys, with commas between them.
pub(crate) fn keystrokes(value: &[u8]) -> Vec<u8> {
    if !value.iter().all(u8::is_ascii_hexdigit) {
        return value.to_vec();
    }

    let Some(data) = decode_whole(value) else {
        return b"(null)".to_vec();
    };
    let data = &data[..value.len() / 2];
    let (mut out, mut is_quoted, mut at) = (Vec::new(), false, 0);

    while at < data.len() {
        let key = key(&data[at..]);
        if let Some((length, name)) = key {
            if is_quoted {
                out.push(b'"');
                is_quoted = false;
            }
            if !out.is_empty() {
                out.push(b',');
            }
            out.push(b'<');
            out.extend_from_slice(name.as_bytes());
            out.push(b'>');
            at += length;
            continue;
        }
        if !is_quoted {
            if !out.is_empty() {
                out.push(b',');
            }
            out.push(b'"');
            is_quoted = true;
        }
        put(data[at], &mut out);
        at += 1;
    }

    if is_quoted {
        out.push(b'"');
    }

    out
}

/// The key at the beginning of `data`: its bytes and its name.
fn key(data: &[u8]) -> Option<(usize, &'static str)> {
    if matches!(data[0], b' '..=0x7e | 0xa0..) {
        return None;
    }
    abi::names::TERMINAL_KEYS
        .iter()
        .find(|(bytes, _)| data.starts_with(bytes))
        .map(|(bytes, name)| (bytes.len(), *name))
}

fn put(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'\\' | b'"' => out.extend([b'\\', byte]),
        b' '..=0x7e => out.push(byte),
        _ => out.extend(format!("\\{byte:03o}").into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names_and_texts_quotes() {
        assert_eq!(keystrokes(b"6C730D"), b"\"ls\",<ret>");
        assert_eq!(keystrokes(b"1B5B4161"), b"<up>,\"a\"");
        assert_eq!(keystrokes(b"no"), b"no");
        assert_eq!(keystrokes(b"22"), b"\"\\\"\"");
    }
}
