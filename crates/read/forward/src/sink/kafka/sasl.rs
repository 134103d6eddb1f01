//! SASL PLAIN (RFC 4616) and SCRAM (RFC 5802, 7677).

use std::num::NonZeroU32;

use base64::prelude::{Engine, BASE64_STANDARD};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

/// Rounds beyond which a server's demand is refused: it could stall the sender.
const ROUNDS_MAX: u32 = 10_000_000;

/// The message of PLAIN.
pub(super) fn plain(user: &str, password: &str) -> Vec<u8> {
    format!("\0{user}\0{password}").into_bytes()
}

/// One of the two hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    pub(super) fn mechanism(self) -> &'static str {
        match self {
            Hash::Sha256 => "SCRAM-SHA-256",
            Hash::Sha512 => "SCRAM-SHA-512",
        }
    }

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn digest(self, text: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, text).as_ref().to_vec()
    }

    fn salted(self, password: &str, salt: &[u8], rounds: NonZeroU32) -> Vec<u8> {
        let (algorithm, length) = match self {
            Hash::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, 32),
            Hash::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, 64),
        };
        let mut out = vec![0; length];
        pbkdf2::derive(algorithm, rounds, salt, password.as_bytes(), &mut out);
        out
    }
}

/// The client's side of one exchange.
pub(super) struct Scram {
    hash: Hash,
    first: String,
    nonce: String,
    server_signature: Vec<u8>,
}

impl Scram {
    /// Begins an exchange. The first message is [`Scram::first`].
    pub(super) fn new(hash: Hash, user: &str) -> Result<Scram, String> {
        let mut bytes = [0; 18];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| "no random bytes".to_owned())?;
        Ok(Scram::with_nonce(hash, user, BASE64_STANDARD.encode(bytes)))
    }

    fn with_nonce(hash: Hash, user: &str, nonce: String) -> Scram {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Scram {
            hash,
            first: format!("n={user},r={nonce}"),
            nonce,
            server_signature: Vec::new(),
        }
    }

    pub(super) fn first(&self) -> Vec<u8> {
        format!("n,,{}", self.first).into_bytes()
    }

    /// The answer to the server's first message.
    pub(super) fn last(&mut self, server: &[u8], password: &str) -> Result<Vec<u8>, String> {
        let server = std::str::from_utf8(server).map_err(|_| "bytes that are not text")?;
        let field = |name: &str| server.split(',').find_map(|part| part.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(rounds)) = (field("r="), field("s="), field("i="))
        else {
            return Err(format!(
                "an answer without nonce, salt and rounds: {server:?}"
            ));
        };
        if !nonce.starts_with(&self.nonce) || nonce == self.nonce {
            return Err("a nonce that is not ours".into());
        }

        let salt = BASE64_STANDARD
            .decode(salt)
            .map_err(|error| error.to_string())?;
        let rounds: u32 = rounds.parse().map_err(|_| "no number of rounds")?;
        let rounds = NonZeroU32::new(rounds)
            .filter(|rounds| rounds.get() <= ROUNDS_MAX)
            .ok_or("a number of rounds that is out of bounds")?;
        let salted = self.hash.salted(password, &salt, rounds);
        let sign = |key: &[u8], text: &[u8]| {
            let key = hmac::Key::new(self.hash.hmac(), key);
            hmac::sign(&key, text).as_ref().to_vec()
        };
        let unproved = format!("c=biws,r={nonce}");
        let all = format!("{},{server},{unproved}", self.first);
        let client_key = sign(&salted, b"Client Key");
        let signature = sign(&self.hash.digest(&client_key), all.as_bytes());
        let proof: Vec<u8> = client_key
            .iter()
            .zip(&signature)
            .map(|(a, b)| a ^ b)
            .collect();
        self.server_signature = sign(&sign(&salted, b"Server Key"), all.as_bytes());

        Ok(format!("{unproved},p={}", BASE64_STANDARD.encode(proof)).into_bytes())
    }

    /// Checks that the server knows the password, too.
    pub(super) fn verify(&self, server: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(server);
        if let Some(error) = text.strip_prefix("e=") {
            return Err(error.to_owned());
        }
        let signature = text.split(',').find_map(|part| part.strip_prefix("v="));
        let signature = signature.and_then(|text| BASE64_STANDARD.decode(text).ok());
        if signature == Some(self.server_signature.clone()) {
            Ok(())
        } else {
            Err("the server does not know the password".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_is_that_of_rfc_7677() {
        let mut scram = Scram::with_nonce(Hash::Sha256, "user", "rOprNGfwEbeRWgbNEkqO".into());
        assert_eq!(scram.first(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                      s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let last = scram.last(server.as_bytes(), "pencil").expect("an answer");
        let expected = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(String::from_utf8_lossy(&last), expected);
        let proof = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(scram.verify(proof), Ok(()));
        assert!(scram.verify(b"v=AAAA").is_err());
        assert!(scram.last(b"r=other,s=AAAA,i=1", "x").is_err());
    }
}
