//! A Kafka broker, and Kafka's own programs to ask it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{await_port, engine, free_port, Engine, Server};

/// A broker with one topic.
pub struct Kafka {
    jars: PathBuf,
    dir: tempfile::TempDir,
    /// A listener with SASL; user `tarsier`, password `secret`.
    sasl_port: u16,
    /// A listener without authentication.
    plain_port: u16,
    server: Server,
}

const TOPIC: &str = "audit";
/// Number of partitions of the topic.
pub const PARTITIONS: u32 = 3;
/// The partition of the host `web1`.
pub const PARTITION_OF_WEB1: u32 = 0;

impl Kafka {
    /// A broker that runs; `None` without Kafka or Java.
    pub fn new() -> Option<Kafka> {
        Kafka::advertised_at(None)
    }

    /// A broker whose listener with SASL tells clients to come to another port of loopback.
    pub fn advertised_at(port: Option<u16>) -> Option<Kafka> {
        let jars = engine("kafka")?;
        let dir = tempfile::tempdir().expect("a directory");
        let (sasl_port, plain_port, controller) = (free_port(), free_port(), free_port());
        let advertised = port.unwrap_or(sasl_port);
        let data = dir.path().join("data");
        let login = "required username=\"tarsier\" password=\"secret\" user_tarsier=\"secret\";";

        // A broker that was killed comes back once the controller has given up the session of before.
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=OUT://127.0.0.1:{sasl_port},IN://127.0.0.1:{plain_port},\
             CTL://127.0.0.1:{controller}\n\
             advertised.listeners=OUT://127.0.0.1:{advertised},IN://127.0.0.1:{plain_port}\n\
             listener.security.protocol.map=OUT:SASL_PLAINTEXT,IN:PLAINTEXT,CTL:PLAINTEXT\n\
             inter.broker.listener.name=IN\ncontroller.listener.names=CTL\nlog.dirs={}\n\
             broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n\
             offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\ngroup.initial.rebalance.delay.ms=0\n\
             num.network.threads=2\nnum.io.threads=2\nlog.cleaner.enable=false\n\
             sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n\
             listener.name.out.plain.sasl.jaas.config=\
             org.apache.kafka.common.security.plain.PlainLoginModule {login}\n\
             listener.name.out.scram-sha-256.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
             listener.name.out.scram-sha-512.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;\n",
            data.display()
        );

        std::fs::write(dir.path().join("server.properties"), text).expect("write");
        let mut kafka = Kafka {
            jars,
            dir,
            sasl_port,
            plain_port,
            server: Server::none(),
        };

        let properties = kafka.properties();
        let scram = |n| format!("SCRAM-SHA-{n}=[name=tarsier,password=secret]");
        let (one, two) = (scram(256), scram(512));
        let cluster = ["format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", &properties];
        let users = ["--add-scram", &one, "--add-scram", &two];
        kafka.java("kafka.tools.StorageTool", &[&cluster[..], &users].concat());
        kafka.start();
        let at = format!("127.0.0.1:{plain_port}");
        kafka.java(
            "org.apache.kafka.tools.TopicCommand",
            &[
                "--bootstrap-server",
                &at,
                "--create",
                "--topic",
                TOPIC,
                "--partitions",
                &PARTITIONS.to_string(),
                "--replication-factor",
                "1",
            ],
        );

        Some(kafka)
    }

    fn properties(&self) -> String {
        self.dir
            .path()
            .join("server.properties")
            .display()
            .to_string()
    }

    fn command(&self, heap: &str) -> Command {
        let mut command = Command::new("java");
        command.args([heap, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]);
        command.arg(format!("{}/*", self.jars.display()));
        command
    }

    fn java(&self, class: &str, args: &[&str]) -> String {
        let output = self
            .command("-Xmx256m")
            .arg(class)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("run java");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{class}: {text}{errors}");
        text
    }

    /// Settings of a sender that proves who it is.
    pub fn sasl_settings(&self) -> String {
        let plain = format!("127.0.0.1:{}", self.plain_port);
        let settings = self.settings();
        settings.replace(&plain, &format!("127.0.0.1:{}", self.sasl_port))
    }

    /// The port with SASL.
    pub fn sasl_port(&self) -> u16 {
        self.sasl_port
    }

    /// Changes a setting of the topic.
    pub fn alter_topic(&self, setting: &str) {
        let at = format!("127.0.0.1:{}", self.plain_port);
        self.java(
            "kafka.admin.ConfigCommand",
            &[
                "--bootstrap-server",
                &at,
                "--alter",
                "--entity-type",
                "topics",
                "--entity-name",
                TOPIC,
                "--add-config",
                setting,
            ],
        );
    }
}

impl Engine for Kafka {
    fn settings(&self) -> String {
        format!(
            "sink = kafka\nserver = 127.0.0.1:{}\ntopic = {TOPIC}\ntimeout = 4s\n",
            self.plain_port
        )
    }

    fn start(&mut self) {
        let log = self.dir.path().join("server.log");
        let properties = self.properties();
        let mut command = self.command("-Xmx512m");
        self.server = Server::start(command.arg("kafka.Kafka").arg(properties), &log);
        await_port(self.plain_port);
    }

    fn kill(&mut self) {
        self.server.kill();
    }

    fn stored(&mut self) -> String {
        let at = format!("127.0.0.1:{}", self.plain_port);
        // By assignment: a group has to wait for its coordinator.
        let partition = PARTITION_OF_WEB1.to_string();
        let text = self.java(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            &[
                "--bootstrap-server",
                &at,
                "--topic",
                TOPIC,
                "--partition",
                &partition,
                "--offset",
                "earliest",
                "--timeout-ms",
                "8000",
                "--property",
                "print.headers=true",
            ],
        );

        let mut lines = String::new();

        for line in text.lines() {
            match line.split_once('\t') {
                Some((headers, body)) if headers.starts_with("series:") => {
                    let get = |name: &str, default: &'static str| -> String {
                        let mut all = headers.split(',').filter_map(|pair| pair.split_once(':'));
                        let found = all.find(|(key, _)| *key == name);
                        found.map_or(default.to_owned(), |(_, value)| value.to_owned())
                    };
                    lines += &format!(
                        "from={} to={} events={} filtered={} kind={}\n{body}\n",
                        get("from", ""),
                        get("to", ""),
                        get("events", "1"),
                        get("filtered", "0"),
                        get("kind", ""),
                    );
                }
                _ => lines += &format!("{line}\n"),
            }
        }

        lines
    }
}
