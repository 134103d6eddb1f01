//! NATS' client protocol: lines of text, and payloads of known length.

use std::io::{self, Read, Write};

use serde_json::Value;

use crate::net::{closed, Connector, Stream};

/// Longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Largest payload that is read, in bytes: a batch that was published, in base64.
const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// Number of messages that are skipped while one is waited for.
const SKIPPED_MAX: u32 = 10_000;

/// An answer to a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// Status in the headers; 503: nobody listens.
    pub(super) status: Option<u16>,
    /// The payload.
    pub(super) body: Vec<u8>,
}

/// Content of a line from the server.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// `INFO {…}`.
    Info(&'a str),
    /// `MSG` or `HMSG`: subject, bytes of headers, bytes in all.
    Message(&'a str, usize, usize),
    /// `PING`.
    Ping,
    /// `PONG` or `+OK`.
    Nothing,
    /// `-ERR '…'`.
    Error(&'a str),
}

/// Reads a line without its end. `None` if it is not of NATS.
pub fn parse_line(line: &[u8]) -> Option<Line<'_>> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let size = |word: &&str| word.parse().ok().filter(|size| *size <= PAYLOAD_BYTES_MAX);
    match &verb.to_ascii_uppercase()[..] {
        "INFO" => Some(Line::Info(rest)),
        "PING" => Some(Line::Ping),
        "PONG" | "+OK" => Some(Line::Nothing),
        "-ERR" => Some(Line::Error(rest.trim_matches('\''))),
        "MSG" if matches!(words.len(), 3 | 4) => {
            Some(Line::Message(words[0], 0, size(words.last()?)?))
        }
        "HMSG" if matches!(words.len(), 4 | 5) => {
            let all = size(words.last()?)?;
            let head = size(&words[words.len() - 2])?;
            (head <= all).then_some(Line::Message(words[0], head, all))
        }
        _ => None,
    }
}

/// A connection.
pub(super) struct Client {
    server: String,
    stream: Stream,
    buffer: Vec<u8>,
    inbox: String,
    number: u64,
    pub(super) max_payload: usize,
}

impl Client {
    /// Connects to `server`. `options` gives the CONNECT options for the server's nonce.
    pub(super) fn connect(
        connector: &Connector,
        server: &str,
        options: impl FnOnce(&str) -> io::Result<Value>,
    ) -> io::Result<Client> {
        let mut tcp = connector.tcp(server)?;
        // The greeting comes before TLS.
        let info = greeting(&mut tcp).map_err(closed)?;
        if info["tls_required"].as_bool() == Some(true) && !connector.uses_tls() {
            return Err(bad("the server demands TLS; set tls = yes"));
        }
        let stream = connector.secure(tcp, server)?;
        let nonce = info["nonce"].as_str().unwrap_or("").to_owned();
        let mut random = [0; 12];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)
            .map_err(|_| bad("no random bytes"))?;

        let mut client = Client {
            server: server.to_owned(),
            stream,
            buffer: Vec::new(),
            inbox: format!("_INBOX.{}", base32(&random)),
            number: 0,
            max_payload: info["max_payload"].as_u64().unwrap_or(1 << 20) as usize,
        };

        let options = options(&nonce)?;
        let hello = format!("CONNECT {options}\r\nSUB {}.* 1\r\nPING\r\n", client.inbox);
        client.stream.write_all(hello.as_bytes())?;
        client.stream.flush()?;
        client.expect_pong()?;

        Ok(client)
    }

    /// `error` with the name of the server.
    pub(super) fn named(&self, error: impl std::fmt::Display) -> String {
        format!("{}: {error}", self.server)
    }

    fn expect_pong(&mut self) -> io::Result<()> {
        for _ in 0..SKIPPED_MAX {
            let line = self.line()?;
            match parse_line(&line).ok_or_else(|| garbage(&line))? {
                Line::Nothing => return Ok(()),
                Line::Error(why) => return Err(refused(why)),
                _ => {}
            }
        }
        Err(bad("the server does not stop talking"))
    }

    /// Publishes and waits for the answer.
    pub(super) fn request(
        &mut self,
        subject: &str,
        headers: &str,
        body: &[u8],
    ) -> io::Result<Reply> {
        self.number += 1;
        self.stream.begin();
        let reply_to = format!("{}.{}", self.inbox, self.number);
        let head = match headers.len() {
            0 => format!("PUB {subject} {reply_to} {}\r\n", body.len()),
            length => format!(
                "HPUB {subject} {reply_to} {length} {}\r\n{headers}",
                length + body.len()
            ),
        };

        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        message.extend_from_slice(b"\r\n");
        self.stream.write_all(&message)?;
        self.stream.flush()?;

        for _ in 0..SKIPPED_MAX {
            let line = self.line()?;
            match parse_line(&line).ok_or_else(|| garbage(&line))? {
                Line::Message(to, head, all) => {
                    let (is_ours, payload) = (to == reply_to, self.take(all + 2)?);
                    if is_ours {
                        return Ok(Reply {
                            status: status(&payload[..head]),
                            body: payload[head..all].to_vec(),
                        });
                    }
                }
                Line::Ping => self.stream.write_all(b"PONG\r\n")?,
                Line::Error(why) => return Err(refused(why)),
                Line::Info(_) | Line::Nothing => {}
            }
        }

        Err(bad("the server does not stop talking"))
    }

    /// The next line, without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(line[..end].to_vec());
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(garbage(&self.buffer));
            }
            self.fill()?;
        }
    }

    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            self.fill()?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut block = [0; 16 << 10];
        match self.stream.read(&mut block) {
            Ok(0) => Err(closed(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                self.buffer.extend_from_slice(&block[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(closed(error)),
        }
    }
}

/// Reads the greeting byte by byte, so that nothing of TLS is taken.
fn greeting(stream: &mut impl Read) -> io::Result<Value> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LINE_BYTES_MAX {
        stream.read_exact(&mut byte)?;
        if byte[0] == b'\n' {
            break;
        }
        line.push(byte[0]);
    }

    match parse_line(&line) {
        Some(Line::Info(text)) => serde_json::from_str(text).map_err(|_| garbage(&line)),
        _ => Err(garbage(&line)),
    }
}

/// The status of `NATS/1.0 503`.
fn status(headers: &[u8]) -> Option<u16> {
    let first = headers.split(|byte| *byte == b'\r').next()?;
    let text = std::str::from_utf8(first).ok()?;
    text.strip_prefix("NATS/1.0 ")?
        .split(' ')
        .next()?
        .parse()
        .ok()
}

fn bad(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

fn refused(why: &str) -> io::Error {
    bad(&format!(
        "the server says {why:?}; check auth, user and secret_file"
    ))
}

fn garbage(line: &[u8]) -> io::Error {
    let start = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
    bad(&format!(
        "the answer is not of NATS: {start:?}; check `server`"
    ))
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Base 32 of RFC 4648 without padding.
pub(super) fn base32(bytes: &[u8]) -> String {
    let mut text = String::new();
    let (mut value, mut bits) = (0_u32, 0);
    for byte in bytes {
        value = value << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(BASE32[(value >> bits & 31) as usize]));
        }
        value &= (1 << bits) - 1;
    }

    if bits > 0 {
        text.push(char::from(BASE32[(value << (5 - bits) & 31) as usize]));
    }
    text
}

pub(super) fn unbase32(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut value, mut bits) = (0_u32, 0);
    for letter in text.bytes() {
        let digit = BASE32.iter().position(|each| *each == letter)?;
        value = value << 5 | digit as u32;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((value >> bits) as u8);
        }
        value &= (1 << bits) - 1;
    }
    Some(bytes)
}

/// CRC-16 of XMODEM, which nkeys end with.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| match sum & 0x8000 {
            0 => sum << 1,
            _ => sum << 1 ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_or_refused() {
        assert_eq!(
            parse_line(b"MSG a.b 1 12\r"),
            Some(Line::Message("a.b", 0, 12))
        );
        assert_eq!(
            parse_line(b"HMSG a 1 r 5 12"),
            Some(Line::Message("a", 5, 12))
        );
        assert_eq!(parse_line(b"-ERR 'No'"), Some(Line::Error("No")));
        for line in [
            &b"MSG"[..],
            b"MSG a 1 x",
            b"HMSG a 1 9 3",
            b"HTTP/1.1 200 OK",
            b"\xff",
        ] {
            assert_eq!(parse_line(line), None);
        }
        assert_eq!(status(b"NATS/1.0 503\r\n\r\n"), Some(503));
    }

    #[test]
    fn base32_and_its_checksum_are_those_of_the_standards() {
        assert_eq!(base32(b"foobar"), "MZXW6YTBOI");
        assert_eq!(unbase32("MZXW6YTBOI").as_deref(), Some(&b"foobar"[..]));
        assert_eq!(unbase32("a"), None);
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }
}
