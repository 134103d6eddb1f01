//! Messages of commands and of the daemon on standard error.
//!
//! The reader of standard error may be gone: `eprintln!` would then panic and end the daemon, and recording is more
//! important than messages. For the same reason the daemon waits for no reader ([`never_wait`]).

use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Prints a line on standard error, formatted as by `format!`. Errors are ignored.
#[macro_export]
macro_rules! report {
    ($($text:tt)*) => {
        $crate::messages::line(::std::format_args!($($text)*))
    };
}
pub use report;

/// An error with its reasons, as `{:#}` shows it, without reasons that the message before already has: many errors end
/// with the text of the one that caused them.
pub fn reasons(error: &anyhow::Error) -> String {
    let mut shown: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if shown.last().is_none_or(|last| !last.contains(&text)) {
            shown.push(text);
        }
    }
    shown.join(": ")
}

/// Writes the line in one write(2), so that it is not mixed with the output of others.
pub fn line(text: fmt::Arguments<'_>) {
    let text = format!("{text}\n");
    if let Some(lossy) = LOSSY.get() {
        let mut lossy = lossy.lock().unwrap_or_else(PoisonError::into_inner);
        lossy.write(text.as_bytes());
    } else {
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// From now on, messages for which standard error has no room are left out, and counted: a pipe may
/// be full because its reader has stopped.
pub fn never_wait() {
    if let Some(output) = NonBlocking::open(io::stderr()) {
        // A second call has nothing to add.
        let _ = LOSSY.set(Mutex::new(LossyOutput::new(output)));
    }
}

/// Destination of messages after [`never_wait`].
static LOSSY: OnceLock<Mutex<LossyOutput>> = OnceLock::new();

/// Standard error, with a count of the messages that it had no room for.
struct LossyOutput {
    output: NonBlocking,
    /// Messages since the last one that was written.
    left_out: u64,
    /// Whether the last write ended within a line.
    is_cut: bool,
}

impl LossyOutput {
    fn new(output: NonBlocking) -> LossyOutput {
        LossyOutput {
            output,
            left_out: 0,
            is_cut: false,
        }
    }

    fn write(&mut self, line: &[u8]) {
        let mut text = Vec::new();
        if self.is_cut {
            text.push(b'\n');
        }
        if self.left_out > 0 {
            let note = format!(
                "tarsier: {} messages were left out: standard error had no room\n",
                self.left_out
            );
            text.extend_from_slice(note.as_bytes());
        }

        text.extend_from_slice(line);

        // A line that is cut counts as left out: the next message says so, on a line of its own.
        match self.output.write(&text) {
            Ok(len) => {
                self.is_cut = len < text.len();
                self.left_out = u64::from(self.is_cut);
            }
            Err(_) => self.left_out += 1,
        }
    }
}

/// An output that is written without waiting, and without effect on other processes with the same open file.
enum NonBlocking {
    Socket(io::Stderr),
    /// Opened anew, so that other processes do not share its flags.
    File(File),
}

impl NonBlocking {
    /// Opens the pipe, terminal or socket that standard error is; none for a file, which always has room, and which
    /// all writers have to append to by one offset.
    fn open(stderr: io::Stderr) -> Option<NonBlocking> {
        let file = File::from(stderr.as_fd().try_clone_to_owned().ok()?);
        let kind = file.metadata().ok()?.file_type();
        if kind.is_socket() {
            Some(NonBlocking::Socket(stderr))
        } else if kind.is_fifo() || kind.is_char_device() {
            reopen(file.as_fd()).map(NonBlocking::File)
        } else {
            None
        }
    }

    /// Writes what there is room for.
    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            NonBlocking::Socket(stderr) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                rustix::net::send(stderr, bytes, flags)
            }
            NonBlocking::File(file) => rustix::io::write(file, bytes),
        }
    }
}

/// Opens what `fd` has open once more, for writing without waiting.
fn reopen(fd: BorrowedFd<'_>) -> Option<File> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty()).ok()?;
    Some(File::from(opened))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Fills a pipe or socket, then makes room again. Returns what comes out.
    fn fill_and_drain(output: NonBlocking, mut reader: impl Read) -> String {
        let mut lossy = LossyOutput::new(output);
        let line = [b"x".repeat(999), b"\n".to_vec()].concat();
        for _ in 0..10_000 {
            lossy.write(&line);
        }
        assert!(lossy.left_out > 0);

        let mut bytes = vec![0; 1 << 20];
        let len = reader.read(&mut bytes).expect("it is full");
        let left_out = lossy.left_out;
        lossy.write(b"after\n");
        let more = reader.read(&mut bytes[len..]).expect("there is more");
        let text = String::from_utf8_lossy(&bytes[..len + more]).into_owned();
        assert!(text.contains(&format!("\ntarsier: {left_out} messages were left out")));
        text
    }

    #[test]
    fn a_reason_is_shown_once() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let once = format!("cannot read /none: {}", missing());
        let error = anyhow::Error::new(missing()).context(once.clone());
        assert_eq!(reasons(&error), once);

        let error = anyhow::Error::new(missing()).context("cannot open /a");
        assert_eq!(reasons(&error), format!("cannot open /a: {}", missing()));

        let error = anyhow::anyhow!("inner").context("middle").context("outer");
        assert_eq!(reasons(&error), "outer: middle: inner");
    }

    #[test]
    fn a_full_pipe_is_not_waited_for_and_what_was_left_out_is_reported() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let file = reopen(writer.as_fd()).expect("opened anew");
        let text = fill_and_drain(NonBlocking::File(file), File::from(reader));
        assert!(text.ends_with("after\n"));

        // The writer that others have still waits.
        let flags = rustix::fs::fcntl_getfl(&writer).expect("its flags");
        assert!(!flags.contains(OFlags::NONBLOCK));
    }
}
