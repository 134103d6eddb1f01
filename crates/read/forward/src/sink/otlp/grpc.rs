//! OTLP by gRPC.

use std::time::Duration;

use super::protobuf::{fields, is_whole, Value};
use super::{Headers, PackedRequest, PAUSE_MAX};
use crate::config::Config;
use crate::grpc::{Answer, Call, CallStatus, Client};
use crate::http::Url;
use crate::sink::SinkError;

/// Path of the method that takes logs.
const METHOD: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// What becomes of a batch after a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It is sent again.
    Again,
    /// It is sent again if the server says by RetryInfo that it recovers.
    AgainIfAsked,
    /// The server does not take these events.
    Refused,
    /// The configuration is wrong, which is no fault of the events: they wait until it is mended.
    Mend(&'static str),
}

use Then::{Again, AgainIfAsked, Mend, Refused};

const CREDENTIALS: &str = "check auth and secret_file, or the headers";
const SERVICE: &str = "the server has no receiver of OTLP logs; check `server`";

/// Statuses by their codes from 1, and whether the OTLP specification has the request sent again after them. Those of wrong
/// credentials or a wrong server it would give up.
const STATUSES: [(&str, Then); 16] = [
    ("CANCELLED", Again),
    ("UNKNOWN", Refused),
    ("INVALID_ARGUMENT", Refused),
    ("DEADLINE_EXCEEDED", Again),
    ("NOT_FOUND", Mend(SERVICE)),
    ("ALREADY_EXISTS", Refused),
    ("PERMISSION_DENIED", Mend(CREDENTIALS)),
    ("RESOURCE_EXHAUSTED", AgainIfAsked),
    ("FAILED_PRECONDITION", Refused),
    ("ABORTED", Again),
    ("OUT_OF_RANGE", Again),
    ("UNIMPLEMENTED", Mend(SERVICE)),
    ("INTERNAL", Refused),
    ("UNAVAILABLE", Again),
    ("DATA_LOSS", Again),
    ("UNAUTHENTICATED", Mend(CREDENTIALS)),
];

/// The transport.
pub(super) struct Grpc {
    client: Client,
    metadata: Headers,
}

impl Grpc {
    pub(super) fn new(config: &Config, metadata: Headers) -> Result<Grpc, String> {
        let text = config.server.first().map_or("", String::as_str);
        let url = Url::parse(text, METHOD)?;
        if url.path() != METHOD {
            return Err(format!(
                "server = {text}: a path, which gRPC has of its own; expected http://HOST:4317 or https://…"
            ));
        }

        Ok(Grpc {
            client: Client::new(config, url)?,
            metadata,
        })
    }

    pub(super) fn url(&self) -> &Url {
        self.client.url()
    }

    /// Calls the method. Returns an ExportLogsServiceResponse in protobuf.
    pub(super) fn post(&mut self, body: &PackedRequest<'_>) -> Result<Vec<u8>, SinkError> {
        let retry = |error: std::io::Error| SinkError::Retry(error.to_string());
        let call = Call {
            metadata: &self.metadata,
            message: body.bytes,
            is_gzip: body.is_gzip,
        };

        match self.client.call(&call).map_err(retry)? {
            Answer::Message(message) if is_whole(&message) => Ok(message),
            Answer::Message(_) => Err(SinkError::Retry(format!(
                "{}: the answer's message is not one of OTLP, so nothing counts as sent; check `server`",
                self.url()
            ))),
            Answer::Status(status) => Err(after(&status, &self.url().to_string())),
        }
    }
}

/// What follows from a status.
fn after(status: &CallStatus, url: &str) -> SinkError {
    let place = (status.code as usize).checked_sub(1);
    let (name, then) = place
        .and_then(|place| STATUSES.get(place))
        .copied()
        // A code that gRPC does not have counts as UNKNOWN.
        .unwrap_or(("UNKNOWN", Refused));
    let text = format!(
        "{url}: status {name} ({}): {:?}",
        status.code, status.message
    );

    let pause = retry_delay(&status.details).map(|pause| pause.min(PAUSE_MAX));
    match (then, pause) {
        (Again | AgainIfAsked, Some(pause)) => SinkError::RetryAfter {
            why: format!("{text}; the server asks for {} s", pause.as_secs_f64()),
            pause,
        },
        (Again, None) => SinkError::Retry(text),
        (Refused | AgainIfAsked, _) => SinkError::Refused(text),
        (Mend(remedy), _) => SinkError::Retry(format!("{text}; {remedy}")),
    }
}

/// The delay of the google.rpc.RetryInfo among the details of a google.rpc.Status.
fn retry_delay(details: &[u8]) -> Option<Duration> {
    let inner = |bytes, number| {
        fields(bytes).find_map(move |field| match field {
            (found, Value::Bytes(bytes)) if found == number => Some(bytes),
            _ => None,
        })
    };
    let number = |bytes, wanted| {
        fields(bytes).find_map(move |field| match field {
            (found, Value::Number(number)) if found == wanted => Some(number),
            _ => None,
        })
    };

    fields(details).find_map(|field| {
        let (3, Value::Bytes(any)) = field else {
            return None;
        };
        if !inner(any, 1)?.ends_with(b"/google.rpc.RetryInfo") {
            return None;
        }
        // A delay of 0 has no fields, and may be left out itself.
        let delay = inner(inner(any, 2).unwrap_or_default(), 1).unwrap_or_default();
        let (seconds, nanos) = (number(delay, 1).unwrap_or(0), number(delay, 2).unwrap_or(0));
        // A negative number has the highest bit.
        let seconds = i64::try_from(seconds).map_or(0, i64::unsigned_abs);
        Some(Duration::from_secs(seconds) + Duration::from_nanos(nanos.min(999_999_999)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::{field, text, varint};
    use super::*;

    /// A google.rpc.Status with a RetryInfo of so many seconds and nanoseconds.
    fn details(seconds: u64, nanos: u64) -> Vec<u8> {
        let (mut delay, mut info, mut any, mut status) = (vec![], vec![], vec![], vec![]);
        for (number, value) in [(1, seconds), (2, nanos)] {
            varint(number << 3, &mut delay);
            varint(value, &mut delay);
        }
        field(1, &delay, &mut info);
        text(1, b"type.googleapis.com/google.rpc.RetryInfo", &mut any);
        field(2, &info, &mut any);
        text(2, b"busy", &mut status);
        field(3, &any, &mut status);
        status
    }

    #[test]
    fn what_is_sent_again_is_as_the_specification_says() {
        let again = [1, 4, 10, 11, 14, 15];
        for code in 0..20 {
            let after = |details| {
                let message = "words".to_owned();
                after(
                    &CallStatus {
                        code,
                        message,
                        details,
                    },
                    "http://a:4317/",
                )
            };
            match after(Vec::new()) {
                SinkError::Retry(text) => {
                    let waits = text.contains("; check") || text.contains("no receiver");
                    assert!(again.contains(&code) || waits, "{code}: {text}");
                    assert!(text.contains("words"), "{text}");
                }
                SinkError::Refused(_) => {
                    assert!([0, 2, 3, 6, 8, 9, 13, 17, 18, 19].contains(&code), "{code}");
                }
                other => panic!("{code}: {other:?}"),
            }

            // Only a status that may pass takes heed of a delay.
            let has_pause = matches!(after(details(2, 0)), SinkError::RetryAfter { .. });
            assert_eq!(has_pause, again.contains(&code) || code == 8, "{code}");
        }
    }

    #[test]
    fn a_delay_is_read_and_has_a_limit() {
        let of = |seconds, nanos| retry_delay(&details(seconds, nanos));
        assert_eq!(of(2, 500_000_000), Some(Duration::from_millis(2500)));
        assert_eq!(of(u64::MAX, 0), Some(Duration::ZERO), "a negative one");
        assert_eq!(retry_delay(b""), None);
        assert_eq!(retry_delay(&[0xff; 30]), None);
        let status = CallStatus {
            code: 14,
            message: String::new(),
            details: details(1 << 40, 0),
        };
        let SinkError::RetryAfter { pause, .. } = after(&status, "") else {
            panic!("a pause");
        };
        assert_eq!(pause, PAUSE_MAX);
    }
}
