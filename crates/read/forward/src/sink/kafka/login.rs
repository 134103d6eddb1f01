//! Proves this host's identity: SASL PLAIN and SCRAM.

use super::connection::Connection;
use super::sasl::{self, Hash, Scram};
use super::wire::{api, Garbage, In, Out};
use crate::config::Auth;

/// Credentials of the configuration.
pub(super) struct Login {
    pub(super) auth: Auth,
    pub(super) user: String,
    pub(super) password: String,
}

impl Login {
    /// Proves this host's identity, in the way that the listener demands.
    pub(super) fn prove(&self, connection: &mut Connection) -> Result<(), String> {
        match self.auth {
            Auth::Plain => {
                handshake(connection, "PLAIN")?;
                let message = sasl::plain(&self.user, &self.password);
                authenticate(connection, &message).map(drop)
            }
            Auth::ScramSha256 => self.scram(connection, Hash::Sha256),
            Auth::ScramSha512 => self.scram(connection, Hash::Sha512),
            _ => Ok(()),
        }
    }

    fn scram(&self, connection: &mut Connection, hash: Hash) -> Result<(), String> {
        handshake(connection, hash.mechanism())?;
        let named = |error, connection: &Connection| connection.named(error);
        let mut scram = Scram::new(hash, &self.user).map_err(|error| named(error, connection))?;
        let challenge = authenticate(connection, &scram.first())?;
        let proof = scram
            .last(&challenge, &self.password)
            .map_err(|error| named(error, connection))?;
        let last = authenticate(connection, &proof)?;
        scram
            .verify(&last)
            .map_err(|error| named(error, connection))
    }
}

fn handshake(connection: &mut Connection, mechanism: &str) -> Result<(), String> {
    let mut body = Out::default();
    body.text(mechanism);
    let answer = connection.ask(api::SASL_HANDSHAKE, &body.0)?;
    match In(&answer).i16() {
        Ok(0) => Ok(()),
        Ok(_) => Err(connection.named(format!(
            "the listener does not offer {mechanism}; set another `auth`, or enable it there \
             (sasl.enabled.mechanisms)"
        ))),
        Err(garbage) => Err(connection.named(garbage)),
    }
}

fn authenticate(connection: &mut Connection, message: &[u8]) -> Result<Vec<u8>, String> {
    let mut body = Out::default();
    body.bytes(message);
    let answer = connection.ask(api::SASL_AUTHENTICATE, &body.0)?;
    let (error, why, data) = read(&answer).map_err(|garbage| connection.named(garbage))?;
    match error {
        0 => Ok(data.to_vec()),
        _ => Err(connection.named(format!(
            "authentication: {why} (error {error}); check user and secret_file"
        ))),
    }
}

fn read(answer: &[u8]) -> Result<(i16, &str, &[u8]), Garbage> {
    let mut answer = In(answer);
    Ok((answer.i16()?, answer.text()?, answer.bytes()?))
}
