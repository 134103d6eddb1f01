//! NATS JetStream: exactly once, by the sequence of the last message of the host's subject.
//!
//! A batch is one message. It is published on the condition that the last message of the subject is
//! the one before it; a repetition is refused, and the last message then says whether it is this.

mod read_back;
mod wire;

use std::io;

use base64::prelude::{Engine, BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{json, Value};

use super::{retry, secret, state_number, Limits, Receipt, Sink, SinkError};
use crate::batch::{Batch, Kind};
use crate::config::{Auth, Config};
use crate::cursor::SinkState;
use crate::net::Connector;
use wire::{Client, Reply};

pub(super) use read_back::read_back;
pub use wire::parse_line;

const BATCH_BYTES: usize = 512 << 10;
const MESSAGES_MAX: usize = 1 << 14;
const SEQUENCE: &str = "sequence";
const TO_HEADER: &str = "Tarsier-To";
const SERIES_HEADER: &str = "Tarsier-Series";

/// JetStream's codes of errors that are treated apart.
mod code {
    pub(super) const NO_MESSAGE: u64 = 10037;
    pub(super) const NO_RESOURCES: u64 = 10023;
    pub(super) const NO_STORAGE: u64 = 10047;
    pub(super) const TOO_LARGE: u64 = 10054;
    pub(super) const WRONG_LAST: u64 = 10071;
    pub(super) const STORE_FAILED: u64 = 10077;
}

/// The sink.
pub(super) struct Nats {
    connector: Connector,
    servers: Vec<String>,
    subject: String,
    auth: Auth,
    user: String,
    secret: String,
    bytes: usize,
    client: Option<Client>,
}

impl Nats {
    pub(super) fn new(config: &Config, host: &str) -> Result<Nats, SinkError> {
        Ok(Nats {
            connector: Connector::new(config, config.tls).map_err(SinkError::Retry)?,
            servers: config.server.clone(),
            subject: subject_of(&config.subject, host),
            auth: config.auth,
            user: config.user.clone(),
            secret: secret(config).map_err(SinkError::Retry)?,
            bytes: config.batch_bytes.unwrap_or(BATCH_BYTES),
            client: None,
        })
    }

    fn connected(&mut self) -> Result<&mut Client, SinkError> {
        if self.client.is_none() {
            let mut last = retry("no server");
            for server in self.servers.clone() {
                match self.connect(&server) {
                    Ok(client) => {
                        self.client = Some(client);
                        break;
                    }
                    Err(error) => last = SinkError::Retry(named(&server, &error)),
                }
            }
            if self.client.is_none() {
                return Err(last);
            }
        }

        self.client.as_mut().ok_or_else(|| retry("no connection"))
    }

    fn connect(&self, server: &str) -> io::Result<Client> {
        Client::connect(&self.connector, server, |nonce| {
            let mut options = json!({
                "verbose": false, "pedantic": false, "headers": true, "no_responders": true,
                "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "name": "tarsier-forward",
                "protocol": 1, "tls_required": self.connector.uses_tls(),
            });
            match self.auth {
                Auth::Password => {
                    options["user"] = json!(self.user);
                    options["pass"] = json!(self.secret);
                }
                Auth::Token => options["auth_token"] = json!(self.secret),
                Auth::Nkey => {
                    let (public, signature) = sign(&self.secret, nonce)?;
                    options["nkey"] = json!(public);
                    options["sig"] = json!(signature);
                }
                _ => {}
            }
            Ok(options)
        })
    }

    fn ask(&mut self, subject: &str, headers: &str, body: &[u8]) -> Result<Reply, SinkError> {
        let client = self.connected()?;
        let asked = client.request(subject, headers, body);
        let asked = asked.map_err(|error| SinkError::Retry(client.named(error)));
        if asked.is_err() {
            self.client = None;
        }
        asked
    }

    fn ask_json(&mut self, subject: &str, body: &Value) -> Result<Value, SinkError> {
        let reply = self.ask(subject, "", body.to_string().as_bytes())?;
        parse(&reply)
    }

    /// Name of the stream that has the subject.
    fn stream(&mut self) -> Result<String, SinkError> {
        let subject = self.subject.clone();
        let answer = self.ask_json("$JS.API.STREAM.NAMES", &json!({ "subject": subject }))?;
        let name = answer["streams"][0].as_str();
        name.map(str::to_owned).ok_or_else(|| {
            SinkError::Retry(format!(
                "no JetStream stream has the subject {subject:?}; create one: \
                 nats stream add audit --subjects 'audit.*' --storage file"
            ))
        })
    }

    /// Sequence and end of the last message of the subject; zero if there is none.
    fn last(&mut self) -> Result<(u64, Option<String>), SinkError> {
        let stream = self.stream()?;
        let subject = self.subject.clone();
        let api = format!("$JS.API.STREAM.MSG.GET.{stream}");
        let answer = self.ask_json(&api, &json!({ "last_by_subj": subject }))?;
        match answer["error"]["err_code"].as_u64() {
            Some(code::NO_MESSAGE) => return Ok((0, None)),
            Some(_) => return Err(SinkError::Retry(self.explained(&answer["error"]))),
            None => {}
        }

        let sequence = answer["message"]["seq"].as_u64().unwrap_or(0);
        let headers = answer["message"]["hdrs"].as_str().unwrap_or("");
        let headers = BASE64_STANDARD.decode(headers).unwrap_or_default();
        let headers = String::from_utf8_lossy(&headers).into_owned();
        let find = |name: &str| {
            let mut found = headers.lines().filter_map(|line| line.split_once(':'));
            let value = found.find(|(key, _)| *key == name);
            value.map(|(_, value)| value.trim().to_owned())
        };
        let end = find(SERIES_HEADER).zip(find(TO_HEADER));
        Ok((sequence, end.map(|(series, to)| format!("{series}/{to}"))))
    }

    /// Finds out what a refused repetition means.
    fn settle(&mut self, batch: &Batch, state: &mut SinkState) -> Result<Receipt, SinkError> {
        let (sequence, end) = self.last()?;
        let name = |position| format!("{}/{position}", batch.series);
        state.insert(SEQUENCE.into(), sequence.to_string());
        let Some(end) = end else {
            return match sequence {
                // The stream has kept nothing of this subject.
                0 => Err(retry(
                    "the stream is empty; sending again from its beginning",
                )),
                _ => Err(self.foreign(sequence)),
            };
        };

        if end == name(batch.to()) {
            return Ok(Receipt {
                was_there: true,
                ..Receipt::default()
            });
        }

        // A new series begins behind the old one.
        let is_before = end == name(batch.from()) || !end.starts_with(&batch.series.to_string());
        if is_before {
            Err(retry("the sequence was behind; sending again"))
        } else {
            Err(SinkError::Disagreement(format!(
                "the last message of {:?} ends at {end}, not at {}",
                self.subject,
                name(batch.from())
            )))
        }
    }

    /// An error of JetStream in words.
    fn explained(&self, error: &Value) -> String {
        let code = error["err_code"].as_u64().unwrap_or(0);
        let text = error["description"]
            .as_str()
            .unwrap_or("an error without text");
        let remedy = match code {
            code::STORE_FAILED => {
                "; the stream is full (max_bytes, max_msgs) or its disk is: raise the limit or purge the stream; \
                 events wait here until then"
            }
            code::NO_STORAGE | code::NO_RESOURCES => {
                "; JetStream has used up its storage: raise max_file_store; events wait here until then"
            }
            code::TOO_LARGE => "; raise the stream's max_msg_size, or lower batch_bytes",
            _ => "",
        };

        let subject = &self.subject;
        format!("subject {subject:?}: JetStream says {text:?} (error {code}){remedy}")
    }

    fn foreign(&self, sequence: u64) -> SinkError {
        SinkError::Disagreement(format!(
            "message {sequence} of {:?} is not of tarsier-forward; the subject must be this \
             host's alone",
            self.subject
        ))
    }
}

/// The subject of a host. A dot would make several tokens of its name.
fn subject_of(pattern: &str, host: &str) -> String {
    pattern.replace("%h", &host.replace('.', "_"))
}

/// `error` with the server's name before it, unless it has it.
fn named(server: &str, error: &io::Error) -> String {
    let text = error.to_string();
    if text.starts_with(server) {
        text
    } else {
        format!("{server}: {text}")
    }
}

fn parse(reply: &Reply) -> Result<Value, SinkError> {
    if reply.status == Some(503) {
        return Err(retry(
            "JetStream does not answer; is it enabled (nats-server -js), and may this user ask it?",
        ));
    }
    serde_json::from_slice(&reply.body)
        .map_err(|error| SinkError::Retry(format!("JetStream's answer is not JSON: {error}")))
}

/// Headers of a batch: its first message's beginning, its last one's end, and sums.
fn headers(batch: &Batch, expected: u64) -> String {
    let kind = batch
        .messages
        .first()
        .map_or(Kind::Event, |message| message.kind);
    let missing: u64 = batch
        .messages
        .iter()
        .filter(|message| message.kind == Kind::Gap)
        .map(|message| message.events)
        .sum();

    format!(
        "NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: {expected}\r\n\
         {SERIES_HEADER}: {}\r\nTarsier-Host: {}\r\nTarsier-Kind: {}\r\nTarsier-From: {}\r\n\
         {TO_HEADER}: {}\r\nTarsier-Events: {}\r\nTarsier-Filtered: {}\r\nTarsier-Missing: \
         {missing}\r\nContent-Type: {}\r\n\r\n",
        batch.series,
        batch.host,
        kind.name(),
        batch.from(),
        batch.to(),
        batch.events(),
        batch.filtered(),
        batch.content_type,
    )
}

/// The bodies, each followed by a newline; bytes of a seal as they are.
fn body(batch: &Batch) -> Vec<u8> {
    let mut body = Vec::with_capacity(batch.bytes.len() + batch.messages.len());
    for message in &batch.messages {
        body.extend_from_slice(batch.body(message));
        if message.kind != Kind::Seal {
            body.push(b'\n');
        }
    }
    body
}

/// Public key and signature for a server's nonce, from an nkey seed.
fn sign(seed: &str, nonce: &str) -> io::Result<(String, String)> {
    let bad = || {
        let text = "secret_file has no nkey seed of a user; expected SU…, from `nk -gen user`";
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let bytes = wire::unbase32(seed.trim()).ok_or_else(bad)?;

    // Two bytes of prefix, 32 of seed, two of checksum.
    if bytes.len() != 36 || !seed.starts_with("SU") {
        return Err(bad());
    }

    let (checked, sum) = bytes.split_at(34);
    if wire::crc16(checked).to_le_bytes() != sum {
        return Err(bad());
    }

    let key = ring::signature::Ed25519KeyPair::from_seed_unchecked(&bytes[2..34]);
    let key = key.map_err(|_| bad())?;
    use ring::signature::KeyPair;
    /// Prefix of the public key of a user.
    const USER: u8 = 20 << 3;
    let mut public = vec![USER];
    public.extend_from_slice(key.public_key().as_ref());
    public.extend_from_slice(&wire::crc16(&public).to_le_bytes());

    let signature = BASE64_URL_SAFE_NO_PAD.encode(key.sign(nonce.as_bytes()));
    Ok((wire::base32(&public), signature))
}

impl Sink for Nats {
    fn limits(&self) -> Limits {
        let bytes = self.client.as_ref().map_or(self.bytes, |client| {
            // A batch exceeds its size by up to an event, and has headers.
            self.bytes.min(client.max_payload / 8 * 7)
        });
        Limits {
            bytes,
            messages: MESSAGES_MAX,
        }
    }

    fn check(&mut self) -> Result<String, SinkError> {
        self.client = None;
        let stream = self.stream()?;
        let how = self.connector.tls_text();
        let (_, end) = self.last()?;
        let end = end.unwrap_or_else(|| "nothing of this host".into());
        Ok(format!(
            "subject {:?} of stream {stream:?}, {how}: reached and authenticated; it has {end}",
            self.subject
        ))
    }

    fn prepare(&mut self, state: &mut SinkState) -> Result<(), SinkError> {
        if !state.contains_key(SEQUENCE) {
            let (sequence, end) = self.last()?;
            if sequence > 0 && end.is_none() {
                return Err(self.foreign(sequence));
            }
            state.insert(SEQUENCE.into(), sequence.to_string());
        }
        Ok(())
    }

    fn send(
        &mut self,
        batch: &Batch,
        state: &mut SinkState,
        _is_repeated: bool,
    ) -> Result<Receipt, SinkError> {
        let body = body(batch);
        let headers = headers(batch, state_number(state, SEQUENCE));
        if body.len() + headers.len() > self.connected()?.max_payload {
            return Err(SinkError::Refused(format!(
                "a message of {} bytes exceeds the server's max_payload",
                body.len()
            )));
        }

        let subject = self.subject.clone();
        let reply = self.ask(&subject, &headers, &body)?;
        if reply.status == Some(503) {
            return Err(SinkError::Retry(format!(
                "no JetStream stream takes the subject {subject:?}; create one"
            )));
        }

        let answer = parse(&reply)?;
        // An answer with an error has a sequence, too: 0.
        let stored = if answer["error"].is_null() {
            answer["seq"].as_u64()
        } else {
            None
        };
        if let Some(sequence) = stored {
            state.insert(SEQUENCE.into(), sequence.to_string());
            return Ok(Receipt {
                was_there: answer["duplicate"].as_bool().unwrap_or(false),
                ..Receipt::default()
            });
        }

        match answer["error"]["err_code"].as_u64() {
            Some(code::WRONG_LAST) => self.settle(batch, state),
            Some(code::TOO_LARGE) => Err(SinkError::Refused(self.explained(&answer["error"]))),
            _ => Err(SinkError::Retry(self.explained(&answer["error"]))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed that was made for this test, and the public key that Debian's and Go's nk give for it.
    #[test]
    fn seeds_with_an_error_are_refused() {
        for seed in [
            "",
            "SU",
            "SAAG",
            "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VX",
        ] {
            assert!(sign(seed, "nonce").is_err(), "{seed}");
        }
        let mut bytes = vec![18 << 3 | 20 << 3 >> 5, (20 << 3 & 31) << 3];
        bytes.extend_from_slice(&[7; 32]);
        bytes.extend_from_slice(&wire::crc16(&bytes).to_le_bytes());
        let seed = wire::base32(&bytes);
        let (public, _) = sign(&seed, "nonce").expect("a signature");
        assert!(
            seed.starts_with("SU") && public.starts_with('U'),
            "{seed} {public}"
        );
        assert_eq!(public.len(), 56);
    }
}
