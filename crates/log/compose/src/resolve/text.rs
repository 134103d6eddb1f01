//! Paths as text.

/// Appends `dir` and `path` to `out` as one absolute path without `.`, `..` and double slashes. Symbolic links are not
/// resolved, so the kernel may find another directory for a `..` behind one.
pub(super) fn join(out: &mut Vec<u8>, dir: &[u8], path: &[u8]) {
    let start = out.len();
    let parts = if path.first() == Some(&b'/') {
        [&b""[..], path]
    } else {
        [dir, path]
    };

    for component in parts
        .iter()
        .flat_map(|part| part.split(|&byte| byte == b'/'))
    {
        match component {
            b"" | b"." => {}
            b".." => {
                let up = out[start..]
                    .iter()
                    .rposition(|&byte| byte == b'/')
                    .unwrap_or(0);
                out.truncate(start + up);
            }
            name => {
                out.push(b'/');
                out.extend_from_slice(name);
            }
        }
    }

    if out.len() == start {
        out.push(b'/');
    }
}

/// The directory part of a path as audit prints it for PARENT: up to and including the last slash that is followed by a
/// name, or the first slash if there is no name; empty if there is no such slash. As `parent_len()`, kernel/auditfilter.c.
pub(super) fn parent_text(path: &[u8]) -> &[u8] {
    let Some(last) = path.iter().rposition(|&byte| byte != b'/') else {
        return &path[..path.len().min(1)];
    };
    let end = last + 1;
    let slash = path[..end].iter().rposition(|&byte| byte == b'/');
    slash.map_or(&[], |slash| &path[..=slash])
}

/// The last name of a path, without slashes; empty if there is none.
pub(super) fn last_component(path: &[u8]) -> &[u8] {
    let rest = &path[parent_text(path).len()..];
    let end = rest.iter().rposition(|&byte| byte != b'/');
    end.map_or(&[], |end| &rest[..=end])
}

/// Directory and last name of an absolute path as [`join`] makes it.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) => (b"/", &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"/", path),
    }
}

/// An absolute path as tasks with root directory `root` see it; `None` if it is not below `root`.
pub(super) fn below(path: &[u8], root: &[u8]) -> Option<Vec<u8>> {
    if root == b"/" {
        return Some(path.to_vec());
    }
    match path.strip_prefix(root)? {
        b"" => Some(b"/".to_vec()),
        rest @ [b'/', ..] => Some(rest.to_vec()),
        _ => None,
    }
}

/// A path from before pivot_root(2) as it is seen afterwards, when `root` is the root directory and the former root
/// directory is at `old`. All three are absolute paths from before the call; `None` if `path` and `old` are not below
/// `root`.
pub(super) fn after_pivot(path: &[u8], root: &[u8], old: &[u8]) -> Option<Vec<u8>> {
    if let Some(seen) = below(path, root) {
        return Some(seen);
    }
    let old = below(old, root)?;
    let mut seen = Vec::with_capacity(old.len() + path.len());
    join(&mut seen, &old, path.strip_prefix(b"/").unwrap_or(path));
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(dir: &str, path: &str) -> String {
        let mut out = b"kept".to_vec();
        join(&mut out, dir.as_bytes(), path.as_bytes());
        String::from_utf8(out.split_off(4)).expect("text")
    }

    #[test]
    fn a_relative_path_becomes_absolute() {
        assert_eq!(joined("/srv", "a"), "/srv/a");
        assert_eq!(joined("/srv", "./a//b/"), "/srv/a/b");
        assert_eq!(joined("/srv", "../x"), "/x");
        assert_eq!(joined("/", "../../.."), "/");
        assert_eq!(joined("/srv", "/etc/./passwd"), "/etc/passwd");
        assert_eq!(joined("/srv", ""), "/srv");
    }

    #[test]
    fn the_parent_is_what_stands_before_the_last_name() {
        assert_eq!(parent_text(b"/watch/new"), b"/watch/");
        assert_eq!(parent_text(b"../x"), b"../");
        assert_eq!(parent_text(b"x"), b"");
        assert_eq!(parent_text(b"dir/sub/"), b"dir/");
        assert_eq!(parent_text(b"/"), b"/");
        assert_eq!(parent_text(b"//"), b"/");
        assert_eq!(parent_text(b""), b"");
        assert_eq!(last_component(b"/watch/new"), b"new");
        assert_eq!(last_component(b"dir/sub//"), b"sub");
        assert_eq!(last_component(b"/x"), b"x");
        assert_eq!(last_component(b"//"), b"");
        assert_eq!(split(b"/a"), (&b"/"[..], &b"a"[..]));
        assert_eq!(split(b"/a/b"), (&b"/a"[..], &b"b"[..]));
    }

    #[test]
    fn a_path_is_seen_from_another_root() {
        let seen = |path: &str, root: &str| {
            below(path.as_bytes(), root.as_bytes())
                .map(|seen| String::from_utf8_lossy(&seen).into_owned())
        };
        assert_eq!(seen("/srv/a/b", "/srv/a").as_deref(), Some("/b"));
        assert_eq!(seen("/srv/a", "/srv/a").as_deref(), Some("/"));
        assert_eq!(seen("/srv/ab", "/srv/a"), None);
        assert_eq!(seen("/srv", "/").as_deref(), Some("/srv"));
    }

    #[test]
    fn a_path_from_before_a_pivot_lies_below_the_old_root() {
        let seen = |path: &str, root: &str, old: &str| {
            let seen = after_pivot(path.as_bytes(), root.as_bytes(), old.as_bytes());
            seen.map(|seen| String::from_utf8_lossy(&seen).into_owned())
        };
        assert_eq!(seen("/", "/mnt", "/mnt/old").as_deref(), Some("/old"));
        assert_eq!(
            seen("/srv/a", "/mnt", "/mnt/old").as_deref(),
            Some("/old/srv/a")
        );
        assert_eq!(seen("/mnt/b", "/mnt", "/mnt/old").as_deref(), Some("/b"));
        assert_eq!(seen("/mnt", "/mnt", "/mnt/old").as_deref(), Some("/"));
        assert_eq!(seen("/srv", "/mnt", "/mnt").as_deref(), Some("/srv"));
        assert_eq!(seen("/srv", "/mnt", "/elsewhere"), None);
    }
}
