//! OTLP by HTTP/1.1.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use super::protobuf::{fields, is_whole, Value};
use super::{Headers, PackedRequest, PAUSE_MAX};
use crate::config::Config;
use crate::http::{Answer, Client, Url};
use crate::sink::SinkError;

/// The transport.
pub(super) struct Http {
    client: Client,
    headers: Headers,
}

impl Http {
    pub(super) fn new(config: &Config, headers: Headers) -> Result<Http, String> {
        let url = config.server.first().map_or("", String::as_str);
        Ok(Http {
            client: Client::new(config, Url::parse(url, "/v1/logs")?)?,
            headers,
        })
    }

    pub(super) fn url(&self) -> &Url {
        self.client.url()
    }

    /// Posts a request. Returns an ExportLogsServiceResponse, in protobuf or JSON.
    pub(super) fn post(&mut self, body: &PackedRequest<'_>) -> Result<Vec<u8>, SinkError> {
        let retry = |error: std::io::Error| SinkError::Retry(error.to_string());
        let mut headers = vec![("Content-Type", "application/x-protobuf")];
        if body.is_gzip {
            headers.push(("Content-Encoding", "gzip"));
        }
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );

        let answer = self.client.post(&headers, body.bytes).map_err(retry)?;
        let text = format!(
            "{}: status {}: {}",
            self.client.url(),
            answer.status,
            said(&answer)
        );

        match answer.status {
            200..=299 => Ok(answer.body).and_then(|body| if is_response(&answer.content_type, &body) { Ok(body) } else { Err(SinkError::Retry(format!(
                    "{text}: the answer (Content-Type {:?}) is not one of OTLP, so nothing counts as sent; check `server`, \
                     and proxies and login pages before it",
                    answer.content_type
                ))) }),
            400 | 413 | 415 | 422 => Err(SinkError::Refused(text)),
            401 | 403 => Err(SinkError::Retry(format!(
                "{text}; check auth and secret_file, or the headers"
            ))),
            404 | 405 => Err(SinkError::Retry(format!(
                "{text}; check the path in `server`"
            ))),
            300..=399 => Err(SinkError::Retry(format!(
                "{text}; redirections are not followed: set `server` to where it leads"
            ))),
            _ => Err(match pause(answer.retry_after.as_deref(), SystemTime::now()) {
                Some(pause) => SinkError::RetryAfter {
                    why: format!("{text}; the server asks for {} s", pause.as_secs()),
                    pause,
                },
                None => SinkError::Retry(text),
            }),
        }
    }
}

/// The pause that Retry-After asks for, in seconds or as a date (RFC 9110, 10.2.3), up to [`PAUSE_MAX`].
pub(super) fn pause(retry_after: Option<&str>, now: SystemTime) -> Option<Duration> {
    let text = retry_after?;
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(text).ok()?;
            let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
            u64::try_from(date.timestamp().as_second())
                .ok()?
                .saturating_sub(now)
        }
    };

    Some(Duration::from_secs(seconds).min(PAUSE_MAX))
}

/// What a server says in an answer that is no success: the message of google.rpc.Status, else the beginning of the body.
fn said(answer: &Answer) -> String {
    let is_message = |field: &(u64, Value<'_>)| field.0 == 2;
    let message = if is_protobuf(&answer.content_type) {
        fields(&answer.body).find(is_message)
    } else {
        None
    };
    let bytes = match message {
        Some((_, Value::Bytes(text))) => text,
        _ => &answer.body[..],
    };

    format!(
        "{:?}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
    )
}

fn is_protobuf(content_type: &str) -> bool {
    matches!(
        content_type,
        "application/x-protobuf" | "application/protobuf" | "application/vnd.google.protobuf"
    )
}

/// Whether a body is an ExportLogsServiceResponse. An empty one is, whatever its type: all its fields are optional.
fn is_response(content_type: &str, body: &[u8]) -> bool {
    if body.is_empty() {
        return true;
    }
    match content_type {
        "application/json" => match serde_json::from_slice(body) {
            Ok(Json::Object(object)) => object.keys().all(|name| name == "partialSuccess"),
            _ => false,
        },
        "" | "application/octet-stream" => is_whole(body),
        kind => is_protobuf(kind) && is_whole(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_response_of_otlp_counts_as_one() {
        let response = [0x0a, 0x04, 0x08, 0x02, 0x12, 0x00];
        for (kind, body, is) in [
            ("application/x-protobuf", &b""[..], true),
            ("", b"", true),
            ("application/x-protobuf", &response, true),
            ("application/octet-stream", &response, true),
            ("application/json", b"{}", true),
            ("application/json", br#"{"partialSuccess":{}}"#, true),
            ("application/json", br#"{"error":"unauthenticated"}"#, false),
            ("text/html", b"<html>log in</html>", false),
            ("", b"<html>log in</html>", false),
            ("application/x-protobuf", b"<html>log in</html>", false),
            ("application/x-protobuf", &response[..3], false),
            ("text/plain", b"ok", false),
        ] {
            assert_eq!(is_response(kind, body), is, "{kind} {body:?}");
        }
    }

    #[test]
    fn a_pause_is_read_in_seconds_and_as_a_date_and_has_a_limit() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text| pause(Some(text), now).map(|pause| pause.as_secs());
        assert_eq!(read("5"), Some(5));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(read("99999999999"), Some(600));
        assert_eq!(read("soon"), None);
        assert_eq!(pause(None, now), None);
    }
}
