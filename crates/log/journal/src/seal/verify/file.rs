//! Checks one log file against its seal.

use std::io;
use std::path::{Path, PathBuf};

use super::super::entry::{self, DecodedEntry, EntryKind, Header, Reason, SealEntry, HEADER_BYTES};
use super::super::keys::{signature_holds, Keys, PublicKey};
use super::super::{seal_path, time_text, VerificationKey};
use super::blocks::{self, LogBytes};
use super::position::SealPosition;
use super::report::{FileCheck, SealFinding};
use super::{id_text, keys_at, VerifyError};
use crate::read;

/// Flags of the last OPEN entry.
#[derive(Clone, Copy, Default)]
struct LastOpen {
    is_first: bool,
    in_order: bool,
}

struct SealWalk<'a> {
    log: &'a Path,
    entries: &'a [u8],
    bytes: LogBytes,
    keys: Option<Keys>,
    position: SealPosition,
    opened: LastOpen,
    covered: u64,
    /// Whether there are entries that no signature covers yet.
    unsigned: bool,
    check: FileCheck,
}

/// Checks `log`; `None` if there is no seal beside it.
pub(super) fn check(
    log: &Path,
    key: &VerificationKey,
    before: Option<&SealPosition>,
) -> Result<Option<FileCheck>, VerifyError> {
    let seal_path = seal_path(&read::uncompressed_name(log));
    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |source| VerifyError::Io { path, source }
    };
    let seal = match std::fs::read(&seal_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A log that does not exist is an error, not an unsealed log.
            std::fs::metadata(log).map_err(io_error(log))?;
            return Ok(None);
        }
        other => other.map_err(io_error(&seal_path))?,
    };

    let reader = read::raw(log).map_err(io_error(log))?;
    let mut check = FileCheck::default();
    let Some((header, chain)) = Header::parse(&seal) else {
        check.finding = Some(SealFinding::of_file(
            log,
            "the header of its seal is damaged".into(),
        ));
        return Ok(Some(check));
    };

    check.first_epoch = Some(header.epoch);
    if header.id != key.id {
        return Err(VerifyError::OtherKey {
            path: seal_path,
            found: id_text(&header.id),
            expected: id_text(&key.id),
        });
    }

    // The header has to continue the file before: otherwise files could be removed or exchanged as wholes.
    if let Some(what) = before.and_then(|before| gap_between(before, &header)) {
        check.finding = Some(SealFinding::of_file(log, what));
        return Ok(Some(check));
    }

    let public = anchor(before, key, &header, seal_path)?;
    let mut walk = SealWalk {
        log,
        entries: &seal[HEADER_BYTES..],
        bytes: LogBytes::new(reader),
        keys: key
            .secret
            .as_deref()
            .map(|secret| keys_at(secret, header.epoch)),
        position: SealPosition {
            epoch: header.epoch,
            index: 0,
            chain,
            public,
            time_ms: header.time_ms,
            is_rotated: false,
            is_closed: false,
        },
        opened: LastOpen::default(),
        covered: 0,
        unsigned: false,
        check,
    };

    let finding = walk.entries().map_err(io_error(log))?;
    Ok(Some(walk.finish(finding)))
}

/// The key that verifies the first checkpoint, if it is not derived from the secret.
fn anchor(
    before: Option<&SealPosition>,
    key: &VerificationKey,
    header: &Header,
    seal_path: PathBuf,
) -> Result<Option<PublicKey>, VerifyError> {
    match (before, header.epoch) {
        (Some(before), _) => Ok(before.public),
        (None, 0) => Ok(Some(key.public)),
        (None, epoch) if key.secret.is_none() => Err(VerifyError::NoAnchor {
            path: seal_path,
            epoch,
        }),

        // The secret authenticates each entry until a checkpoint names the next public key.
        (None, _) => Ok(None),
    }
}

/// Describes how a file's header does not continue the previous file.
fn gap_between(before: &SealPosition, header: &Header) -> Option<String> {
    let (epoch, next) = (header.epoch, before.epoch);
    if epoch < next {
        return Some(format!(
            "out of order: its seal begins with epoch {epoch}, and the file before ends with {next}"
        ));
    }
    if epoch > next || before.index > 0 || header.chain != before.chain.0 {
        return Some(format!(
            "a file, or the end of the one before, is missing: the seal before ends at {next}.{}, \
             this one begins at {epoch}.0",
            before.index
        ));
    }

    None
}

impl SealWalk<'_> {
    fn finish(mut self, finding: Option<SealFinding>) -> FileCheck {
        if finding.is_none() {
            if self.unsigned && self.keys.is_none() {
                let text = "the end is not signed yet, and the public key alone does not verify it";
                self.check.notes.push(text.into());
            }
            self.check.end = Some(self.position);
        }
        self.check.finding = finding;
        self.check
    }

    fn find(&self, what: String) -> Option<SealFinding> {
        Some(SealFinding {
            path: self.log.to_owned(),
            bytes: Some(self.covered..self.covered),
            line: Some(self.bytes.line()),
            sealed_ms: None,
            what,
        })
    }

    fn entries(&mut self) -> io::Result<Option<SealFinding>> {
        let mut at = 0;
        while at < self.entries.len() {
            let Some(found) = entry::next(&self.entries[at..]) else {
                let position = at + HEADER_BYTES;
                return Ok(self.find(format!("the seal is cut or altered at its byte {position}")));
            };
            if let Some(what) = self.authenticate(&found) {
                return Ok(self.find(what));
            }
            if let Some(finding) = self.apply(&found.entry)? {
                return Ok(Some(finding));
            }
            at += found.bytes;
        }

        // A whole seal may still be shorter than its log.
        let tail = self.bytes.rest()?;
        if tail > 0 {
            let mut finding = self.find(format!(
                "{tail} bytes that no seal covers: added later, or written as the journal was killed"
            ));
            if let Some(finding) = &mut finding {
                finding.bytes = Some(self.covered..self.covered + tail);
            }
            return Ok(finding);
        }

        Ok(None)
    }

    /// Checks that the entry is the next one and was made with its keys. Returns what is wrong if
    /// not.
    fn authenticate(&mut self, found: &DecodedEntry<'_>) -> Option<String> {
        let entry = &found.entry;
        let (epoch, index) = (self.position.epoch, self.position.index);
        let chain = self.position.chain.after(found.sized_body);
        if (entry.epoch, entry.index) != (epoch, index) {
            let (e, i) = (entry.epoch, entry.index);
            return Some(if (e, i) > (epoch, index) {
                format!("seal entries {epoch}.{index} up to {e}.{i} are missing")
            } else {
                format!("seal entry {e}.{i} where {epoch}.{index} is due: reordered")
            });
        }

        if let Some(keys) = &self.keys {
            if keys.tag(&chain.0) != found.tag {
                return Some(format!("seal entry {epoch}.{index} is altered"));
            }
        }

        if let (Some(signature), Some(public)) = (&found.signature, &self.position.public) {
            if !signature_holds(public, &chain.0, signature) {
                return Some(format!(
                    "the signature that ends epoch {epoch} does not hold: an entry of it is altered"
                ));
            }
        }

        self.position.chain = chain;
        self.position.time_ms = entry.time_ms;
        match &entry.kind {
            EntryKind::Checkpoint { next_public, .. } => {
                self.position.public = Some(*next_public);
                self.position.epoch = epoch.saturating_add(1);
                self.position.index = 0;
                self.unsigned = false;
                self.keys.as_mut().map(Keys::next_epoch);
            }
            _ => {
                self.position.index = index.saturating_add(1);
                self.unsigned = true;
                self.keys.as_mut().map(Keys::step);
            }
        }

        None
    }

    fn apply(&mut self, entry: &SealEntry<'_>) -> io::Result<Option<SealFinding>> {
        self.position.is_rotated = false;
        self.position.is_closed = false;
        match &entry.kind {
            EntryKind::Commit {
                is_late,
                start,
                length,
                hashes,
            } => {
                // Entries cover the log without gaps or overlaps.
                if *start != self.covered {
                    let what = format!("the seal goes on at byte {start}: entries are missing");
                    return Ok(self.find(what));
                }
                if let Some(finding) = self.compare(entry.time_ms, *length, hashes)? {
                    return Ok(Some(finding));
                }
                if *is_late {
                    if let Some(finding) = self.late(*length, entry.time_ms) {
                        return Ok(Some(finding));
                    }
                }
                self.covered += length;
                self.check.intact_bytes = self.covered;
            }
            EntryKind::Checkpoint { reason, .. } => {
                self.position.is_rotated = *reason == Reason::Rotate;
                self.position.is_closed = *reason == Reason::Close;
            }
            EntryKind::Open {
                flags,
                found,
                sealed,
                ..
            } => return Ok(self.open(*flags, *found, *sealed, entry.time_ms)),
        }

        self.check.until_ms = Some(entry.time_ms);
        Ok(None)
    }

    fn compare(
        &mut self,
        sealed_ms: u64,
        length: u64,
        hashes: &[u8],
    ) -> io::Result<Option<SealFinding>> {
        let Some(mismatch) = self.bytes.check(length, hashes)? else {
            return Ok(None);
        };
        let what = blocks::describe(&mismatch, &mut self.bytes, self.entries);
        Ok(Some(SealFinding {
            path: self.log.to_owned(),
            bytes: Some(mismatch.start..mismatch.start + mismatch.expected),
            line: Some(mismatch.line),
            sealed_ms: Some(sealed_ms),
            what: what + &self.statement(mismatch.start),
        }))
    }

    /// The journal's statement, made at a later start, that the log was shorter than its seal;
    /// empty if there is none about `offset`.
    fn statement(&self, offset: u64) -> String {
        let mut rest = self.entries;
        while let Some(next) = entry::next(rest) {
            if let EntryKind::Open { found, sealed, .. } = next.entry.kind {
                if found < sealed && offset < sealed {
                    let time = time_text(next.entry.time_ms);
                    return format!(
                        "; the journal stated at {time} that the log had {found} bytes, \
                         {sealed} being sealed (a power failure, or a cut)"
                    );
                }
            }
            rest = &rest[next.bytes..];
        }

        String::new()
    }

    fn late(&mut self, length: u64, time_ms: u64) -> Option<SealFinding> {
        let (start, end) = (self.covered, self.covered + length);
        let time = time_text(time_ms);
        if self.opened.in_order {
            let mut finding = self.find(format!(
                "added between an orderly end of the journal and its start at {time}"
            ));
            if let Some(finding) = &mut finding {
                finding.bytes = Some(start..end);
            }
            return finding;
        }

        let why = if self.opened.is_first {
            "were there before sealing began"
        } else {
            "were written as the journal was killed, or later by somebody else"
        };
        let text = format!("bytes {start} to {end} {why}; sealed only at {time}");
        self.check.notes.push(text);

        None
    }

    fn open(&mut self, flags: u8, found: u64, sealed: u64, time_ms: u64) -> Option<SealFinding> {
        self.opened = LastOpen {
            is_first: flags & entry::FIRST != 0,
            in_order: flags & entry::IN_ORDER != 0,
        };
        let time = time_text(time_ms);
        if flags & entry::ENTRIES_LOST != 0 {
            return self.find(format!(
                "at its start at {time} the journal found the end of the seal missing"
            ));
        }
        if found < sealed {
            return self.find(format!(
                "at its start at {time} the journal found {} sealed bytes missing: a power \
                 failure, or a cut",
                sealed - found
            ));
        }

        if !self.opened.in_order && !self.opened.is_first {
            let text = format!("the journal did not end in order before its start at {time}");
            self.check.notes.push(text);
        }
        None
    }
}
