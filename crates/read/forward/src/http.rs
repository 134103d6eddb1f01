//! HTTP/1.1: POST over one connection that is kept.

use std::fmt;
use std::io::{self, Read, Write};

use crate::config::Config;
use crate::net::{closed, Connector, Stream};

/// Largest head and largest body of an answer that are read, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
const BODY_BYTES_MAX: usize = 4 << 20;
const HEADERS_MAX: usize = 64;

/// Destination of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    is_https: bool,
    /// `HOST:PORT`.
    server: String,
    path: String,
}

impl Url {
    /// Reads `http://HOST[:PORT][/PATH]`. Without a path, `default_path`.
    pub(crate) fn parse(text: &str, default_path: &str) -> Result<Url, String> {
        let bad = || format!("server = {text}; expected http://HOST:4318 or https://…");
        let (is_https, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(bad()),
        };
        let (server, path) = match rest.find('/') {
            Some(at) if rest.len() > at + 1 => (&rest[..at], &rest[at..]),
            Some(at) => (&rest[..at], default_path),
            None => (rest, default_path),
        };
        if server.is_empty() || server.contains(['@', ' ']) {
            return Err(bad());
        }

        let has_port = server
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if is_https { 443 } else { 80 };
        Ok(Url {
            is_https,
            server: if has_port {
                server.to_owned()
            } else {
                format!("{server}:{port}")
            },
            path: path.to_owned(),
        })
    }
}

impl Url {
    pub(crate) fn is_https(&self) -> bool {
        self.is_https
    }

    /// `HOST:PORT`.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.server, self.path)
    }
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Content-Type in lower case, without parameters; empty if the answer has none.
    pub(crate) content_type: String,
    /// Retry-After, as it stands.
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// A client of one URL.
pub(crate) struct Client {
    connector: Connector,
    url: Url,
    stream: Option<Stream>,
}

impl Client {
    pub(crate) fn new(config: &Config, url: Url) -> Result<Client, String> {
        Ok(Client {
            connector: Connector::new(config, url.is_https)?,
            url,
            stream: None,
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Posts `body` and reads the answer. A kept connection that the server has closed meanwhile is
    /// an error: the caller sends again.
    pub(crate) fn post(&mut self, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connector.connect(&self.url.server)?,
        };
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n",
            self.url.path, self.url.server
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }

        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        stream.begin();
        let (answer, is_kept) =
            exchange(&mut stream, head.as_bytes(), body).map_err(|error| self.named(error))?;
        if is_kept {
            self.stream = Some(stream);
        }

        Ok(answer)
    }

    fn named(&self, error: io::Error) -> io::Error {
        let error = closed(error);
        io::Error::new(error.kind(), format!("{}: {error}", self.url))
    }
}

fn exchange(
    stream: &mut (impl Read + Write),
    head: &[u8],
    body: &[u8],
) -> io::Result<(Answer, bool)> {
    stream.write_all(head)?;
    stream.write_all(body)?;
    stream.flush()?;
    read_answer(stream)
}

/// Reads an answer, and whether the connection stays.
fn read_answer(stream: &mut impl Read) -> io::Result<(Answer, bool)> {
    let mut text = Vec::new();
    let head = loop {
        if let Some(end) = memchr::memmem::find(&text, b"\r\n\r\n") {
            break end + 4;
        }
        if text.len() > HEAD_BYTES_MAX || more(stream, &mut text)? == 0 {
            return Err(garbage());
        }
    };

    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    parsed.parse(&text[..head]).map_err(|_| garbage())?;
    let status = parsed.code.ok_or_else(garbage)?;
    let header = |name: &str| {
        let mut all = parsed.headers.iter();
        let found = all.find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| String::from_utf8_lossy(header.value).to_ascii_lowercase())
    };
    let is_kept = parsed.version == Some(1) && header("connection").is_none_or(|v| v != "close");
    let is_chunked = header("transfer-encoding").is_some_and(|v| v.contains("chunked"));
    let length = header("content-length").and_then(|v| v.parse::<usize>().ok());
    let media_type = |value: String| {
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };

    let content_type = header("content-type").map(media_type).unwrap_or_default();
    let mut values = parsed.headers.iter();
    let retry_after = values.find(|header| header.name.eq_ignore_ascii_case("retry-after"));
    let retry_after =
        retry_after.map(|header| String::from_utf8_lossy(header.value).trim().to_owned());
    let mut rest = text.split_off(head);
    let (body, is_kept) = match (is_chunked, length) {
        (true, _) => (chunked(stream, rest)?, is_kept),
        (false, Some(length)) if length <= BODY_BYTES_MAX => {
            while rest.len() < length {
                if more(stream, &mut rest)? == 0 {
                    return Err(garbage());
                }
            }
            rest.truncate(length);
            (rest, is_kept)
        }
        (false, Some(_)) => return Err(garbage()),
        (false, None) if status == 204 => (Vec::new(), is_kept),
        (false, None) => {
            while rest.len() <= BODY_BYTES_MAX && more(stream, &mut rest)? > 0 {}
            (rest, false)
        }
    };

    let answer = Answer {
        status,
        content_type,
        retry_after,
        body,
    };
    Ok((answer, is_kept))
}

/// Reads a chunked body.
fn chunked(stream: &mut impl Read, mut rest: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let (start, size) = loop {
            match httparse::parse_chunk_size(&rest) {
                Ok(httparse::Status::Complete(found)) => break found,
                Ok(httparse::Status::Partial) if rest.len() < HEAD_BYTES_MAX => {
                    if more(stream, &mut rest)? == 0 {
                        return Err(garbage());
                    }
                }
                _ => return Err(garbage()),
            }
        };
        let size = usize::try_from(size).map_err(|_| garbage())?;
        if size > BODY_BYTES_MAX || body.len() + size > BODY_BYTES_MAX {
            return Err(garbage());
        }
        while rest.len() < start + size + 2 {
            if more(stream, &mut rest)? == 0 {
                return Err(garbage());
            }
        }
        body.extend_from_slice(&rest[start..start + size]);
        rest.drain(..start + size + 2);
        if size == 0 {
            return Ok(body);
        }
    }
}

fn more(stream: &mut impl Read, text: &mut Vec<u8>) -> io::Result<usize> {
    let mut block = [0; 8192];
    loop {
        match stream.read(&mut block) {
            Ok(count) => {
                text.extend_from_slice(&block[..count]);
                return Ok(count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn garbage() -> io::Error {
    let text = "the answer is cut or not of HTTP/1.1; check `server`";
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused() {
        let text = |url: &str| Url::parse(url, "/v1/logs").map(|url| url.to_string());
        assert_eq!(text("http://a:4318"), Ok("http://a:4318/v1/logs".into()));
        assert_eq!(text("https://a/x"), Ok("https://a:443/x".into()));
        assert!(text("a:4318").is_err() && text("http://").is_err());
    }

    #[test]
    fn answers_of_every_form_are_read() {
        let read = |text: &str| read_answer(&mut text.as_bytes());
        let (answer, is_kept) =
            read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("an answer");
        assert_eq!(
            (answer.status, &answer.body[..], is_kept),
            (200, &b"ok"[..], true)
        );
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(read(chunks).expect("an answer").0.body, b"abc");
        let (answer, is_kept) = read("HTTP/1.0 503 No\r\n\r\nlater").expect("an answer");
        assert_eq!(
            (answer.status, &answer.body[..], is_kept),
            (503, &b"later"[..], false)
        );
        for bad in [
            "",
            "garbage",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
