//! Pods in a path: Kubernetes with either cgroup driver, and podman.

use crate::container::is_id;
use std::borrow::Cow;

/// Finds the innermost pod in the names of a path, outermost first.
pub(crate) fn pod<'a>(names: impl Iterator<Item = &'a [u8]>) -> Option<Cow<'a, [u8]>> {
    let (mut is_kubernetes, mut pod) = (false, None);
    for name in names {
        is_kubernetes |= name.windows(8).any(|part| part == b"kubepods");
        pod = podman_pod(name)
            .map(Cow::Borrowed)
            .or_else(|| is_kubernetes.then(|| kubernetes_pod(name)).flatten())
            .or(pod);
    }
    pod
}

/// `podUID`, or `kubepods-burstable-podUID.slice` with `_` for `-`; the latter also before a `:`,
/// which runc adds with the other driver.
fn kubernetes_pod(name: &[u8]) -> Option<Cow<'_, [u8]>> {
    let name = name.split(|&byte| byte == b':').next()?;
    let stem = name.strip_suffix(b".slice");
    let Some(stem) = stem else {
        return uid(name.strip_prefix(b"pod")?);
    };
    let at = stem.windows(4).rposition(|part| part == b"-pod")?;
    uid(&stem[at + 4..])
}

/// A UUID, or the hash that a static pod has instead.
fn uid(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let is_hash = text.len() == 32 && text.iter().all(u8::is_ascii_hexdigit);
    let is_mark = |byte: u8| byte == b'-' || byte == b'_';
    let is_uuid = text.len() == 36
        && text.iter().enumerate().all(|(at, &byte)| match at {
            8 | 13 | 18 | 23 => is_mark(byte),
            _ => byte.is_ascii_hexdigit(),
        });
    if !is_hash && !is_uuid {
        return None;
    }
    if !text.contains(&b'_') {
        return Some(Cow::Borrowed(text));
    }

    let dashed = |&byte: &u8| if byte == b'_' { b'-' } else { byte };
    Some(text.iter().map(dashed).collect())
}

/// `machine-libpod_pod_ID.slice`, or `libpod_pod_ID` without systemd.
fn podman_pod(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_suffix(b".slice").unwrap_or(name);
    let at = name.windows(11).position(|part| part == b"libpod_pod_")?;
    Some(&name[at + 11..]).filter(|id| is_id(id))
}
