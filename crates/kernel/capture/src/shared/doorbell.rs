//! The doorbell, by which programs wake the daemon.

use crate::error::{system, CaptureError};
use crate::rings::{Ring, RingStream};
use crate::shared::counters::handle;
use bpf::shared::DOORBELL_BYTES;
use libbpf_rs::{MapHandle, Object};
use std::os::fd::{AsFd, BorrowedFd};

/// A small ring, to which programs write when they want the daemon's attention.
pub(crate) struct Doorbell {
    map: MapHandle,
    stream: RingStream,
}

impl Doorbell {
    /// Maps the doorbell of `object`.
    pub(crate) fn open(object: &Object) -> Result<Doorbell, CaptureError> {
        let map = handle(object, "doorbell")?;
        let ring = Ring::map(&map, DOORBELL_BYTES as usize);
        let ring = ring.map_err(system("mmap of the doorbell"))?;
        Ok(Doorbell {
            map,
            stream: RingStream::new(vec![ring]),
        })
    }

    /// Descriptor that is readable while something is written to the doorbell.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    /// Reads what is written, so that the doorbell is quiet again.
    pub(crate) fn quiet(&mut self) {
        self.stream.drain(u64::MAX, |_, _| true);
    }
}
