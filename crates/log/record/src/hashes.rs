//! Digests of executed files, as the log tells them.

use crate::{json, put};
use serde::{Deserialize, Serialize};

/// Bytes of a SHA-256 digest.
pub const SHA256_BYTES: usize = 32;

/// The file of an execve that a digest is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HashedFile {
    /// The program that runs; for a script, its interpreter.
    Exe,
    /// The script.
    Script,
}

impl HashedFile {
    /// The name in JSON; in upper case, the beginning of the fields in ENRICHED.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            HashedFile::Exe => ("exe", " EXE_"),
            HashedFile::Script => ("script", " SCRIPT_"),
        }
    }
}

/// Reason why a file has no SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoDigest {
    /// The file is larger than the configuration allows.
    TooBig,
    /// There was no time for it now; it is computed for later events.
    Busy,
    /// The file was changed after the execve.
    Changed,
    /// The file was changed so shortly before the execve that times cannot tell which came first.
    Recent,
    /// The file is no longer where it was.
    Gone,
    /// Times of this kind of file system do not tell of every change.
    FileSystem,
    /// The mounts of the process are those of an unprivileged user.
    Namespace,
    /// The system's clock was set, or the event is from before the helper.
    Clock,
    /// The file could not be read.
    Unreadable,
    /// The helper did not answer.
    Unanswered,
}

impl NoDigest {
    /// Every reason.
    pub const ALL: [NoDigest; 10] = [
        NoDigest::TooBig,
        NoDigest::Busy,
        NoDigest::Changed,
        NoDigest::Recent,
        NoDigest::Gone,
        NoDigest::FileSystem,
        NoDigest::Namespace,
        NoDigest::Clock,
        NoDigest::Unreadable,
        NoDigest::Unanswered,
    ];

    /// The word in the log.
    pub fn name(self) -> &'static str {
        match self {
            NoDigest::TooBig => "too-big",
            NoDigest::Busy => "busy",
            NoDigest::Changed => "changed",
            NoDigest::Recent => "recent",
            NoDigest::Gone => "gone",
            NoDigest::FileSystem => "file-system",
            NoDigest::Namespace => "namespace",
            NoDigest::Clock => "clock",
            NoDigest::Unreadable => "unreadable",
            NoDigest::Unanswered => "unanswered",
        }
    }
}

/// The digest that fs-verity has of a file, with which the kernel checks what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verity {
    /// FS_VERITY_HASH_ALG_SHA256.
    Sha256([u8; SHA256_BYTES]),
    /// FS_VERITY_HASH_ALG_SHA512.
    Sha512(#[serde(with = "serde_bytes")] [u8; 64]),
}

impl Verity {
    /// `sha256:…`, as fsverity(1) prints it.
    fn text(&self) -> Vec<u8> {
        let (name, digest): (_, &[u8]) = match self {
            Verity::Sha256(digest) => ("sha256:", digest),
            Verity::Sha512(digest) => ("sha512:", digest),
        };
        let mut out = name.as_bytes().to_vec();
        hex(&mut out, digest);
        out
    }
}

/// Digests of a file's contents, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// SHA-256 of the contents when the execve was done, or the reason why there is none.
    pub sha256: Result<[u8; SHA256_BYTES], NoDigest>,
    /// The measurement of fs-verity, if the file has one.
    pub verity: Option<Verity>,
}

impl Digests {
    /// Digests of which none is known, for this reason.
    pub fn none(why: NoDigest) -> Digests {
        Digests {
            sha256: Err(why),
            verity: None,
        }
    }
}

/// An executed file with its digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHash {
    /// Role of the file in the execve.
    pub file: HashedFile,
    /// Path of the file as the process saw it; empty if it is not known.
    pub path: Vec<u8>,
    /// Inode number; `None` if it is not known.
    pub ino: Option<u64>,
    /// Digests of the contents.
    pub digests: Digests,
}

/// Appends ` EXE_SHA256="…"` and so on, as auditd writes interpretations.
pub(crate) fn enriched(out: &mut Vec<u8>, hashes: &[FileHash]) {
    for hash in hashes {
        let (_, prefix) = hash.file.names();
        put::text(out, prefix);
        match &hash.digests.sha256 {
            Ok(digest) => {
                put::text(out, "SHA256=\"");
                hex(out, digest);
            }
            Err(why) => {
                put::text(out, "SHA256=?");
                put::text(out, prefix);
                put::text(out, "SHA256_WHY=\"");
                put::text(out, why.name());
            }
        }
        out.push(b'"');
        if let Some(verity) = &hash.digests.verity {
            put::text(out, prefix);
            put::text(out, "VERITY=\"");
            out.extend_from_slice(&verity.text());
            out.push(b'"');
        }
    }
}

/// Appends the value of `hashes`: a list of objects.
pub(crate) fn json(out: &mut Vec<u8>, hashes: &[FileHash]) {
    for (place, hash) in hashes.iter().enumerate() {
        let (name, _) = hash.file.names();
        put::text(out, if place == 0 { "[" } else { "," });
        put::text(out, "{\"file\":\"");
        put::text(out, name);
        out.push(b'"');
        if !hash.path.is_empty() {
            put::text(out, ",\"path\":");
            json::string(out, &hash.path);
        }
        if let Some(ino) = hash.ino {
            put::text(out, ",\"inode\":");
            put::decimal(out, ino);
        }
        match &hash.digests.sha256 {
            Ok(digest) => {
                put::text(out, ",\"sha256\":\"");
                hex(out, digest);
            }
            Err(why) => {
                put::text(out, ",\"sha256\":null,\"why\":\"");
                put::text(out, why.name());
            }
        }
        out.push(b'"');
        if let Some(verity) = &hash.digests.verity {
            put::text(out, ",\"verity\":\"");
            out.extend_from_slice(&verity.text());
            out.push(b'"');
        }
        out.push(b'}');
    }

    put::text(out, "]");
}

/// Appends a digest as tools print it: in lower case.
fn hex(out: &mut Vec<u8>, digest: &[u8]) {
    for byte in digest {
        for digit in [byte >> 4, byte & 15] {
            out.push(b"0123456789abcdef"[usize::from(digit)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes() -> [FileHash; 2] {
        [
            FileHash {
                file: HashedFile::Exe,
                path: b"/bin/a \"b\"".to_vec(),
                ino: Some(7),
                digests: Digests {
                    sha256: Ok([0xa5; SHA256_BYTES]),
                    verity: Some(Verity::Sha256([1; SHA256_BYTES])),
                },
            },
            FileHash {
                file: HashedFile::Script,
                path: Vec::new(),
                ino: None,
                digests: Digests::none(NoDigest::TooBig),
            },
        ]
    }

    #[test]
    fn enriched_says_digest_or_reason_for_each_file() {
        let mut out = Vec::new();
        enriched(&mut out, &hashes());
        let expected = format!(
            " EXE_SHA256=\"{}\" EXE_VERITY=\"sha256:{}\" SCRIPT_SHA256=? SCRIPT_SHA256_WHY=\"too-big\"",
            "a5".repeat(32),
            "01".repeat(32)
        );
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn json_is_a_list_with_one_object_for_each_file() {
        let mut out = Vec::new();
        json(&mut out, &hashes());
        let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let expected = serde_json::json!([
            {"file": "exe", "path": "/bin/a \"b\"", "inode": 7, "sha256": "a5".repeat(32),
             "verity": format!("sha256:{}", "01".repeat(32))},
            {"file": "script", "sha256": null, "why": "too-big"},
        ]);
        assert_eq!(value, expected);
    }

    #[test]
    fn each_reason_has_a_word_of_its_own() {
        let mut words = NoDigest::ALL.map(NoDigest::name).to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), NoDigest::ALL.len());
    }
}
