//! The question for digests and its answer, as helper and daemon send them.

use crate::bytes::{long, word};
use compose::ExecutedFile;
use plan::ObjectId;
use record::{Digests, HashedFile, NoDigest, Verity, SHA256_BYTES};

/// Bytes of a question's own, between the header of the message and the path.
pub(crate) const OWN_BYTES: usize = 24;
/// Bytes of the longest answer: reason, algorithm, SHA-512, SHA-256.
pub(crate) const ANSWER_BYTES_MAX: usize = 2 + 64 + SHA256_BYTES;

/// `FS_VERITY_HASH_ALG_*` of linux/fsverity.h.
pub(super) const VERITY_SHA256: u8 = 1;
pub(super) const VERITY_SHA512: u8 = 2;

/// Asks for the digests of an executed file: see [`ExecutedFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestQuestion<'a> {
    /// Path of the file at its execution.
    pub path: &'a [u8],
    /// The file.
    pub object: ObjectId,
    /// Program or script.
    pub file: HashedFile,
    /// The process.
    pub pid: u32,
    /// The mount namespace of the process.
    pub mnt_ns: u32,
    /// Time of the execve, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Size up to which files are hashed.
    pub bytes_max: u64,
}

impl<'a> DigestQuestion<'a> {
    pub(crate) fn of(file: &ExecutedFile<'a>, bytes_max: u64) -> DigestQuestion<'a> {
        DigestQuestion {
            path: file.path.to_bytes(),
            object: file.object,
            file: file.file,
            pid: file.pid,
            mnt_ns: file.mnt_ns,
            time_ns: file.time_ns,
            bytes_max,
        }
    }

    /// Appends what the header of the message has no place for.
    pub(crate) fn put_own(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time_ns.to_ne_bytes());
        out.extend_from_slice(&self.bytes_max.to_ne_bytes());
        out.extend_from_slice(&self.mnt_ns.to_ne_bytes());
        out.extend_from_slice(&[0; 4]);
    }

    /// Takes over what [`put_own`](Self::put_own) has appended; `None` if it is something else.
    pub(crate) fn with_own(self, own: &[u8]) -> Option<DigestQuestion<'a>> {
        let is_right = own.len() == OWN_BYTES && own[20..] == [0; 4];
        let question = DigestQuestion {
            time_ns: long(own, 0)?,
            bytes_max: long(own, 8)?,
            mnt_ns: word(own, 16)?,
            ..self
        };
        is_right.then_some(question)
    }
}

/// The bytes of an answer.
pub(crate) fn answer(digests: &Digests) -> Vec<u8> {
    let place = |why: NoDigest| NoDigest::ALL.iter().position(|other| *other == why);
    let why = match digests.sha256 {
        Ok(_) => 0,
        Err(why) => place(why).map_or(u8::MAX, |place| place as u8 + 1),
    };
    let (algorithm, verity): (_, &[u8]) = match &digests.verity {
        None => (0, b""),
        Some(Verity::Sha256(digest)) => (VERITY_SHA256, digest),
        Some(Verity::Sha512(digest)) => (VERITY_SHA512, digest),
    };
    let mut out = vec![why, algorithm];
    out.extend_from_slice(verity);
    out.extend_from_slice(digests.sha256.as_ref().map_or(&[][..], |digest| digest));
    out
}

/// The answer in `bytes`; `None` if they are not one.
pub(crate) fn parse(bytes: &[u8]) -> Option<Digests> {
    let ([why, algorithm], rest) = bytes.split_first_chunk()?;
    let (verity, rest) = match *algorithm {
        0 => (None, rest),
        VERITY_SHA256 => {
            let (digest, rest) = rest.split_first_chunk()?;
            (Some(Verity::Sha256(*digest)), rest)
        }
        VERITY_SHA512 => {
            let (digest, rest) = rest.split_first_chunk()?;
            (Some(Verity::Sha512(*digest)), rest)
        }
        _ => return None,
    };
    let sha256 = match usize::from(*why).checked_sub(1) {
        None => Ok(rest.try_into().ok()?),
        Some(place) if rest.is_empty() => Err(*NoDigest::ALL.get(place)?),
        Some(_) => return None,
    };
    Some(Digests { sha256, verity })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_comes_back_and_a_cut_or_longer_one_is_refused() {
        let verities = [
            None,
            Some(Verity::Sha256([3; 32])),
            Some(Verity::Sha512([4; 64])),
        ];
        let found = NoDigest::ALL.map(Err).into_iter().chain([Ok([5; 32])]);
        for sha256 in found {
            for verity in verities {
                let digests = Digests { sha256, verity };
                let mut bytes = answer(&digests);
                assert!(bytes.len() <= ANSWER_BYTES_MAX);
                assert_eq!(parse(&bytes), Some(digests));
                for len in 0..bytes.len() {
                    assert_eq!(parse(&bytes[..len]), None);
                }
                bytes.push(0);
                assert_eq!(parse(&bytes), None);
            }
        }
        assert_eq!(parse(&[11, 0]), None);
        assert_eq!(parse(&[1, 3]), None);
    }
}
