//! Containers in a path, by the names that runtimes give their cgroups.

use crate::escape::{unescaped, without_mark};
use std::borrow::Cow;
use std::mem;

/// Id of a container.
type Id<'a> = Cow<'a, [u8]>;

/// Software that made a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Docker, or another user of moby.
    Docker,
    /// containerd, for Kubernetes or nerdctl.
    Containerd,
    /// CRI-O
    CriO,
    /// podman
    Podman,
    /// LXC, LXD or Incus
    Lxc,
    /// systemd-nspawn, or another container that systemd-machined registered
    Nspawn,
}

impl Runtime {
    /// Name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Docker => "docker",
            Runtime::Containerd => "containerd",
            Runtime::CriO => "cri-o",
            Runtime::Podman => "podman",
            Runtime::Lxc => "lxc",
            Runtime::Nspawn => "nspawn",
        }
    }
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    /// 64 hexadecimal digits; the name of the container for LXC and nspawn.
    pub id: Cow<'a, [u8]>,
    /// Software that made the container, if the path shows it.
    pub runtime: Option<Runtime>,
}

#[derive(Default)]
pub(crate) struct Containers<'a> {
    pub(crate) inner: Option<Container<'a>>,
    /// Id of the outermost container, if that is another one.
    pub(crate) outer: Option<Cow<'a, [u8]>>,
}

/// Finds the containers in the names of a path, outermost first.
pub(crate) fn containers<'a>(names: impl Iterator<Item = &'a [u8]>) -> Containers<'a> {
    let mut found = Containers::default();
    let mut above = Containers::default();
    let mut parent: &[u8] = b"";
    for name in names {
        let name = without_mark(name);
        if let Some(container) = container(parent, name) {
            let outermost = found.inner.as_ref().map(|inner| inner.id.clone());
            let outer = found.outer.clone().or(outermost);
            let inner = Some(container);
            above = mem::replace(&mut found, Containers { inner, outer });
        } else if name == b"supervisor" && is_machine(parent) {
            // systemd-nspawn itself, outside the container that it makes.
            found = mem::take(&mut above);
        }
        parent = name;
    }

    found
}

/// Finds the id of the container that root of the host made, and those that others may have chosen: behind the first
/// `of_root` bytes of the path, or in that container.
pub(crate) fn by_maker(path: &[u8], of_root: usize) -> (Option<Id<'_>>, Vec<Id<'_>>) {
    let (mut made, mut claimed) = (None, Vec::new());
    let (mut parent, mut end): (&[u8], usize) = (b"", 0);
    for name in path.split(|&byte| byte == b'/') {
        end += name.len();
        let is_of_root = end <= of_root && claimed.is_empty();
        end += 1;
        if name.is_empty() {
            continue;
        }
        let name = without_mark(name);
        match container(parent, name) {
            Some(found) if is_of_root && made.is_none() => made = Some(found.id),
            Some(found) => claimed.push(found.id),
            None if is_of_root && name == b"supervisor" && is_machine(parent) => made = None,
            None => {}
        }
        parent = name;
    }

    (made, claimed)
}

/// Whether the name is that of a machine.
pub(crate) fn is_machine(name: &[u8]) -> bool {
    machine(name).is_some()
}

/// Whether the text is the id of a container of Docker, containerd, CRI-O or podman.
pub(crate) fn is_id(text: &[u8]) -> bool {
    text.len() == 64 && text.iter().all(u8::is_ascii_hexdigit)
}

fn container<'a>(parent: &[u8], name: &'a [u8]) -> Option<Container<'a>> {
    if is_id(name) {
        let runtime = (parent == b"docker").then_some(Runtime::Docker);
        let id = Cow::Borrowed(name);
        return Some(Container { id, runtime });
    }
    by_prefix(name)
        .or_else(|| lxc(parent, name))
        .or_else(|| machine(name))
}

/// `PREFIX-ID.scope`, `PREFIX-ID`, or `SLICE:PREFIX:ID`, which runc with the cgroupfs driver makes
/// from a path for systemd. Cgroups of monitors (conmon) are not containers.
fn by_prefix(name: &[u8]) -> Option<Container<'_>> {
    let stem = name.strip_suffix(b".scope").unwrap_or(name);
    let (head, id) = stem.split_at_checked(stem.len().checked_sub(64)?)?;
    let head = head
        .strip_suffix(b"-")
        .or_else(|| head.strip_suffix(b":"))?;
    let prefix = head.rsplit(|&byte| byte == b':').next()?;
    let is_monitor = prefix == b"conmon" || prefix.ends_with(b"-conmon");
    if !is_id(id) || is_monitor {
        return None;
    }

    let runtime = match prefix {
        b"docker" => Some(Runtime::Docker),
        b"cri-containerd" | b"nerdctl" => Some(Runtime::Containerd),
        b"crio" => Some(Runtime::CriO),
        b"libpod" | b"libpod-payload" => Some(Runtime::Podman),
        _ => None,
    };

    let id = Cow::Borrowed(id);
    Some(Container { id, runtime })
}

/// `lxc.payload.NAME`; before LXC 4.0 `lxc/NAME`. `lxc.monitor.NAME` does not belong to the
/// container.
fn lxc<'a>(parent: &[u8], name: &'a [u8]) -> Option<Container<'a>> {
    let payload = name.strip_prefix(b"lxc.payload.");
    let payload = payload.or_else(|| (parent == b"lxc").then_some(name));
    let id = Cow::Borrowed(payload.filter(|id| !id.is_empty())?);
    let runtime = Some(Runtime::Lxc);
    Some(Container { id, runtime })
}

/// `machine-NAME.scope` or `systemd-nspawn@NAME.service`. Virtual machines of libvirt are not
/// containers.
fn machine(name: &[u8]) -> Option<Container<'_>> {
    let scope = || name.strip_prefix(b"machine-")?.strip_suffix(b".scope");
    let service = || {
        name.strip_prefix(b"systemd-nspawn@")?
            .strip_suffix(b".service")
    };
    let id = unescaped(scope().or_else(service)?);
    if id.is_empty() || id.starts_with(b"qemu-") {
        return None;
    }
    let runtime = Some(Runtime::Nspawn);
    Some(Container { id, runtime })
}
