//! The builtin `af_unix`: one reader at a time.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

pub(crate) struct Socket {
    path: PathBuf,
    listener: UnixListener,
    reader: Option<UnixStream>,
}

impl Socket {
    /// Binds the socket. A socket left by a program that has ended is replaced; any other file is
    /// not.
    pub(crate) fn bind(path: &Path, mode: Option<u32>) -> io::Result<Socket> {
        match std::fs::symlink_metadata(path) {
            Ok(_) if is_served(path) => {
                return Err(io::Error::other("another program serves this socket"))
            }
            Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(path)?,
            Ok(_) => {
                return Err(io::Error::other(
                    "a file that is not a socket is in its place",
                ))
            }
            Err(_) => {}
        }

        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        if let Some(mode) = mode {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        }

        Ok(Socket {
            path: path.to_owned(),
            listener,
            reader: None,
        })
    }

    /// Accepts the next reader if there is none. Returns whether there is a new one.
    pub(crate) fn accept(&mut self) -> bool {
        self.notice_end();
        if self.reader.is_some() {
            return false;
        }
        let accepted = self.listener.accept().and_then(|(stream, _)| {
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        self.reader = accepted.ok();
        self.reader.is_some()
    }

    /// Checks whether the reader has closed its end: readers send nothing, so reading gives the end
    /// of file.
    fn notice_end(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        let mut bytes = [0; 256];
        match reader.read(&mut bytes) {
            Ok(0) => self.reader = None,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.reader = None,
        }
    }

    pub(crate) fn reader(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    /// Drops the reader.
    pub(crate) fn forget_reader(&mut self) {
        self.reader = None;
    }

    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Whether a program has a socket bound at `path`: the last word of a line in `/proc/net/unix`.
/// Connecting to find out would take the place of the reader.
fn is_served(path: &Path) -> bool {
    let table = std::fs::read("/proc/net/unix").unwrap_or_default();
    let path = path.as_os_str().as_bytes();
    let mut lines = table.split(|&byte| byte == b'\n');
    lines.any(|line| {
        line.strip_suffix(path)
            .is_some_and(|rest| rest.ends_with(b" "))
    })
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
