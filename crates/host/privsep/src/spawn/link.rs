//! Datagrams with descriptors between the daemon and the spawner.

use crate::datagram;
use crate::spawn::message::BYTES_MAX;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    recvmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Descriptors of a request: the gate, and the standard input of the program.
const FDS_MAX: usize = 2;

/// Two connected sockets. Whoever uses the first waits no longer than this for the other.
pub(crate) fn pair(patience: Duration) -> io::Result<(OwnedFd, OwnedFd)> {
    let (own, theirs) = datagram::pair()?;
    be_patient(&own, patience)?;
    Ok((own, theirs))
}

/// Has sending and receiving fail with `WouldBlock` after this time.
pub(crate) fn be_patient(socket: &OwnedFd, patience: Duration) -> io::Result<()> {
    set_socket_timeout(socket, Timeout::Recv, Some(patience))?;
    Ok(set_socket_timeout(socket, Timeout::Send, Some(patience))?)
}

/// Sends a message with at most [`FDS_MAX`] descriptors.
pub(crate) fn send(socket: BorrowedFd<'_>, text: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if text.len() > BYTES_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(datagram::send_with(socket, text, &mut control)?)
}

/// Receives a message and its descriptors. `None` when the other side is gone.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    flags: RecvFlags,
) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; BYTES_MAX];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let message = match recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(message) => message,
            Err(Errno::INTR) => continue,
            // What was not read when the other side ended.
            Err(Errno::CONNRESET) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fds = rights.flatten().collect();
        return match message.bytes {
            0 => Ok(None),
            _ if message.flags.contains(ReturnFlags::TRUNC) => {
                Err(io::ErrorKind::InvalidData.into())
            }
            len => {
                buffer.truncate(len);
                Ok(Some((buffer, fds)))
            }
        };
    }
}
