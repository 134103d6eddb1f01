//! The OTLP sink beside a server that answers as the specification allows, and as it does not.

mod common;

use common::{await_that, Config, Log, Program};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request: its head and its body.
#[derive(Clone)]
struct Request {
    at: Instant,
    head: String,
    body: Vec<u8>,
}

/// Bytes of an answer, by the number of the request.
type Answers = fn(usize) -> Vec<u8>;

/// A server on loopback that keeps what it was sent. Its threads end with the test program.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn new(answers: Answers) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, answers, &kept));
            }
        });
        Server { port, requests }
    }

    fn settings(&self) -> String {
        format!(
            "sink = otlp\nserver = http://127.0.0.1:{}\nlinger = 5ms\ncompression = none\n",
            self.port
        )
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("the requests").clone()
    }

    /// How often the body of a request has this text.
    fn count(&self, text: &str) -> usize {
        let all = self.requests();
        all.iter()
            .map(|request| memchr::memmem::find_iter(&request.body, text).count())
            .sum()
    }
}

fn serve(stream: TcpStream, answers: Answers, kept: &Mutex<Vec<Request>>) {
    let mut out = stream.try_clone().expect("a stream");
    let mut input = BufReader::new(stream);
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            match input.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line == "\r\n" => break,
                Ok(_) => head += &line,
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length
            .and_then(|text| text.trim().parse().ok())
            .expect("a length");
        let mut body = vec![0; length];
        input.read_exact(&mut body).expect("a body");
        let number = {
            let mut kept = kept.lock().expect("the requests");
            kept.push(Request {
                at: Instant::now(),
                head,
                body,
            });
            kept.len()
        };
        if out.write_all(&answers(number)).is_err() {
            return;
        }
    }
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn taken(_: usize) -> Vec<u8> {
    answer("200 OK\r\nContent-Type: application/x-protobuf", b"")
}

#[test]
fn what_a_partial_success_refuses_is_kept_with_the_servers_text_and_is_a_gap() {
    // rejected_log_records = 2, error_message = "too old".
    const PARTIAL: &[u8] = b"\x0a\x0b\x08\x02\x12\x07too old";
    let server = Server::new(|number| match number {
        1 => answer("200 OK\r\nContent-Type: application/x-protobuf", PARTIAL),
        number => taken(number),
    });
    let log = Log::new();
    log.append(0..9);
    let config = Config::new(&log, &server.settings());
    let sender = Program::start(&config);
    await_that("the gap is there", || server.count("op=forward-gap") == 1);
    assert_eq!(server.count("events=2 cause=refused-by-sink"), 1);
    assert_eq!(server.count(" n=3 "), 1, "nothing is sent again");

    // The events, the number and the text are on this host.
    let kept =
        std::fs::read_to_string(log.dir().join("forward/dead-letter")).expect("a dead letter");
    assert!(kept.contains("refused 2 of these 9: too old"), "{kept}");
    assert_eq!(common::numbers_of(&kept).len(), 9);
    assert!(sender.stderr().contains("too old"), "{}", sender.stderr());

    // Sending goes on.
    log.append(9..12);
    await_that("the others are there", || server.count(" n=11 ") == 1);
}

#[test]
fn a_gap_that_is_refused_in_part_is_no_gap_again() {
    const PARTIAL: &[u8] = b"\x0a\x0b\x08\x02\x12\x07too old";
    let server = Server::new(|_| answer("200 OK\r\nContent-Type: application/x-protobuf", PARTIAL));
    let log = Log::new();
    log.append(0..9);
    let config = Config::new(&log, &server.settings());
    let sender = Program::start(&config);
    await_that("the gap is there", || server.count("op=forward-gap") == 1);
    log.append(9..10);
    await_that("the next event is there", || server.count(" n=9 ") == 1);
    await_that("its gap is there", || server.count("op=forward-gap") == 2);
    assert!(sender.stderr().contains("too old"));
}

#[test]
fn a_server_that_asks_for_a_pause_gets_it() {
    let server = Server::new(|number| match number {
        1 | 2 => answer("429 Too Many Requests\r\nRetry-After: 2", b"slow down"),
        number => taken(number),
    });
    let log = Log::new();
    log.append(0..3);
    let config = Config::new(&log, &server.settings());
    let sender = Program::start(&config);
    await_that("all events are there", || server.requests().len() >= 3);
    let requests = server.requests();
    for pair in requests[..3].windows(2) {
        let pause = pair[1].at - pair[0].at;
        assert!(pause >= Duration::from_secs(2), "{pause:?}");
    }
    assert!(
        sender.stderr().contains("asks for 2 s"),
        "{}",
        sender.stderr()
    );
}

#[test]
fn an_answer_that_is_not_of_otlp_acknowledges_nothing() {
    let server = Server::new(|number| match number {
        1 => answer(
            "200 OK\r\nContent-Type: text/html",
            b"<html>Please log in to the guest network</html>",
        ),
        2 => answer(
            "200 OK\r\nContent-Type: application/json",
            b"{\"error\":\"unauthenticated\"}",
        ),
        3 => answer(
            "307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/",
            b"",
        ),
        number => taken(number),
    });
    let log = Log::new();
    log.append(0..3);
    let config = Config::new(&log, &server.settings());
    let sender = Program::start(&config);
    await_that("the events are sent until they are taken", || {
        server.count(" n=2 ") == 4
    });
    let said = sender.stderr();
    for words in [
        "not one of OTLP",
        "guest network",
        "unauthenticated",
        "redirections are not followed",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!log.dir().join("forward/dead-letter").exists());
}

#[test]
fn requests_have_the_headers_and_bodies_that_are_asked_for() {
    let server = Server::new(taken);
    let log = Log::new();
    log.append_text(
        "type=USER_LOGIN msg=audit(1700000000.100:1): pid=4885 uid=0 auid=4294967295 ses=4294967295 msg='op=login \
         acct=\"deploy\" exe=\"/usr/sbin/sshd\" hostname=? addr=198.51.100.10 terminal=ssh res=failed'\n\
         type=EOE msg=audit(1700000001.000:2): \n",
    );
    let secret = log.dir().join("secret");
    std::fs::write(&secret, "s3cret\n").expect("a secret");
    let settings = format!(
        "{}headers = X-Scope-OrgID: tenant1, stream-name: audit\nsecret_header = api-key\nsecret_file = {}\n\
         format = ecs\necs_flavour = auditbeat\notlp_body = structured\n",
        server.settings(),
        secret.display()
    );
    let config = Config::new(&log, &settings);
    let _sender = Program::start(&config);
    await_that("the event is there", || server.count("logged-in") == 1);
    let request = &server.requests()[0];
    for header in [
        "X-Scope-OrgID: tenant1\r\n",
        "stream-name: audit\r\n",
        "api-key: s3cret\r\n",
    ] {
        assert!(request.head.contains(header), "{}", request.head);
    }
    let has = |bytes: &[u8]| memchr::memmem::find(&request.body, bytes).is_some();
    // SEVERITY_NUMBER_WARN with its name, and a map in place of text.
    assert!(has(b"\x10\x0d\x1a\x04WARN"), "{:?}", request.body);
    assert!(has(b"auditd_manager.auditd") && !has(b"{\"@timestamp\""));
}
