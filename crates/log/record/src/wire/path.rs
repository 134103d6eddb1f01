//! Walked paths: names from the entry up to the root, in the order in which a BPF program finds them.

use super::{tarsier_part_flags, TARSIER_PART_DELETED};

/// More names than a path of PATH_MAX bytes can have.
pub const WALK_DEPTH_MAX: usize = super::TARSIER_PATH_MAX as usize / 2 + 1;

/// Appends the path (`/usr/bin`) of a walk (`bin\0usr\0`) to `out`.
///
/// The path of an empty walk is `/`. With the DELETED flag, ` (deleted)` follows, as d_path() in fs/d_path.c writes it.
/// Any bytes are accepted: the last name may lack its NUL, empty names are skipped, and at most [`WALK_DEPTH_MAX`]
/// names are used.
pub fn walked_path(data: &[u8], flags: u8, out: &mut Vec<u8>) {
    let data = data.strip_suffix(b"\0").unwrap_or(data);
    let start = out.len();
    let names = data
        .rsplit(|&byte| byte == 0)
        .filter(|name| !name.is_empty());

    for name in names.take(WALK_DEPTH_MAX) {
        out.push(b'/');
        out.extend_from_slice(name);
    }

    if out.len() == start {
        out.push(b'/');
    }

    if tarsier_part_flags::from(flags) & TARSIER_PART_DELETED != 0 {
        out.extend_from_slice(b" (deleted)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(data: &[u8], flags: u8) -> Vec<u8> {
        let mut out = Vec::new();
        walked_path(data, flags, &mut out);
        out
    }

    #[test]
    fn a_walk_becomes_an_absolute_path() {
        assert_eq!(path(b"bin\0usr\0", 0), b"/usr/bin");
        assert_eq!(path(b"", 0), b"/");
        assert_eq!(path(b"x\0", TARSIER_PART_DELETED as u8), b"/x (deleted)");
        assert_eq!(path(b"b\0a", 0), b"/a/b");
    }
}
