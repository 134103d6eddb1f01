//! Keys: how they are derived from each other, and who holds which.
//!
//! Epoch `e` has a secret `E(e)`; `E(e+1) = KDF("epoch", E(e))`. Two more keys are derived from
//! `E(e)`: the key that signs the checkpoint at the end of the epoch, and the first key that
//! authenticates entries. Each later entry key is the hash of the one before. The verifier holds
//! `E(0)` and can derive all keys. The host holds `E(e+1)`, the signing key and the current entry
//! key, from which no earlier key can be derived.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signer, SigningKey, Verifier};
use zeroize::{Zeroize, Zeroizing};

use super::locked::LockedPage;

const EPOCH: &str = "tarsier seal 1 epoch secret";
const SIGN: &str = "tarsier seal 1 checkpoint signing key";
const ENTRY: &str = "tarsier seal 1 first entry key of an epoch";
const STEP: &str = "tarsier seal 1 next entry key";
/// More bytes than the text of a key has.
const TEXT_BYTES: usize = 512;
const SIGNED: &[u8] = b"tarsier seal 1 checkpoint\0";

/// 32 secret bytes, erased when dropped.
pub(super) type Secret = Zeroizing<[u8; 32]>;

/// A public Ed25519 key.
pub(super) type PublicKey = [u8; 32];

/// Identifies a series of seals that begins with one `tarsier seal init`.
pub(super) type SeriesId = [u8; 16];

fn derive(context: &str, secret: &[u8; 32]) -> Secret {
    Zeroizing::new(blake3::derive_key(context, secret))
}

fn public_of(seed: &[u8; 32]) -> PublicKey {
    SigningKey::from_bytes(seed).verifying_key().to_bytes()
}

/// Bytes of the secrets of [`Keys`].
pub(super) const SECRETS_BYTES: usize = 96;
/// Bytes of the page that are used: the secrets, and room to write them down in.
const USED_BYTES: usize = SECRETS_BYTES + 256;
/// Secret of the next epoch.
const NEXT: Range<usize> = 0..32;
/// Signs the checkpoint that ends this epoch.
const SIGNING: Range<usize> = 32..64;
/// Authenticates the next entry.
const AUTHENTICATING: Range<usize> = 64..SECRETS_BYTES;

/// The keys at one moment; all later keys follow from them.
pub(super) struct Keys {
    pub(super) epoch: u32,
    /// Number of entries of the epoch that were authenticated.
    pub(super) index: u32,
    /// The secrets, and room in which others write them down.
    page: LockedPage,
}

impl Keys {
    /// Keys of the first epoch, from `E(0)`.
    pub(super) fn first(secret: &[u8; 32]) -> Self {
        Keys::of_epoch(0, secret)
    }

    fn of_epoch(epoch: u32, secret: &[u8; 32]) -> Self {
        let mut keys = Keys {
            epoch,
            index: 0,
            page: LockedPage::new(),
        };
        keys.page[NEXT].copy_from_slice(secret);
        keys.derive_epoch();
        keys
    }

    /// Makes keys whose secrets `fill` writes into its first argument. Its second argument is scratch space, which is
    /// wiped afterwards. Both are in the protected page.
    pub(super) fn read<E>(
        epoch: u32,
        index: u32,
        fill: impl FnOnce(&mut [u8], &mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut page = LockedPage::new();
        let (secrets, room) = page[..USED_BYTES].split_at_mut(SECRETS_BYTES);
        fill(secrets, room)?;
        room.zeroize();
        Ok(Keys { epoch, index, page })
    }

    /// Calls `write` with the secrets and with scratch space, which is wiped afterwards. Both are in the protected
    /// page.
    pub(super) fn write<T>(&mut self, write: impl FnOnce(&[u8], &mut [u8]) -> T) -> T {
        let (secrets, room) = self.page[..USED_BYTES].split_at_mut(SECRETS_BYTES);
        let outcome = write(secrets, room);
        room.zeroize();
        outcome
    }

    /// The part of the secrets' protection that the kernel refused.
    pub(super) fn unprotected(&self) -> Option<&(&'static str, std::io::Error)> {
        self.page.failure.as_ref()
    }

    fn secret(&self, place: Range<usize>) -> &[u8; 32] {
        // Each place has 32 bytes.
        self.page[place].first_chunk().unwrap_or(&[0; 32])
    }

    /// Makes the secret at `to` from that at `from`, which may be the same.
    fn derive_into(&mut self, context: &str, from: Range<usize>, to: Range<usize>) {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        hasher.update(&self.page[from]);
        let mut output = hasher.finalize_xof();
        output.fill(&mut self.page[to]);
        hasher.zeroize();
        output.zeroize();
    }

    /// Makes all keys from `E(epoch)`, which is in the place of the next epoch's.
    fn derive_epoch(&mut self) {
        // The source of all three keys is replaced last.
        self.derive_into(SIGN, NEXT, SIGNING);
        self.derive_into(ENTRY, NEXT, AUTHENTICATING);
        self.derive_into(EPOCH, NEXT, NEXT);
    }

    /// Tag of the entry whose chain value is `chain`.
    pub(super) fn tag(&self, chain: &[u8; 32]) -> blake3::Hash {
        blake3::keyed_hash(self.secret(AUTHENTICATING), chain)
    }

    /// Replaces the entry key with the next one.
    pub(super) fn step(&mut self) {
        self.derive_into(STEP, AUTHENTICATING, AUTHENTICATING);
        self.index = self.index.saturating_add(1);
    }

    /// Replaces all keys with those of the next epoch.
    pub(super) fn next_epoch(&mut self) {
        self.derive_epoch();
        self.epoch = self.epoch.saturating_add(1);
        self.index = 0;
    }

    /// The public key that verifies the next epoch's checkpoint.
    pub(super) fn next_public(&self) -> PublicKey {
        public_of(&derive(SIGN, self.secret(NEXT)))
    }

    /// Signs the chain value of a checkpoint.
    pub(super) fn sign(&self, chain: &[u8; 32]) -> [u8; 64] {
        SigningKey::from_bytes(self.secret(SIGNING))
            .sign(&signed_text(chain))
            .to_bytes()
    }

    /// Whether the entry at (`epoch`, `index`) is older than these keys.
    pub(super) fn are_past(&self, epoch: u32, index: u32) -> bool {
        (epoch, index) < (self.epoch, self.index)
    }
}

fn signed_text(chain: &[u8; 32]) -> Vec<u8> {
    [SIGNED, chain].concat()
}

/// Whether `signature` is a valid signature by `public` of the chain value of a checkpoint.
pub(super) fn signature_holds(public: &PublicKey, chain: &[u8; 32], signature: &[u8; 64]) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(signature);
    ed25519_dalek::VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify(&signed_text(chain), &signature).is_ok())
}

/// The key that verifies the seals of one series.
///
/// With the secret every entry can be verified. Keep it away from the host, since it can also forge
/// entries. With only the public key, checkpoints can be verified, starting with the first one.
pub struct VerificationKey {
    pub(super) id: SeriesId,
    pub(super) public: PublicKey,
    pub(super) secret: Option<Secret>,
}

/// Reason why a verification key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("{}: {source}; name the file that `tarsier seal init` wrote", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The file is not a verification key.
    #[error("{}:{line}: {found}; expected the text that `tarsier seal init` printed", path.display())]
    Text {
        /// The path of the file.
        path: PathBuf,
        /// Line number, from 1; 0 stands for the whole file.
        line: usize,
        /// Description of the fault.
        found: String,
    },
}

impl VerificationKey {
    pub(super) fn new(id: SeriesId, secret: Secret) -> Self {
        VerificationKey {
            id,
            public: public_of(&derive(SIGN, &secret)),
            secret: Some(secret),
        }
    }

    /// The text of a key file: lines `NAME HEX`, after comment lines that explain what it is.
    pub fn to_text(&self) -> Zeroizing<String> {
        // Room for all of it: a text that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(TEXT_BYTES));
        text.push_str(
            "# Verification key of a sealed audit log. Keep it away from the host: who has the\n\
             # secret can forge the log. Without the secret line, only checkpoints are verified.\n",
        );
        push_hex(&mut text, "id", &self.id);
        push_hex(&mut text, "public", &self.public);

        // Absent from a key that may verify but not forge.
        if let Some(secret) = &self.secret {
            push_hex(&mut text, "secret", secret.as_slice());
        }
        text
    }

    /// Parses the text that [`to_text`](Self::to_text) produces. `path` is only used in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, KeyError> {
        let wrong = |line: usize, found: &str| KeyError::Text {
            path: path.to_owned(),
            line,
            found: found.into(),
        };
        let (mut id, mut public, mut secret) = (None, None, None);
        for (number, line) in text.lines().enumerate().map(|(n, line)| (n + 1, line)) {
            let mut words = line.split_ascii_whitespace();
            let (Some(name), value) = (words.next(), words.next()) else {
                continue;
            };
            let value = value.unwrap_or_default();
            let digits = || wrong(number, "not the right number of hexadecimal digits");
            match name {
                _ if name.starts_with('#') => {}
                "id" => id = Some(from_hex::<16>(value).ok_or_else(digits)?),
                "public" => public = Some(from_hex::<32>(value).ok_or_else(digits)?),
                "secret" => {
                    secret = Some(Zeroizing::new(from_hex::<32>(value).ok_or_else(digits)?))
                }
                _ => return Err(wrong(number, "unknown name at the start of the line")),
            }
        }

        let id = id.ok_or_else(|| wrong(0, "no line `id`"))?;
        let public = public.ok_or_else(|| wrong(0, "no line `public`"))?;

        // A key with another's secret would find every entry altered.
        if let Some(secret) = &secret {
            if public_of(&derive(SIGN, secret)) != public {
                return Err(wrong(
                    0,
                    "the lines `public` and `secret` do not belong together",
                ));
            }
        }

        Ok(VerificationKey { id, public, secret })
    }

    /// Reads a key file.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = std::fs::read_to_string(path).map(Zeroizing::new);
        let text = text.map_err(|source| KeyError::Io {
            path: path.to_owned(),
            source,
        })?;
        VerificationKey::parse(&text, path)
    }

    /// A copy without the secret, for somebody who may verify the log but not forge it.
    pub fn without_secret(&self) -> Self {
        VerificationKey {
            id: self.id,
            public: self.public,
            secret: None,
        }
    }
}

fn push_hex(text: &mut String, name: &str, bytes: &[u8]) {
    text.push_str(name);
    text.push(' ');
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !text.is_ascii() {
        return None;
    }

    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        match u8::from_str_radix(pair, 16) {
            Ok(value) if !pair.starts_with('+') => *byte = value,
            _ => {
                bytes.zeroize();
                return None;
            }
        }
    }

    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_text_and_a_wrong_text_is_refused() {
        let key = VerificationKey::new([7; 16], Zeroizing::new([9; 32]));
        let text = key.to_text();
        assert_eq!(text.capacity(), TEXT_BYTES);
        let again = VerificationKey::parse(&text, Path::new("k")).unwrap();
        assert_eq!((again.id, again.public), (key.id, key.public));
        assert_eq!(again.secret.as_deref(), Some(&[9; 32]));
        let public = key.without_secret().to_text();
        assert!(!public.contains("0909"));
        let again = VerificationKey::parse(&public, Path::new("k")).unwrap();
        assert!(again.secret.is_none());
        for wrong in [
            text.replace("secret 09", "secret 08"),
            text.replace("id 07", "id +7"),
            text.replace("public", "pub"),
            String::new(),
        ] {
            assert!(
                VerificationKey::parse(&wrong, Path::new("k")).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_verifier_s_keys_are_the_host_s_at_every_step() {
        let mut host = Keys::first(&[3; 32]);
        let mut other = Keys::first(&[3; 32]);
        let chain = [1; 32];
        for epoch in 0..3 {
            assert_eq!(host.epoch, epoch);
            for _ in 0..4 {
                assert_eq!(host.tag(&chain), other.tag(&chain));
                let before = host.tag(&chain);
                host.step();
                other.step();
                assert_ne!(host.tag(&chain), before);
            }
            let (public, signature) = (public_of(host.secret(SIGNING)), host.sign(&chain));
            assert!(signature_holds(&public, &chain, &signature));
            assert!(!signature_holds(&public, &[2; 32], &signature));
            let next = host.next_public();
            host.next_epoch();
            other.next_epoch();
            assert_eq!(public_of(host.secret(SIGNING)), next);
        }
        assert!(host.are_past(2, 9));
        assert!(!host.are_past(3, 0));
    }
}
