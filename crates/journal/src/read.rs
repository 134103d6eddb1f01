//! Reading log files of every form: plain, rotated and compressed.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// What a rotated file's name ends with once it is compressed.
pub(crate) const COMPRESSED_SUFFIX: &str = ".zst";

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The name that a compressed file had before.
pub(crate) fn uncompressed_name(path: &Path) -> PathBuf {
    let text = path.as_os_str().to_string_lossy();
    match text.strip_suffix(COMPRESSED_SUFFIX) {
        Some(name) => PathBuf::from(name),
        None => path.to_owned(),
    }
}

/// The bytes as the journal wrote them, whether or not the file was compressed at its rotation.
pub(crate) fn raw(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut start = [0; 4];
    let count = file.read(&mut start)?;
    file.rewind()?;
    match start[..count] == ZSTD_MAGIC {
        true => Ok(Box::new(zstd::Decoder::new(file)?)),
        false => Ok(Box::new(BufReader::with_capacity(1 << 17, file))),
    }
}
