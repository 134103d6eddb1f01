//! Texts in quotes or hex, and names of files.

use super::{Context, Interpreter};
use crate::number::{unescape, unescape_whole};
use crate::Dialect;

/// Longest path that ausearch builds: PATH_MAX of Linux, which counts a zero.
const PATH_BYTES_MAX: usize = 4096;

impl Interpreter {
    /// The text that `value` has in quotes or in hex.
    pub(super) fn escaped(&self, value: &[u8]) -> Vec<u8> {
        let decoded = match value {
            [b'"', quoted @ ..] => {
                return match memchr::memchr(b'"', quoted) {
                    Some(end) => quoted[..end].to_vec(),
                    None if self.dialect == Dialect::Own => quoted.to_vec(),
                    None => b" ".to_vec(),
                }
            }
            _ if self.dialect == Dialect::Own => unescape_whole(value),
            // The name of an abstract socket begins with a zero.
            [b'0', b'0', name @ ..] => unescape(name),
            _ => unescape(value),
        };
        decoded.unwrap_or_else(|| value.to_vec())
    }

    /// A path, joined to the working directory if that is known.
    pub(super) fn escaped_path(&self, context: &Context<'_>, value: &[u8]) -> Vec<u8> {
        let name = self.escaped(value);
        let Some(cwd) = context.cwd else {
            return name;
        };
        let is_relative = name.first() != Some(&b'/');
        let whole = match is_relative {
            true => [&self.escaped(cwd), &b"/"[..], &name].concat(),
            false => name,
        };
        let has_dots = memchr::memmem::find(&whole, b"..").is_some();
        let is_left = match self.dialect {
            Dialect::Three => !is_relative && !has_dots,
            _ => !has_dots,
        };
        match is_left {
            true => whole,
            false => normal_path(&whole),
        }
    }

    /// The command line of a process, whose words zeros end.
    pub(super) fn proctitle(&self, value: &[u8]) -> Vec<u8> {
        if value.first() == Some(&b'"') {
            return self.escaped(value);
        }
        match unescape_whole(value) {
            Some(mut title) => {
                if self.dialect == Dialect::Own && title.last() == Some(&0) {
                    title.pop();
                }
                title
                    .iter_mut()
                    .filter(|byte| **byte == 0)
                    .for_each(|byte| *byte = b' ');
                title
            }
            None => value.to_vec(),
        }
    }
}

/// `path` without `.`, `..` and repeated slashes. Relative ones are left as they are.
fn normal_path(path: &[u8]) -> Vec<u8> {
    if path.is_empty() || path[0] == b'.' {
        return path.to_vec();
    }
    let mut normal = Vec::with_capacity(path.len());
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                if normal.len() > 1 {
                    let end = memchr::memrchr(b'/', &normal[..normal.len() - 1]);
                    normal.truncate(end.map_or(0, |end| end.max(1)));
                }
            }
            _ => {
                if normal.last() != Some(&b'/') {
                    normal.push(b'/');
                }
                if normal.len() + part.len() >= PATH_BYTES_MAX {
                    break;
                }
                normal.extend_from_slice(part);
            }
        }
    }
    normal
}
