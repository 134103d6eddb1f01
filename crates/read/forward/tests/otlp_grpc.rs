//! The OTLP sink by gRPC, beside a server that answers as the specification allows, and as it does not.

mod common;

use base64::prelude::{Engine, BASE64_STANDARD_NO_PAD};
use bytes::Bytes;
use common::certificates::{Authority, Flaw};
use common::{await_that, Config, Log, Program};
use http::{HeaderMap, Request, Response};
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// A call: its headers and its message, without the prefix and decompressed.
#[derive(Clone)]
struct Call {
    at: Instant,
    path: String,
    headers: HeaderMap,
    message: Vec<u8>,
}

/// What the server does with a call.
enum Reply {
    /// A message, and trailers.
    Message(&'static [u8], &'static [(&'static str, &'static str)]),
    /// Only a head: status, content type, trailers in it.
    Head(u16, &'static str, &'static [(&'static str, &'static str)]),
    /// A head with a body and no trailers.
    Body(u16, &'static str, &'static [u8]),
    /// The stream is reset.
    Reset,
    /// Nothing, for as long as the test lasts.
    Silence,
    /// The connection is closed.
    Close,
}

/// An empty message with its prefix.
const EMPTY: &[u8] = &[0; 5];
const GRPC: &str = "application/grpc";
const TAKEN: Reply = Reply::Message(EMPTY, &[("grpc-status", "0")]);

/// A server on loopback that keeps what it was sent. Its thread ends with the test program.
struct Server {
    port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// The reply by the number of the call, from 1.
type Replies = fn(usize) -> Reply;

impl Server {
    fn new(replies: Replies) -> Server {
        Server::with(replies, None)
    }

    fn with(replies: Replies, tls: Option<Arc<rustls::ServerConfig>>) -> Server {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&calls);
        let (give, port) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                give.send(listener.local_addr().expect("an address").port())
                    .expect("the port is taken");
                loop {
                    let (stream, _) = listener.accept().await.expect("a connection");
                    let (kept, tls) = (Arc::clone(&kept), tls.clone());
                    tokio::spawn(async move {
                        match tls {
                            None => serve(stream, replies, &kept).await,
                            Some(tls) => {
                                let acceptor = tokio_rustls::TlsAcceptor::from(tls);
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    serve(stream, replies, &kept).await;
                                }
                            }
                        }
                    });
                }
            });
        });
        let port = port.recv().expect("a port");
        Server { port, calls }
    }

    fn settings(&self) -> String {
        format!(
            "sink = otlp\notlp_protocol = grpc\nserver = http://127.0.0.1:{}\nlinger = 5ms\n",
            self.port
        )
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("the calls").clone()
    }

    /// How often the message of a call has this text.
    fn count(&self, text: &str) -> usize {
        let all = self.calls();
        all.iter()
            .map(|call| memchr::memmem::find_iter(&call.message, text).count())
            .sum()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    replies: Replies,
    kept: &Mutex<Vec<Call>>,
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    // Streams that stay open get no answer.
    let mut open = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let mut reading = pin!(read(request));
        let read = poll_fn(|cx| match reading.as_mut().poll(cx) {
            Poll::Ready(call) => Poll::Ready(Some(call)),
            // Nothing comes unless the connection is driven.
            Poll::Pending => connection.poll_closed(cx).map(|_| None),
        });
        let Some(call) = read.await else {
            return;
        };
        let number = {
            let mut kept = kept.lock().expect("the calls");
            kept.push(call);
            kept.len()
        };
        match replies(number) {
            Reply::Silence => open.push(respond),
            Reply::Close => return,
            Reply::Reset => respond.send_reset(h2::Reason::REFUSED_STREAM),
            Reply::Head(status, kind, headers) => {
                let _ = respond.send_response(head(status, kind, headers), true);
            }
            Reply::Body(status, kind, body) => {
                let mut stream = respond
                    .send_response(head(status, kind, &[]), false)
                    .expect("a head");
                let _ = stream.send_data(Bytes::from_static(body), true);
            }
            Reply::Message(message, trailers) => {
                let kind = head(200, GRPC, &[]);
                let mut stream = respond.send_response(kind, false).expect("a head");
                let _ = stream.send_data(Bytes::from_static(message), false);
                let mut map = HeaderMap::new();
                for (name, value) in trailers {
                    map.insert(*name, value.parse().expect("a value"));
                }
                let _ = stream.send_trailers(map);
            }
        }
    }
}

fn head(status: u16, kind: &str, headers: &[(&str, &str)]) -> Response<()> {
    let mut response = Response::builder()
        .status(status)
        .header("content-type", kind);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(()).expect("a head")
}

async fn read(request: Request<h2::RecvStream>) -> Call {
    let (parts, mut body) = request.into_parts();
    let mut bytes = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        bytes.extend_from_slice(&data);
        let _ = body.flow_control().release_capacity(data.len());
    }
    let (prefix, rest) = bytes.split_at(5);
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    assert_eq!(length as usize, rest.len());
    let mut message = rest.to_vec();
    if prefix[0] == 1 {
        assert_eq!(parts.headers["grpc-encoding"], "gzip");
        message.clear();
        let mut decoder = flate2::read::GzDecoder::new(rest);
        std::io::Read::read_to_end(&mut decoder, &mut message).expect("gzip");
    }
    Call {
        at: Instant::now(),
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        message,
    }
}

#[test]
fn a_call_has_the_method_the_deadline_and_the_metadata_that_are_asked_for() {
    let server = Server::new(|_| TAKEN);
    let log = Log::new();
    log.append(0..3);
    let settings = format!(
        "{}timeout = 7s\nheaders = X-Scope-OrgID: tenant1\n",
        server.settings()
    );
    let config = Config::new(&log, &settings);
    let (status, text) = common::run(&config, &["check"]);
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("reached, and takes an empty request"),
        "{text}"
    );

    let _sender = Program::start(&config);
    await_that("the events are there", || server.count(" n=2 ") == 1);
    let calls = server.calls();
    for call in &calls {
        assert_eq!(
            call.path,
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
        );
        for (name, value) in [
            ("content-type", GRPC),
            ("te", "trailers"),
            ("grpc-timeout", "7000m"),
            ("x-scope-orgid", "tenant1"),
        ] {
            assert_eq!(call.headers[name], value);
        }
    }

    // The next batch takes the same connection, and one after a pause, too.
    log.append(3..4);
    await_that("the fourth event is there", || server.count(" n=3 ") == 1);
    std::thread::sleep(Duration::from_millis(1100));
    log.append(4..5);
    await_that("the fifth event is there", || server.count(" n=4 ") == 1);
}

#[test]
fn what_a_partial_success_refuses_is_kept_with_the_servers_text_and_is_a_gap() {
    // rejected_log_records = 2, error_message = "too old".
    const PARTIAL: &[u8] = b"\0\0\0\0\x0d\x0a\x0b\x08\x02\x12\x07too old";
    let server = Server::new(|number| match number {
        1 => Reply::Message(PARTIAL, &[("grpc-status", "0")]),
        _ => TAKEN,
    });
    let log = Log::new();
    log.append(0..9);
    let config = Config::new(&log, &server.settings());
    let _sender = Program::start(&config);
    await_that("the gap is there", || server.count("op=forward-gap") == 1);
    assert_eq!(server.count("events=2 cause=refused-by-sink"), 1);
    let kept =
        std::fs::read_to_string(log.dir().join("forward/dead-letter")).expect("a dead letter");
    assert!(kept.contains("refused 2 of these 9: too old"), "{kept}");
}

/// Replies that are no success of gRPC.
const NO_SUCCESS: [fn() -> Reply; 17] = [
    || {
        Reply::Body(
            200,
            "text/html",
            b"<html>Please log in to the guest network</html>",
        )
    },
    || Reply::Body(503, "text/plain", b"upstream is away"),
    || Reply::Head(502, "text/plain", &[]),
    || Reply::Head(200, GRPC, &[("grpc-status", "0")]),
    || Reply::Head(200, GRPC, &[("grpc-status", "many")]),
    || Reply::Body(200, GRPC, EMPTY),
    || Reply::Message(&[0, 0, 0, 0, 9, 1], &[("grpc-status", "0")]),
    || Reply::Message(&[0; 10], &[("grpc-status", "0")]),
    || Reply::Message(&[1, 0, 0, 0, 1, 1], &[("grpc-status", "0")]),
    || Reply::Message(&[0, 0, 0, 0, 2, 0x0a, 0x7f], &[("grpc-status", "0")]),
    || Reply::Message(EMPTY, &[]),
    || Reply::Reset,
    || Reply::Close,
    || Reply::Silence,
    || {
        Reply::Head(
            200,
            GRPC,
            &[("grpc-status", "14"), ("grpc-message", "come%20back")],
        )
    },
    || Reply::Message(EMPTY, &[("grpc-status", "4")]),
    || {
        Reply::Head(
            200,
            GRPC,
            &[("grpc-status", "16"), ("grpc-message", "who are you")],
        )
    },
];

#[test]
fn an_answer_that_is_no_success_of_grpc_acknowledges_nothing() {
    let server = Server::new(|number| NO_SUCCESS.get(number - 1).map_or(TAKEN, |reply| reply()));
    let log = Log::new();
    log.append(0..3);
    let config = Config::new(&log, &format!("{}timeout = 1s\n", server.settings()));
    let mut said = String::new();
    // Waits between attempts grow, but a new sender begins with none.
    for number in 1..=NO_SUCCESS.len() {
        let mut sender = Program::start(&config);
        await_that("the error is said", || sender.stderr().len() > said.len());
        sender.kill();
        said = sender.stderr();
        assert!(server.calls().len() >= number, "{number}: {said}");
        assert_eq!(server.count(" n=2 "), server.calls().len(), "{said}");
    }
    let _sender = Program::start(&config);
    await_that("the events are taken", || {
        server.calls().len() > NO_SUCCESS.len()
    });
    for words in [
        "guest network",
        "HTTP status 200, Content-Type \"text/html\"",
        "HTTP status 503",
        "upstream is away",
        "HTTP status 502",
        "has no message, although its status is OK",
        "grpc-status \"many\" is no number",
        "has no grpc-status: it was cut",
        "1 bytes after a length of 9",
        "5 bytes after a length of 0",
        "flag 1",
        "message is not one of OTLP",
        "refused stream",
        "closed the connection",
        "no answer within 1 s (timeout)",
        "status UNAVAILABLE (14): \"come back\"",
        "status DEADLINE_EXCEEDED (4)",
        "status UNAUTHENTICATED (16): \"who are you\"; check auth",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!log.dir().join("forward/dead-letter").exists());
}

#[test]
fn events_that_a_status_refuses_are_put_aside_one_by_one() {
    // A server that takes up to two records at once, in the words of grpc-go.
    let server = Server::new(|number| match number {
        1 | 2 => Reply::Head(
            200,
            GRPC,
            &[
                ("grpc-status", "8"),
                ("grpc-message", "message larger than max"),
            ],
        ),
        3 => Reply::Head(
            200,
            GRPC,
            &[("grpc-status", "3"), ("grpc-message", "bad record")],
        ),
        _ => TAKEN,
    });
    let log = Log::new();
    log.append(0..4);
    let config = Config::new(&log, &server.settings());
    let _sender = Program::start(&config);
    await_that("the others are there", || {
        server.count("op=forward-gap") == 1
    });
    await_that("the last is there", || server.count(" n=3 ") > 1);
    let kept =
        std::fs::read_to_string(log.dir().join("forward/dead-letter")).expect("a dead letter");
    assert_eq!(common::numbers_of(&kept), [0], "{kept}");
}

#[test]
fn a_server_that_asks_for_a_pause_gets_it() {
    // google.rpc.Status { message: "busy", details: [RetryInfo { retry_delay: 1.5 s }] }.
    fn details() -> &'static str {
        let info: &[u8] = b"\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01";
        let name = b"type.googleapis.com/google.rpc.RetryInfo";
        let mut any = vec![0x0a, name.len() as u8];
        any.extend_from_slice(name);
        any.extend_from_slice(&[0x12, info.len() as u8]);
        any.extend_from_slice(info);
        let mut status = b"\x08\x08\x12\x04busy".to_vec();
        status.extend_from_slice(&[0x1a, any.len() as u8]);
        status.extend_from_slice(&any);
        BASE64_STANDARD_NO_PAD.encode(status).leak()
    }

    let server = Server::new(|number| match number {
        1 | 2 => {
            let headers = [("grpc-status", "8"), ("grpc-status-details-bin", details())];
            Reply::Head(200, GRPC, Vec::from(headers).leak())
        }
        _ => TAKEN,
    });
    let log = Log::new();
    log.append(0..3);
    let config = Config::new(&log, &server.settings());
    let sender = Program::start(&config);
    await_that("all events are there", || server.calls().len() >= 3);
    for pair in server.calls()[..3].windows(2) {
        let pause = pair[1].at - pair[0].at;
        assert!(pause >= Duration::from_millis(1500), "{pause:?}");
    }
    let said = sender.stderr();
    assert!(said.contains("asks for 1.5 s"), "{said}");
    assert!(!log.dir().join("forward/dead-letter").exists());
}

#[test]
fn tls_needs_a_trusted_name_and_http2() {
    let log = Log::new();
    let authority = Authority::new();
    let ca = log.dir().join("ca.pem");
    std::fs::write(&ca, authority.pem()).expect("a certificate");
    let check = |flaw, protocols: &[&[u8]]| {
        let mut tls = rustls::ServerConfig::clone(&authority.server(flaw));
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let server = Server::with(|_| TAKEN, Some(Arc::new(tls)));
        let settings = format!(
            "sink = otlp\notlp_protocol = grpc\nserver = https://127.0.0.1:{}\ntls_ca = {}\n",
            server.port,
            ca.display()
        );
        common::run(&Config::new(&log, &settings), &["check"])
    };

    let (status, text) = check(Flaw::None, &[b"h2"]);
    assert_eq!(status, 0, "{text}");
    for (flaw, protocols, words) in [
        (
            Flaw::OtherAuthority,
            &[&b"h2"[..]][..],
            "tls_ca has to name",
        ),
        (Flaw::OtherName, &[b"h2"], "the certificate has to be for"),
        (Flaw::None, &[], "no HTTP/2 at this port"),
    ] {
        let (status, text) = check(flaw, protocols);
        assert!(status != 0 && text.contains(words), "{flaw:?}: {text}");
    }
}

#[test]
fn a_server_of_another_protocol_is_named() {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let log = Log::new();
    let settings = format!("sink = otlp\notlp_protocol = grpc\nserver = http://127.0.0.1:{port}\n");
    let (status, text) = common::run(&Config::new(&log, &settings), &["check"]);
    assert_ne!(status, 0, "{text}");
    assert!(
        text.contains("does the server speak gRPC at this port"),
        "{text}"
    );

    let settings = "sink = otlp\notlp_protocol = grpc\nserver = http://127.0.0.1:1/v1/logs\n";
    let (status, text) = common::run(&Config::new(&log, settings), &["check"]);
    assert!(
        status != 0 && text.contains("gRPC has of its own"),
        "{text}"
    );
}
