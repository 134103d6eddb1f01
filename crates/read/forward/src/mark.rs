//! Marks: digests of what stands before places of the log. By them the sender notices that what it has sent is not in the
//! log any more: the log was cut, by logrotate's `copytruncate` or by a daemon that mends it, or somebody has edited it.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes before a place that its mark is made of, or all if there are fewer.
pub(crate) const MARKED_BYTES: usize = 512;
/// Number of marks that are kept.
const MARKS_MAX: usize = 16;
const DIGEST_BYTES: usize = 16;

/// The digest of what stands before a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the log file in its series.
    file: u64,
    /// Bytes of the file.
    offset: u64,
    digest: [u8; DIGEST_BYTES],
}

impl Mark {
    /// The mark of a place. `text` ends there, and begins at least [`MARKED_BYTES`] before or with the file.
    pub(crate) fn of(file: u64, offset: u64, text: &[u8]) -> Mark {
        Mark {
            file,
            offset,
            digest: digest(text),
        }
    }

    /// `FILE BYTE DIGEST`, as the cursor has it.
    pub(crate) fn to_text(&self) -> String {
        let digest: String = self.digest.iter().map(|b| format!("{b:02x}")).collect();
        format!("{} {} {digest}", self.file, self.offset)
    }

    /// The mark of [`to_text`](Self::to_text); `None` if it is none.
    pub(crate) fn from_text(text: &str) -> Option<Mark> {
        let mut words = text.split(' ');
        let (file, offset) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let digits = words.next().filter(|digits| digits.is_ascii())?;
        let mut digest = [0; DIGEST_BYTES];
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }

        let is_whole = digits.len() == 2 * DIGEST_BYTES && words.next().is_none();
        is_whole.then_some(Mark {
            file,
            offset,
            digest,
        })
    }
}

/// The marks of a cursor, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<Mark>);

impl Marks {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter()
    }

    /// Adds a mark. A mark of the same place is replaced; the oldest is forgotten if there are too many.
    pub(crate) fn add(&mut self, mark: Mark) {
        self.0
            .retain(|other| (other.file, other.offset) != (mark.file, mark.offset));
        if self.0.len() >= MARKS_MAX {
            self.0.remove(0);
        }
        self.0.push(mark);
    }

    /// Whether `text` stood before the place when it was marked; true without a mark.
    pub(crate) fn agree(&self, file: u64, offset: u64, text: &[u8]) -> bool {
        let mut of_place = self
            .0
            .iter()
            .filter(|mark| (mark.file, mark.offset) == (file, offset));
        of_place.all(|mark| mark.digest == digest(text))
    }

    /// The last place up to `limit` of file `number`, open as `file`, before which nothing has changed: 0 if there is none.
    pub(crate) fn last_agreeing(&self, number: u64, limit: u64, file: &File) -> u64 {
        let of_file = self
            .0
            .iter()
            .filter(|mark| mark.file == number && mark.offset <= limit);
        let agreeing = of_file.filter(|mark| {
            let begin = mark.offset.saturating_sub(MARKED_BYTES as u64);
            let mut text = vec![0; (mark.offset - begin) as usize];
            file.read_exact_at(&mut text, begin).is_ok() && digest(&text) == mark.digest
        });
        agreeing.map(|mark| mark.offset).max().unwrap_or(0)
    }

    /// Keeps the marks of file `from` up to `limit`, as those of file `to`.
    pub(crate) fn renumber(&mut self, from: u64, limit: u64, to: u64) {
        self.0
            .retain(|mark| mark.file == from && mark.offset <= limit);
        for mark in &mut self.0 {
            mark.file = to;
        }
    }
}

/// Digest of the last [`MARKED_BYTES`] of a text.
fn digest(text: &[u8]) -> [u8; DIGEST_BYTES] {
    let marked = &text[text.len().saturating_sub(MARKED_BYTES)..];
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&blake3::hash(marked).as_bytes()[..DIGEST_BYTES]);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_is_written() {
        let mark = Mark::of(3, 70_000, b"some text");
        assert_eq!(Mark::from_text(&mark.to_text()), Some(mark.clone()));
        for text in ["", "1 2", "1 2 zz", "1 2 é", "a 2 00", "1 2 00 3"] {
            assert_eq!(Mark::from_text(text), None, "{text}");
        }
        let cut = mark.to_text();
        assert_eq!(Mark::from_text(&cut[..cut.len() - 1]), None);
        assert_eq!(Mark::from_text(&format!("{cut}0")), None);
    }

    #[test]
    fn the_last_place_before_which_nothing_has_changed_is_found() {
        let path = tempfile::NamedTempFile::new().expect("a file");
        let text: Vec<u8> = (0..9000_u32).flat_map(|n| n.to_le_bytes()).collect();
        std::fs::write(path.path(), &text).expect("written");
        let file = File::open(path.path()).expect("opened");
        let mut marks = Marks::default();
        for end in (1000..=20_000).step_by(1000) {
            marks.add(Mark::of(2, end as u64, &text[..end]));
        }
        assert_eq!(marks.iter().count(), MARKS_MAX);
        assert_eq!(marks.last_agreeing(2, u64::MAX, &file), 20_000);
        assert_eq!(marks.last_agreeing(2, 12_345, &file), 12_000);
        assert_eq!(marks.last_agreeing(1, u64::MAX, &file), 0);
        let mut edited = text.clone();
        edited[11_900] ^= 1;
        std::fs::write(path.path(), &edited[..15_500]).expect("written");
        assert_eq!(marks.last_agreeing(2, u64::MAX, &file), 15_000);
        assert!(marks.agree(2, 15_000, &edited[..15_000]));
        assert!(!marks.agree(2, 12_000, &edited[..12_000]));
        assert!(marks.agree(2, 12_001, b"not marked"));
        marks.renumber(2, 11_000, 5);
        assert_eq!(marks.last_agreeing(5, u64::MAX, &file), 11_000);
        assert_eq!(marks.last_agreeing(2, u64::MAX, &file), 0);
    }
}
