//! Texts in quotes or hex, and names of files.

use super::Context;
use crate::number::{decode_whole, unescape};
use crate::Dialect;
use std::cell::RefCell;

/// Longest path that ausearch builds: PATH_MAX of Linux, which counts a zero.
const PATH_BYTES_MAX: usize = 4096;

/// The text that `value` has in quotes or in hex.
pub(crate) fn escaped(value: &[u8], dialect: Dialect) -> Vec<u8> {
    let decoded = match value {
        [b'"', quoted @ ..] => {
            return match memchr::memchr(b'"', quoted) {
                Some(end) => quoted[..end].to_vec(),
                None if dialect == Dialect::Own => quoted.to_vec(),
                None => b" ".to_vec(),
            }
        }
        _ if dialect == Dialect::Own => decode_whole(value),
        // The name of an abstract socket begins with a zero.
        [b'0', b'0', name @ ..] => unescape(name),
        _ => unescape(value),
    };
    decoded.unwrap_or_else(|| value.to_vec())
}

/// Paths of one log, in the order in which they are shown.
#[derive(Default)]
pub(super) struct Paths {
    /// The path that auparse made last, which it shows again where a path has no names.
    last: RefCell<Vec<u8>>,
}

impl Paths {
    /// The path that `value` has in quotes or in hex, joined to the working directory if that is
    /// known.
    pub(super) fn path(&self, context: &Context<'_>, value: &[u8], dialect: Dialect) -> Vec<u8> {
        let name = escaped(value, dialect);
        let Some(cwd) = context.cwd else {
            return name;
        };
        let is_relative = name.first() != Some(&b'/');
        let whole = match is_relative {
            true => [&escaped(cwd, dialect), &b"/"[..], &name].concat(),
            false => name,
        };
        if memchr::memmem::find(&whole, b"..").is_none() {
            return whole;
        }
        let normal = normal_path(&whole, dialect);
        if !dialect.is_compat() {
            return normal.unwrap_or_else(|| b"/".to_vec());
        }
        let mut last = self.last.borrow_mut();
        if let Some(normal) = normal {
            *last = normal;
        }
        last.clone()
    }
}

/// The command line of a process, whose words zeros end.
pub(super) fn proctitle(value: &[u8], dialect: Dialect) -> Vec<u8> {
    if value.first() == Some(&b'"') {
        return escaped(value, dialect);
    }
    if dialect != Dialect::Own {
        return title_of_peer(value);
    }
    let Some(mut title) = decode_whole(value) else {
        return value.to_vec();
    };
    if title.last() == Some(&0) {
        title.pop();
    }
    let zeros = title.iter_mut().filter(|byte| **byte == 0);
    zeros.for_each(|byte| *byte = b' ');
    title
}

/// A command line as auparse shows it. It decodes in place, takes zeros at the beginning for the mark of an abstract
/// socket, and makes blanks of the zeros in the first half of the value's length: what is left of the hex may show.
fn title_of_peer(value: &[u8]) -> Vec<u8> {
    let text = value.strip_prefix(b"00").unwrap_or(value);
    let Some(decoded) = decode_whole(text) else {
        return value.to_vec();
    };
    let digits = text
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let mut place = text[..digits].to_vec();
    place.resize(text.len() + 2, 0);
    let count = decoded.len();
    place[..count].copy_from_slice(&decoded);
    let zeros = (text.len() / 2 + 1).saturating_sub(count).max(1);
    let end = (count + zeros).min(place.len());
    place[count..end].fill(0);
    let half = (value.len() / 2).min(place.len());
    let blanks = place[..half].iter_mut().filter(|byte| **byte == 0);
    blanks.for_each(|byte| *byte = b' ');
    let end = memchr::memchr(0, &place).unwrap_or(place.len());
    place.truncate(end);
    place
}

/// `path` without `.`, `..` and repeated slashes; `None` if it has no names. Relative ones are left as they are.
///
/// auparse ends the text where it copied the last name, so that a `..` at the end does nothing. audit 4.x loses the
/// first slash.
fn normal_path(path: &[u8], dialect: Dialect) -> Option<Vec<u8>> {
    if path.is_empty() || path[0] == b'.' {
        return Some(path.to_vec());
    }
    let mut normal = Vec::with_capacity(path.len());
    let mut is_copied = false;
    let mut backed = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                if normal.len() > 1 {
                    let end = memchr::memrchr(b'/', &normal[..normal.len() - 1]);
                    if backed.is_empty() {
                        backed.clone_from(&normal);
                    }
                    normal.truncate(end.map_or(0, |end| end + 1));
                }
            }
            _ => {
                let is_first = normal.is_empty() && dialect == Dialect::Compat;
                if normal.last() != Some(&b'/') && !is_first {
                    normal.push(b'/');
                }
                if normal.len() + part.len() >= PATH_BYTES_MAX {
                    break;
                }
                normal.extend_from_slice(part);
                backed.clear();
                is_copied = true;
            }
        }
    }
    if dialect.is_compat() && !backed.is_empty() {
        return Some(backed);
    }
    if normal.len() > 1 && normal.ends_with(b"/") {
        normal.pop();
    }
    is_copied.then_some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_what_leads_nowhere() {
        let normal = |path: &str| {
            let normal = normal_path(path.as_bytes(), Dialect::Own);
            normal.map(|path| String::from_utf8(path).expect("text"))
        };
        assert_eq!(
            normal("/home/../etc//./passwd").as_deref(),
            Some("/etc/passwd")
        );
        assert_eq!(normal("/a/b/..").as_deref(), Some("/a"));
        assert_eq!(normal("/.."), None);
        assert_eq!(normal("./a/../b").as_deref(), Some("./a/../b"));
    }
}
