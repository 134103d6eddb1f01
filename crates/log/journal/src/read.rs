//! Reading log files of every form: plain, and compressed after rotation.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// Suffix of the name of a rotated file once it is compressed.
pub(crate) const COMPRESSED_SUFFIX: &str = ".zst";

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The name that a compressed file had before compression.
pub(crate) fn uncompressed_name(path: &Path) -> PathBuf {
    let text = path.as_os_str().to_string_lossy();
    match text.strip_suffix(COMPRESSED_SUFFIX) {
        Some(name) => PathBuf::from(name),
        None => path.to_owned(),
    }
}

/// Opens a file for reading; decompresses it if it was compressed after its rotation.
pub(crate) fn raw(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut start = [0; 4];
    let count = fill(&mut file, &mut start)?;
    file.rewind()?;
    if start[..count] == ZSTD_MAGIC {
        Ok(Box::new(zstd::Decoder::new(file)?))
    } else {
        Ok(Box::new(BufReader::with_capacity(1 << 17, file)))
    }
}

/// An ENRICHED line as RAW would have it: without the interpreted names, which follow byte 0x1d.
pub fn raw_line(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let end = memchr::memchr(0x1d, line).unwrap_or(line.len());
    &line[..end]
}

/// Reads until `out` is full or the input ends. Returns the number of bytes read.
pub(crate) fn fill(reader: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match reader.read(&mut out[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
