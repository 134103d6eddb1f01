//! A hook in force.

use super::{Pins, LINK};
use crate::error::CaptureError;
use libbpf_rs::libbpf_sys::{bpf_link_get_fd_by_id, bpf_link_info, bpf_obj_get_info_by_fd};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// An attached program. Dropping it detaches the program, unless its directory of pins is to be left as it is.
#[derive(Debug)]
pub(crate) struct Attached {
    link: Option<OwnedFd>,
    pin: Option<(Arc<Pins>, String)>,
}

impl Attached {
    /// Takes ownership of a new link. If there is a directory of pins, pins the link there as `name`.
    pub(crate) fn new(
        link: OwnedFd,
        pins: Option<&Arc<Pins>>,
        name: &str,
    ) -> Result<Attached, CaptureError> {
        let pin = match pins {
            Some(pins) => {
                let name = format!("{LINK}{name}");
                pins.pin(link.as_fd(), &name)?;
                Some((pins.clone(), name))
            }
            None => None,
        };
        Ok(Attached {
            link: Some(link),
            pin,
        })
    }

    /// The link that is pinned as `name`, if there is one.
    pub(crate) fn find(pins: &Arc<Pins>, name: &str) -> Result<Option<Attached>, CaptureError> {
        let name = format!("{LINK}{name}");
        let link = pins.get(&name)?;
        Ok(link.map(|link| Attached {
            link: Some(link),
            pin: Some((pins.clone(), name)),
        }))
    }
}

impl Attached {
    /// Name of its pin, as returned by [`Pins::links`].
    pub(crate) fn pin_name(&self) -> Option<&str> {
        let (_, name) = self.pin.as_ref()?;
        name.strip_prefix(LINK)
    }
}

impl Attached {
    /// Descriptor of its link.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(OwnedFd::as_fd)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let pin = self.pin.take().filter(|(pins, _)| !pins.is_left());
        if let (Some((pins, name)), Some(link)) = (pin, self.link.take()) {
            pins.end(&name, link);
        }
    }
}

/// The kernel's information about a link.
pub(crate) fn info_of(link: BorrowedFd<'_>) -> Option<bpf_link_info> {
    let mut info = bpf_link_info::default();
    let mut len = std::mem::size_of::<bpf_link_info>() as u32;
    let place: *mut bpf_link_info = &mut info;
    // SAFETY: the kernel writes at most `len` bytes, and follows no pointer, for all lengths that
    // stand beside one are 0.
    let failed = unsafe { bpf_obj_get_info_by_fd(link.as_raw_fd(), place.cast(), &mut len) };
    (failed == 0).then_some(info)
}

/// Whether the kernel still has the link with this id.
pub(super) fn exists(id: u32) -> bool {
    // SAFETY: takes a number and gives a new descriptor or an error.
    let fd = unsafe { bpf_link_get_fd_by_id(id) };
    if fd < 0 {
        return false;
    }
    // SAFETY: the kernel has just made this descriptor for us.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    true
}
