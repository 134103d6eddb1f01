//! The current file, which writes append to, with its form and its seal.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sealing::Sealing;
use super::stream::LineStream;
use crate::compact;
use crate::error::RotateError;
use crate::pending::WholeEvents;
use crate::recover;
use crate::rotate::{self, Rotated};
use crate::seal::{seal_path, Sealer};
use conf::{Group, LogFormat};

/// Approximate limit of the text in a frame, in bytes.
const FRAME_TEXT_BYTES: u64 = 128 << 10;

/// The log's current file.
pub(super) struct Current {
    path: PathBuf,
    /// `None` while suspended, because auditd closes the file so that it can be moved away, and
    /// with `write_logs = no`.
    file: Option<Arc<File>>,
    size_bytes: u64,
    sealing: Sealing,
    /// `Some` with `log_format = COMPACT`.
    compact: Option<compact::FrameWriter>,
}

/// Outcome of an attempt to write.
pub(super) struct Attempt {
    /// The part of the buffer that was taken and is in the file now.
    pub(super) batch: WholeEvents,
    /// Bytes by which the file grew.
    pub(super) stored_bytes: u64,
    /// write(2) calls that wrote something.
    pub(super) writes: u64,
    /// Whether everything was written.
    pub(super) result: io::Result<()>,
}

impl Current {
    /// A log without an open file.
    pub(super) fn closed(path: &Path) -> Self {
        Current {
            path: path.to_owned(),
            file: None,
            size_bytes: 0,
            sealing: Sealing::default(),
            compact: None,
        }
    }

    /// Appends to `file`, which was just opened at `path`.
    pub(super) fn open(path: &Path, file: File, size_bytes: u64, sealer: Option<Sealer>) -> Self {
        Current {
            file: Some(Arc::new(file)),
            size_bytes,
            sealing: Sealing::new(sealer),
            ..Current::closed(path)
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self) -> Option<&Arc<File>> {
        self.file.as_ref()
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(super) fn sealing(&mut self) -> &mut Sealing {
        &mut self.sealing
    }

    /// Whether it is written in COMPACT frames.
    pub(super) fn is_compact(&self) -> bool {
        self.compact.is_some()
    }

    /// Starts to write in the form of `format`. True if the file is in the other form and has to be
    /// rotated away: no file holds both.
    pub(super) fn start_form(&mut self, format: LogFormat) -> Result<bool, RotateError> {
        let wants = format == LogFormat::Compact;
        if wants != self.compact.is_some() {
            self.compact = if wants {
                Some(compact::FrameWriter::new().map_err(|source| RotateError {
                    path: self.path.clone(),
                    call: "start of compression for",
                    target: self.path.clone(),
                    source,
                })?)
            } else {
                None
            };
        }

        // The file was just opened or created: its frames must not refer to those that this writer made before.
        if let Some(writer) = &mut self.compact {
            writer.begin_segment();
        }

        // An empty file has no form yet.
        let file = if self.size_bytes > 0 {
            self.file.as_ref()
        } else {
            None
        };
        Ok(file.is_some_and(|file| recover::is_compact(file).is_ok_and(|is| is != wants)))
    }

    /// Writes the first `upto` bytes of the buffer as they are. Tells the witness that the write
    /// begins; the caller ends it with [`LineStream::end_write`].
    pub(super) fn write_lines(&mut self, stream: &mut LineStream, upto: usize) -> Attempt {
        let Some(file) = self.file.clone() else {
            return Attempt::nothing();
        };

        stream.begin_write(&file, self.size_bytes, upto, upto as u64, false);
        let (mut done, mut writes) = (0, 0);
        let mut result = Ok(());
        while done < upto {
            let outcome = match rustix::io::write(&file, &stream.pending().bytes()[done..upto]) {
                Ok(0) => Err(io::Error::from(io::ErrorKind::WriteZero)),
                other => other.map_err(io::Error::from),
            };
            match outcome {
                Ok(count) => {
                    done += count;
                    writes += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    done = end_in_whole_events(stream, &file, done);
                    result = Err(error);
                    break;
                }
            }
        }

        // Only what the kernel took is sealed; the rest may still be cut or written again.
        if done > 0 {
            self.sealing.extend(&stream.pending().bytes()[..done]);
        }
        self.size_bytes += done as u64;
        Attempt {
            batch: stream.advance(done),
            stored_bytes: done as u64,
            writes,
            result,
        }
    }

    /// Writes the first `upto` bytes of the buffer as one frame, or nothing. Takes fewer bytes if
    /// the frame would be large, since a full disk makes each attempt compress again. The witness
    /// is treated as in [`write_lines`](Self::write_lines).
    pub(super) fn write_frame(&mut self, stream: &mut LineStream, upto: usize) -> Attempt {
        let (Some(file), Some(writer)) = (self.file.clone(), &mut self.compact) else {
            return Attempt::nothing();
        };

        let upto = upto.min(stream.pending().cut_at_or_after(FRAME_TEXT_BYTES));
        let is_new = self.size_bytes == 0;
        let made = writer.frame(&stream.pending().bytes()[..upto], is_new);
        if let Ok(frame) = &made {
            stream.begin_write(&file, self.size_bytes, upto, frame.len() as u64, true);
        }
        let written =
            made.and_then(|frame| append_whole(&file, frame, self.size_bytes).map(|()| frame));

        match written {
            Ok(frame) => {
                self.sealing.extend(frame);
                let stored_bytes = frame.len() as u64;
                self.size_bytes += stored_bytes;
                Attempt {
                    batch: stream.advance(upto),
                    stored_bytes,
                    writes: 1,
                    result: Ok(()),
                }
            }
            Err(error) => {
                // The encoder has seen text that no frame in the file holds: the next frame must not refer to it.
                writer.begin_segment();
                Attempt {
                    result: Err(error),
                    ..Attempt::nothing()
                }
            }
        }
    }

    /// Fails if the seal of the last rotated file is not written yet: another rotation has to wait.
    pub(super) fn check_seal_written(&mut self) -> Result<(), RotateError> {
        if self.sealing.is_behind() {
            Err(RotateError {
                path: self.path.clone(),
                call: "write the last entries to",
                target: seal_path(&self.path),
                source: rustix::io::Errno::NOSPC.into(),
            })
        } else {
            Ok(())
        }
    }

    /// Rotates `file`, the current one, away, so that at most `keep` files are left, and continues
    /// in a new one. After an error the current file is the same as before.
    pub(super) fn rotate(
        &mut self,
        file: &File,
        keep: u32,
        group: &Group,
    ) -> Result<Rotated, RotateError> {
        self.sealing.before_rotation();
        let outcome = rotate::rotate(&self.path, file, keep, group, self.sealing.is_open());
        let (outcome, seal) = match outcome {
            Ok((files, rotated)) => (Ok((files.log, rotated)), files.seal),
            Err(error) => (Err(error), None),
        };

        // The sealer also learns of a failure: its entries then go on in the old file.
        self.sealing.after_rotation(seal);
        let (file, rotated) = outcome?;
        self.file = Some(Arc::new(file));
        self.size_bytes = 0;
        Ok(rotated)
    }

    /// Continues in `file`, which was just opened at the same path. The previous seal was closed.
    pub(super) fn reopen(&mut self, file: File, size_bytes: u64, sealer: Option<Sealer>) {
        self.size_bytes = size_bytes;
        self.sealing.set(sealer);
        self.file = Some(Arc::new(file));
    }

    /// Switches to another path, where `file` was just opened; it stays open only if one was
    /// before.
    pub(super) fn move_to(&mut self, path: &Path, file: File, size_bytes: u64) {
        self.path = path.to_owned();
        self.size_bytes = size_bytes;
        if self.file.is_some() {
            self.file = Some(Arc::new(file));
        }
    }

    /// Sets the path of the file that is opened next.
    pub(super) fn set_path(&mut self, path: &Path) {
        self.path = path.to_owned();
    }

    /// Closes the file. Returns whether one was open.
    pub(super) fn close(&mut self) -> bool {
        self.file.take().is_some()
    }
}

impl Attempt {
    fn nothing() -> Self {
        Attempt {
            batch: WholeEvents::default(),
            stored_bytes: 0,
            writes: 0,
            result: Ok(()),
        }
    }
}

/// After a write that stopped at `done`: removes a torn event from the file, so that readers find
/// whole events even after a crash. Returns the number of bytes that stay written.
fn end_in_whole_events(stream: &LineStream, file: &File, done: usize) -> usize {
    let whole = stream.pending().whole_within(done);
    if whole == done {
        return done;
    }

    let torn = (done - whole) as u64;
    let cut = file
        .metadata()
        .and_then(|metadata| file.set_len(metadata.len().saturating_sub(torn)));
    match cut {
        Ok(()) => whole,
        // The next write then continues the event where this one stopped.
        Err(_) => done,
    }
}

/// Appends all of `bytes` to a file of `size` bytes; after an error, truncates it to that size
/// again.
fn append_whole(file: &File, bytes: &[u8], size: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::write(file, &bytes[done..]) {
            Ok(count) if count > 0 => done += count,
            Err(rustix::io::Errno::INTR) => {}
            other => {
                // If this fails too, the next opening of the log cuts the torn frame.
                let _ = file.set_len(size);
                return Err(other
                    .err()
                    .map_or(io::ErrorKind::WriteZero.into(), Into::into));
            }
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::log::witness::{Witness, Write};

    type Told = Arc<Mutex<Vec<[u64; 3]>>>;

    /// Notes the offset in the file, the start in the stream and the length of each write.
    struct Notes(Told);

    impl Witness for Notes {
        fn begin(&mut self, write: &Write<'_>) {
            let told = [write.offset, write.start, write.len];
            self.0.lock().unwrap().push(told);
        }

        fn end(&mut self, _: u64) {}
    }

    fn stream_of(events: &[&[u8]]) -> LineStream {
        let mut stream = LineStream::default();
        events.iter().for_each(|lines| stream.push(lines, 1));
        stream
    }

    fn current(file: File, size_bytes: u64) -> Current {
        Current::open(Path::new("audit.log"), file, size_bytes, None)
    }

    fn is_full(attempt: &Attempt) -> bool {
        let error = attempt.result.as_ref().unwrap_err();
        error.raw_os_error() == Some(libc::ENOSPC)
    }

    #[test]
    fn the_witness_is_told_where_each_write_begins_in_file_and_stream() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"type=BEFORE\n", 0).unwrap();
        let mut append = file.try_clone().unwrap();
        std::io::Seek::seek(&mut append, io::SeekFrom::End(0)).unwrap();
        let mut current = current(append, 12);
        let mut stream = stream_of(&[b"type=A\n", b"type=BB\n"]);
        let told = Told::default();
        stream.set_witness(Some(Box::new(Notes(Arc::clone(&told)))));
        for upto in [7, 8] {
            let attempt = current.write_lines(&mut stream, upto);
            assert!(attempt.result.is_ok() && attempt.batch.events == 1);
        }
        assert_eq!(*told.lock().unwrap(), [[12, 0, 7], [19, 7, 8]]);
        assert_eq!(current.size_bytes(), file.metadata().unwrap().len());
    }

    #[test]
    fn what_a_full_disk_does_not_take_stays_in_the_buffer() {
        for format in [LogFormat::Raw, LogFormat::Compact] {
            let file = File::options().write(true).open("/dev/full").unwrap();
            let mut current = current(file, 0);
            assert!(!current.start_form(format).unwrap());
            let mut stream = stream_of(&[b"type=A\n"]);
            let attempt = if current.is_compact() {
                current.write_frame(&mut stream, 7)
            } else {
                current.write_lines(&mut stream, 7)
            };
            assert!(is_full(&attempt), "{format:?}: {:?}", attempt.result);
            assert_eq!((attempt.stored_bytes, attempt.batch.bytes), (0, 0));
            assert_eq!((stream.pending().events(), stream.written().bytes), (1, 0));
            assert_eq!(current.size_bytes(), 0);
        }
    }

    #[test]
    fn an_event_that_is_half_written_for_good_is_continued_where_the_write_stopped() {
        // A pipe takes one page and then no more, and cannot be truncated.
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let room = rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        let event = [b"x".repeat(room - 100), b"\n".to_vec()].concat();
        let mut stream = stream_of(&[&event, &event]);
        let mut current = current(File::from(writer), 0);
        let attempt = current.write_lines(&mut stream, 2 * event.len());
        assert_eq!(
            attempt.result.unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert_eq!((attempt.batch.bytes, attempt.batch.events), (room, 1));
        let mut first = vec![0; room];
        rustix::io::read(&reader, &mut first).unwrap();
        let rest = stream.pending().bytes().len();
        let attempt = current.write_lines(&mut stream, rest);
        assert!(attempt.result.is_ok());
        assert_eq!((attempt.batch.bytes, attempt.batch.events), (rest, 1));
        let mut second = vec![0; rest];
        rustix::io::read(&reader, &mut second).unwrap();
        assert_eq!([first, second].concat(), [&event[..], &event].concat());
    }

    #[test]
    fn only_a_file_in_the_other_form_has_to_be_rotated_away() {
        let raw = || {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(b"type=BEFORE\n", 0).unwrap();
            current(file, 12)
        };
        assert!(!raw().start_form(LogFormat::Enriched).unwrap());
        assert!(raw().start_form(LogFormat::Compact).unwrap());
        let mut compact = current(tempfile::tempfile().unwrap(), 0);
        assert!(!compact.start_form(LogFormat::Compact).unwrap(), "empty");
        let mut stream = stream_of(&[b"type=A\n"]);
        let attempt = compact.write_frame(&mut stream, 7);
        assert!(attempt.result.is_ok());
        assert_eq!(attempt.stored_bytes, compact.size_bytes());
        assert!(!compact.start_form(LogFormat::Compact).unwrap());
        assert!(compact.start_form(LogFormat::Raw).unwrap());
    }
}
