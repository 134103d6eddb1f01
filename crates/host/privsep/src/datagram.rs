//! Sockets between the daemon and its helpers: SOCK_SEQPACKET of unix(7), on which a datagram is whole or refused, and
//! the end of either process shows to the other.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    recv, socketpair, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags,
    SocketType,
};
use std::io::IoSlice;

/// Two connected sockets: that of this process, and that of the helper.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Sends a datagram with the descriptors in `control`.
pub(crate) fn send_with(
    socket: impl AsFd,
    message: &[u8],
    control: &mut SendAncillaryBuffer<'_, '_, '_>,
) -> Result<(), Errno> {
    let parts = [IoSlice::new(message)];
    rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(&socket, &parts, control, SendFlags::NOSIGNAL)
    })?;
    Ok(())
}

/// Sends a datagram. That the other end is gone shows as an error, not as a signal.
pub(crate) fn send(socket: impl AsFd, message: &[u8], flags: SendFlags) -> Result<(), Errno> {
    let flags = flags | SendFlags::NOSIGNAL;
    rustix::io::retry_on_intr(|| rustix::net::send(&socket, message, flags))?;
    Ok(())
}

/// Receives a datagram and returns its length, which is 0 at the end of the connection.
///
/// # Errors
/// The errors of recv(2), and `MSGSIZE` for a datagram that is longer than the buffer.
pub(crate) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    flags: RecvFlags,
) -> Result<usize, Errno> {
    let (len, whole) = recv(socket, &mut *buffer, flags | RecvFlags::TRUNC)?;
    if len < whole {
        return Err(Errno::MSGSIZE);
    }
    Ok(len)
}
