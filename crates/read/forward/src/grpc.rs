//! gRPC: unary calls over one HTTP/2 connection that is kept.
//!
//! Source: grpc's doc/PROTOCOL-HTTP2.md. An answer is one message and `grpc-status`; anything else is an error that
//! quotes what came. The runtime runs only during a call, on the thread that calls.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use flate2::read::GzDecoder;
use h2::client::SendRequest;
use h2::RecvStream;
use http::header::{HeaderMap, HeaderName, HeaderValue, CONTENT_TYPE};
use http::{Request, Response};
use tokio::runtime::Runtime;

use crate::config::Config;
use crate::http::Url;
use crate::net::{Connector, HttpIo};

/// Largest answer that is read, in bytes, before and after decompression.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;
/// Bytes of a foreign answer that an error quotes.
const QUOTED_BYTES: usize = 200;
/// Time after which a kept connection may be closed, and time to notice it.
const IDLE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);
/// Base64 of binary headers comes with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Answer of a server that speaks gRPC.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// `grpc-status` 0, and the message.
    Message(Vec<u8>),
    /// Another status.
    Status(CallStatus),
}

/// How a call failed, in the server's words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallStatus {
    pub(crate) code: u32,
    /// `grpc-message`, decoded.
    pub(crate) message: String,
    /// `grpc-status-details-bin`: a google.rpc.Status.
    pub(crate) details: Vec<u8>,
}

/// A client of one method.
pub(crate) struct Client {
    runtime: Runtime,
    connector: Connector,
    url: Url,
    timeout: Duration,
    /// Sends requests over the connection, which a task of the runtime drives; and when it was used last.
    requests: Option<(SendRequest<Bytes>, Instant)>,
}

/// A request: its metadata, and the message.
pub(crate) struct Call<'c> {
    pub(crate) metadata: &'c [(String, String)],
    pub(crate) message: &'c [u8],
    /// Whether the message is compressed by gzip.
    pub(crate) is_gzip: bool,
}

impl Client {
    /// A client of the method that the URL's path names.
    pub(crate) fn new(config: &Config, url: Url) -> Result<Client, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Ok(Client {
            runtime: runtime.map_err(|error| format!("cannot wait for network events: {error}"))?,
            connector: Connector::new(config, url.is_https())?,
            url,
            timeout: config.timeout,
            requests: None,
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Calls the method. After an error the connection is closed, and it is not known whether the server took the call.
    pub(crate) fn call(&mut self, call: &Call<'_>) -> io::Result<Answer> {
        let request = self.request(call)?;
        let body = framed(call);
        let requests = self.ready()?;
        let exchange =
            async { tokio::time::timeout(self.timeout, exchange(&requests, request, body)).await };

        let answer = match self.runtime.block_on(exchange) {
            Ok(answer) => answer,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "no answer within {} s (timeout); the server is overloaded, or does not speak gRPC",
                    self.timeout.as_secs_f64()
                ),
            )),
        };
        if answer.is_ok() {
            self.requests = Some((requests, Instant::now()));
        }

        answer.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.url)))
    }

    /// A connection that takes a request: the kept one, unless the server has closed it meanwhile.
    fn ready(&mut self) -> io::Result<SendRequest<Bytes>> {
        if let Some((kept, used)) = self.requests.take() {
            let ready = async {
                if used.elapsed() > IDLE {
                    // What came meanwhile is read: perhaps the end of the connection.
                    tokio::time::sleep(LOOK).await;
                }
                tokio::time::timeout(self.timeout, kept.ready()).await
            };
            if let Ok(Ok(requests)) = self.runtime.block_on(ready) {
                return Ok(requests);
            }
        }

        let (connector, url, timeout) = (&self.connector, &self.url, self.timeout);
        let connect = async {
            let io = connector.connect_http2(url.server(), timeout).await?;
            let shaken = tokio::time::timeout(timeout, h2::client::handshake::<HttpIo>(io)).await;
            let (requests, connection) = shaken
                .map_err(io::Error::other)?
                .map_err(|error| foreign(&error))?;
            // An error of the connection is one of the requests on it, too.
            tokio::spawn(async {
                let _ = connection.await;
            });
            requests.ready().await.map_err(|error| foreign(&error))
        };
        self.runtime.block_on(connect)
    }

    fn request(&self, call: &Call<'_>) -> io::Result<Request<()>> {
        let mut request = Request::post(self.url.to_string())
            .header(CONTENT_TYPE, "application/grpc")
            .header("te", "trailers")
            .header("grpc-accept-encoding", "gzip")
            .header("grpc-timeout", format!("{}m", self.timeout.as_millis()));
        if call.is_gzip {
            request = request.header("grpc-encoding", "gzip");
        }
        let mut request = request.body(()).map_err(io::Error::other)?;

        for (name, value) in call.metadata {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(io::Error::other)?;
            let value = HeaderValue::from_str(value).map_err(io::Error::other)?;
            request.headers_mut().append(name, value);
        }
        Ok(request)
    }
}

/// The message with its prefix.
fn framed(call: &Call<'_>) -> Bytes {
    let mut body = Vec::with_capacity(PREFIX_BYTES + call.message.len());
    body.push(u8::from(call.is_gzip));
    body.extend_from_slice(&(call.message.len() as u32).to_be_bytes());
    body.extend_from_slice(call.message);
    body.into()
}

async fn exchange(
    requests: &SendRequest<Bytes>,
    request: Request<()>,
    body: Bytes,
) -> io::Result<Answer> {
    let mut requests = requests.clone();
    let (response, mut stream) = requests
        .send_request(request, false)
        .map_err(|error| foreign(&error))?;
    // A server may answer before it has read all, and reset the rest: its answer counts.
    let sent = stream.send_data(body, true);
    let response = match (response.await, sent) {
        (Ok(response), _) => response,
        (Err(error), _) => return Err(foreign(&error)),
    };

    let (parts, body) = response.into_parts();
    let head = Response::from_parts(parts, ());
    let read = read(body).await;
    let (bytes, trailers) = match read {
        Ok(read) => read,
        // The head alone may say what is wrong.
        Err(error) if is_grpc(&head) => return Err(error),
        Err(_) => (Vec::new(), None),
    };

    answer(&head, &bytes, trailers.as_ref())
}

/// Reads the body and the trailers.
async fn read(mut body: RecvStream) -> io::Result<(Vec<u8>, Option<HeaderMap>)> {
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.map_err(|error| foreign(&error))?;
        if bytes.len() + data.len() > ANSWER_BYTES_MAX {
            return Err(bad(&format!(
                "the answer has more than {ANSWER_BYTES_MAX} bytes"
            )));
        }
        bytes.extend_from_slice(&data);
        body.flow_control()
            .release_capacity(data.len())
            .map_err(|error| foreign(&error))?;
    }

    let trailers = body.trailers().await.map_err(|error| foreign(&error))?;
    Ok((bytes, trailers))
}

/// What an answer says.
fn answer(head: &Response<()>, body: &[u8], trailers: Option<&HeaderMap>) -> io::Result<Answer> {
    // Without a message, the status stands in the head.
    let heads = [trailers, Some(head.headers())];
    let header = |name: &str| {
        let mut all = heads.into_iter().flatten();
        all.find_map(|headers| headers.get(name))
    };
    if head.status() != 200 || !is_grpc(head) {
        return Err(other_protocol(head, body));
    }
    let Some(status) = header("grpc-status") else {
        return Err(bad("the answer has no grpc-status: it was cut"));
    };

    let code = status.to_str().ok().and_then(|text| text.parse().ok());
    match code {
        Some(0) => message(head, body).map(Answer::Message),
        Some(code) => Ok(Answer::Status(CallStatus {
            code,
            message: header("grpc-message").map_or(String::new(), percent_decoded),
            details: header("grpc-status-details-bin")
                .and_then(|value| BASE64.decode(value.as_bytes()).ok())
                .unwrap_or_default(),
        })),
        None => Err(bad(&format!("grpc-status {status:?} is no number"))),
    }
}

fn is_grpc(head: &Response<()>) -> bool {
    let kind = head.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or("");
    let rest = kind.strip_prefix("application/grpc");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// The only message of a body.
fn message(head: &Response<()>, body: &[u8]) -> io::Result<Vec<u8>> {
    let Some((prefix, rest)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(bad("the answer has no message, although its status is OK"));
    };
    let [flag, a, b, c, d] = *prefix;
    let length = u32::from_be_bytes([a, b, c, d]);
    if rest.len() as u64 != u64::from(length) {
        return Err(bad(&format!(
            "the answer has {} bytes after a length of {length}: it was cut, or has more than one message",
            rest.len()
        )));
    }

    let encoding = head.headers().get("grpc-encoding");
    match (flag, encoding.map(HeaderValue::as_bytes)) {
        (0, _) => Ok(rest.to_vec()),
        (1, Some(b"gzip")) => {
            let mut message = Vec::new();
            let mut decoder = GzDecoder::new(rest).take(ANSWER_BYTES_MAX as u64 + 1);
            decoder.read_to_end(&mut message)?;
            if message.len() > ANSWER_BYTES_MAX {
                return Err(bad(&format!(
                    "the answer has more than {ANSWER_BYTES_MAX} bytes"
                )));
            }
            Ok(message)
        }
        (flag, encoding) => Err(bad(&format!(
            "a message with the flag {flag} and grpc-encoding {:?} cannot be read; expected none or gzip",
            encoding.map(String::from_utf8_lossy)
        ))),
    }
}

/// `%XX` decoded; what is no such thing stays.
fn percent_decoded(value: &HeaderValue) -> String {
    let (mut rest, mut out) = (value.as_bytes(), Vec::new());
    while let Some((&byte, after)) = rest.split_first() {
        let code = if byte == b'%' { after.get(..2) } else { None };
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &after[2..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// An answer of HTTP that is none of gRPC.
fn other_protocol(head: &Response<()>, body: &[u8]) -> io::Error {
    let kind = head.headers().get(CONTENT_TYPE);
    let kind = kind.map_or("none".into(), |kind| format!("{kind:?}"));
    bad(&format!(
        "the answer is not one of gRPC: HTTP status {}, Content-Type {kind}, {:?}; nothing counts as sent; check `server`, \
         `otlp_protocol`, and proxies before it",
        head.status().as_u16(),
        String::from_utf8_lossy(&body[..body.len().min(QUOTED_BYTES)])
    ))
}

/// An error of HTTP/2, or of the connection below it.
fn foreign(error: &h2::Error) -> io::Error {
    if let Some(error) = error.get_io() {
        let closed = io::Error::new(error.kind(), error.to_string());
        return crate::net::closed(closed);
    }
    bad(&format!(
        "{error}; does the server speak gRPC at this port (usually 4317)?"
    ))
}

fn bad(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
