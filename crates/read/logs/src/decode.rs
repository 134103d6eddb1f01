//! The text of a file: decompressed by its content, not by its name.

use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};

/// Bytes of a file that are read at once.
const READ_BYTES: usize = 1 << 17;
/// Compressions inside of each other that are undone.
const LAYERS_MAX: usize = 4;
/// Bytes that a thread decompresses at once, and how many such pieces wait.
const PIECE_BYTES: usize = 1 << 20;
const PIECES_AHEAD: usize = 4;
/// Most memory of a decoder of xz, in KiB: what `xz -9` needs, with room.
const XZ_KIB_MAX: u32 = 256 << 10;
/// Bytes by which a form is told.
const MAGIC_BYTES: usize = 64;

/// A form of file, told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Gzip,
    Xz,
    Bzip2,
    Zstd,
    Lz4,
    Compact,
    Plain,
}

impl Form {
    fn of(start: &[u8]) -> Form {
        // RFC 1952; xz-file-format.txt; bzip2's manual; RFC 8878, whose frames may be skippable; lz4_Frame_format.md.
        match start {
            [0x1f, 0x8b, 8, ..] => Form::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Form::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Form::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Form::Zstd,
            [0x04, 0x22, 0x4d, 0x18, ..] => Form::Lz4,
            _ if journal::compact::is_compact(start) => Form::Compact,
            _ => Form::Plain,
        }
    }
}

/// The text of `input`, and whether it was compressed. Files that were written behind each other in one form are one
/// text.
///
/// # Errors
/// The input cannot be read, or begins as a form that it is not.
pub fn decoded(input: impl Read + Send + 'static) -> io::Result<(Box<dyn BufRead + Send>, bool)> {
    let mut text: Box<dyn BufRead + Send> = Box::new(BufReader::with_capacity(READ_BYTES, input));
    let mut is_compressed = false;
    for _ in 0..LAYERS_MAX {
        let (start, rest) = peek(text, MAGIC_BYTES);
        text = rest;
        let inner: Box<dyn Read + Send> = match Form::of(&start) {
            Form::Plain => break,
            Form::Gzip => Box::new(MultiGzDecoder::new(text)),
            Form::Xz => Box::new(XzReader::new_mem_limit(text, true, XZ_KIB_MAX)),
            Form::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(text)),
            Form::Zstd => Box::new(zstd::Decoder::with_buffer(text)?),
            Form::Lz4 => Box::new(Lz4(FrameDecoder::new(text))),
            Form::Compact => Box::new(journal::compact::text(text)?),
        };
        is_compressed = true;
        text = Box::new(BufReader::with_capacity(READ_BYTES, inner));
    }

    if is_compressed {
        Ok((Box::new(Ahead::new(text)), true))
    } else {
        Ok((text, false))
    }
}

/// The first bytes of `input`, at most `count`, and all of it. An error comes behind the bytes before it.
pub(crate) fn peek(
    mut input: Box<dyn BufRead + Send>,
    count: usize,
) -> (Vec<u8>, Box<dyn BufRead + Send>) {
    let mut start = Vec::new();
    let error = input
        .by_ref()
        .take(count as u64)
        .read_to_end(&mut start)
        .err();
    let whole = io::Cursor::new(start.clone())
        .chain(Failing(error))
        .chain(input);
    (start, Box::new(whole))
}

/// Nothing, or an error, once.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

impl BufRead for Failing {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.take().map_or(Ok(&[]), Err)
    }

    fn consume(&mut self, _: usize) {}
}

/// Frames of lz4 behind each other: the decoder ends with each.
struct Lz4<R: Read>(FrameDecoder<R>);

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(out)?;
            if count > 0 || out.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(count);
            }
        }
    }
}

/// Text that a thread makes while it is read. At most a few MiB wait.
pub(crate) struct Ahead {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

/// Where the thread puts its text.
pub(crate) struct Pieces {
    sender: SyncSender<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
}

impl Pieces {
    /// Gives on what was written. An error if nobody reads.
    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        let sent = piece.is_empty() || self.sender.send(Ok(piece)).is_ok();
        sent.then_some(()).ok_or(io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pieces {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(text);
        if self.piece.len() >= PIECE_BYTES {
            self.send()?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl Ahead {
    fn new(mut text: Box<dyn BufRead + Send>) -> Ahead {
        Ahead::made_by(move |out| loop {
            let read = text.fill_buf()?;
            if read.is_empty() {
                return Ok(());
            }
            let count = read.len();
            out.write_all(read)?;
            text.consume(count);
        })
    }

    /// The text that `make` writes. What comes before an error is text, too.
    pub(crate) fn made_by(
        make: impl FnOnce(&mut Pieces) -> io::Result<()> + Send + 'static,
    ) -> Ahead {
        let (sender, pieces) = sync_channel(PIECES_AHEAD);
        std::thread::spawn(move || {
            let mut out = Pieces {
                sender,
                piece: Vec::with_capacity(PIECE_BYTES),
            };
            let made = make(&mut out);
            if out.send().is_ok() {
                if let Err(error) = made {
                    let _ = out.sender.send(Err(error));
                }
            }
        });

        Ahead {
            pieces,
            piece: Vec::new(),
            at: 0,
        }
    }
}

impl BufRead for Ahead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() {
            // Without a sender the text is over.
            self.piece = self.pieces.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            self.at = 0;
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let text = self.fill_buf()?;
        let count = text.len().min(out.len());
        out[..count].copy_from_slice(&text[..count]);
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};

    const TEXT: &[u8] = b"type=USER msg=audit(1700000000.100:1): pid=5 uid=0\n";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 1).expect("memory")
    }

    fn lz4(text: &[u8]) -> Vec<u8> {
        let info = FrameInfo::new().block_size(BlockSize::Max64KB);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn text_of(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        decoded(io::Cursor::new(bytes))?.0.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn every_form_is_read_alone_concatenated_and_inside_of_another() {
        for encode in [gzip, bzip2, zstd, lz4] {
            assert_eq!(text_of(encode(TEXT)).expect("text"), TEXT);
            let twice = [encode(TEXT), encode(b""), encode(TEXT)].concat();
            assert_eq!(text_of(twice).expect("text"), [TEXT, TEXT].concat());
            assert_eq!(text_of(encode(&gzip(TEXT))).expect("text"), TEXT);
        }
        assert_eq!(text_of(TEXT.to_vec()).expect("text"), TEXT);
        assert_eq!(text_of(Vec::new()).expect("text"), b"");
    }

    #[test]
    fn a_file_that_is_cut_gives_its_text_and_then_an_error() {
        let line = |n: u32| {
            format!(
                "type=USER msg=audit(1700000000.100:{n}): pid={}\n",
                n ^ 0x5a5a5
            )
        };
        let long = (0..80_000).map(line).collect::<String>().into_bytes();
        for encode in [gzip, bzip2, zstd, lz4] {
            let mut bytes = encode(&long);
            bytes.truncate(bytes.len() * 9 / 10);
            let (mut text, mut lines) = (decoded(io::Cursor::new(bytes)).expect("opened").0, 0);
            let mut line = Vec::new();
            let error = loop {
                line.clear();
                match text.read_until(b'\n', &mut line) {
                    Ok(0) => break None,
                    Ok(_) => lines += 1,
                    Err(error) => break Some(error),
                }
            };
            assert!(error.is_some() && lines > 0, "{lines}");
        }
    }
}
