//! A NATS server with JetStream, asked in its own protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use base64::prelude::{Engine as _, BASE64_STANDARD};
use serde_json::{json, Value};

use super::{await_port, engine, free_port, Engine, Server};

/// A server with one stream.
pub struct Nats {
    program: PathBuf,
    dir: tempfile::TempDir,
    port: u16,
    server: Server,
    /// CONNECT options of the test's own questions.
    login: Value,
    settings: String,
    scheme_tls: bool,
}

impl Nats {
    /// A server that asks for no login; `None` without the program.
    pub fn new() -> Option<Nats> {
        Nats::with("", json!({}), "")
    }

    /// A server with more in its configuration; `login` and `settings` are for the test and for
    /// the sender.
    pub fn with(more: &str, login: Value, settings: &str) -> Option<Nats> {
        let program = engine("nats-server")?;
        let dir = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\n{more}\njetstream {{ store_dir: \"{}\", \
             sync_interval: always }}\n",
            dir.path().join("data").display()
        );
        std::fs::write(dir.path().join("server.conf"), text).expect("write");
        let mut nats = Nats {
            program,
            dir,
            port,
            server: Server::none(),
            login,
            settings: settings.to_owned(),
            scheme_tls: settings.contains("tls = yes"),
        };

        nats.start();
        if !nats.scheme_tls {
            let stream = json!({
                "name": "audit", "subjects": ["audit.*"], "storage": "file", "retention": "limits",
            });
            let answer = nats.ask("$JS.API.STREAM.CREATE.audit", &stream);
            assert!(answer["error"].is_null(), "{answer}");
        }

        Some(nats)
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Has the stream take at most `more` bytes beyond those that it has, and refuse what exceeds them.
    pub fn limit(&self, more: u64) {
        let info = self.ask("$JS.API.STREAM.INFO.audit", &json!({}));
        let bytes = info["state"]["bytes"].as_u64().expect("a size");
        let stream = json!({
            "name": "audit", "subjects": ["audit.*"], "storage": "file", "retention": "limits",
            "discard": "new", "max_bytes": bytes + more,
        });
        let answer = self.ask("$JS.API.STREAM.UPDATE.audit", &stream);
        assert!(answer["error"].is_null(), "{answer}");
    }

    /// Publishes a message with these headers, each with its line break, and waits until it is stored.
    pub fn publish(&self, subject: &str, headers: &str, body: &str) {
        let mut reader = self.connect();
        let headers = format!("NATS/1.0\r\n{headers}\r\n");
        let (head, all) = (headers.len(), headers.len() + body.len());
        let text = format!("HPUB {subject} answers {head} {all}\r\n{headers}{body}\r\n");
        reader.get_mut().write_all(text.as_bytes()).expect("write");
        let answer = answer(&mut reader);
        assert!(answer["error"].is_null(), "{answer}");
    }

    /// Asks with a connection of its own.
    fn ask(&self, subject: &str, body: &Value) -> Value {
        let mut asked = self.connect();
        self.ask_over(&mut asked, subject, body)
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connect");
        stream
            .set_read_timeout(Some(crate::wait::DEADLINE))
            .expect("a timeout");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("the greeting");
        let mut options =
            json!({"verbose": false, "headers": true, "lang": "test", "version": "0"});
        for (key, value) in self.login.as_object().expect("an object") {
            options[key] = value.clone();
        }
        let hello = format!("CONNECT {options}\r\nSUB answers 1\r\n");
        reader.get_mut().write_all(hello.as_bytes()).expect("write");

        reader
    }

    fn ask_over(&self, reader: &mut BufReader<TcpStream>, subject: &str, body: &Value) -> Value {
        let body = body.to_string();
        let text = format!("PUB {subject} answers {}\r\n{body}\r\n", body.len());
        reader.get_mut().write_all(text.as_bytes()).expect("write");
        answer(reader)
    }
}

/// The next answer.
fn answer(reader: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        let length = line
            .split_ascii_whitespace()
            .last()
            .and_then(|w| w.parse().ok());
        if let (true, Some(length)) = (line.starts_with("MSG "), length) {
            let mut payload: Vec<u8> = vec![0; length];
            reader.read_exact(&mut payload).expect("a payload");
            return serde_json::from_slice(&payload).expect("JSON");
        }
        assert!(!line.starts_with("-ERR") && !line.is_empty(), "{line}");
    }
}

impl Engine for Nats {
    fn settings(&self) -> String {
        format!(
            "sink = nats\nserver = 127.0.0.1:{}\ntimeout = 4s\n{}",
            self.port, self.settings
        )
    }

    fn start(&mut self) {
        let log = self.dir.path().join("server.log");
        let mut command = Command::new(&self.program);
        let command = command.arg("-c").arg(self.dir.path().join("server.conf"));
        self.server = Server::start(command, &log);
        await_port(self.port);
    }

    fn kill(&mut self) {
        self.server.kill();
    }

    fn stored(&mut self) -> String {
        let mut reader = self.connect();
        let info = self.ask_over(&mut reader, "$JS.API.STREAM.INFO.audit", &json!({}));
        let last = info["state"]["last_seq"].as_u64().expect("a sequence");
        let mut lines = String::new();

        for sequence in 1..=last {
            let asked = json!({ "seq": sequence });
            let answer = self.ask_over(&mut reader, "$JS.API.STREAM.MSG.GET.audit", &asked);
            let decode = |name: &str| {
                let text = answer["message"][name].as_str().unwrap_or("");
                let bytes = BASE64_STANDARD.decode(text).expect("base64");
                String::from_utf8_lossy(&bytes).into_owned()
            };
            let headers = decode("hdrs");
            let get = |name: &str| {
                let mut all = headers.lines().filter_map(|line| line.split_once(": "));
                let found = all.find(|(key, _)| *key == name);
                found.map(|(_, value)| value.to_owned()).expect("a header")
            };
            lines += &format!(
                "from={} to={} events={} filtered={} kind={}\n",
                get("Tarsier-From"),
                get("Tarsier-To"),
                get("Tarsier-Events"),
                get("Tarsier-Filtered"),
                get("Tarsier-Kind"),
            );
            lines += &decode("data");
        }

        lines
    }
}
