//! An OpenTelemetry collector that writes what it gets to a file.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{await_port, engine, free_port, Engine, Server};

/// A collector that writes what it receives into a file.
pub struct Collector {
    program: PathBuf,
    dir: tempfile::TempDir,
    port: u16,
    protocol: &'static str,
    server: Server,
}

impl Collector {
    /// A collector that runs and takes HTTP; `None` without the program.
    pub fn new() -> Option<Collector> {
        Collector::with("http")
    }

    /// A collector that runs and takes `http` or `grpc`; `None` without the program.
    pub fn with(protocol: &'static str) -> Option<Collector> {
        let program = engine("otelcol")?;
        let dir = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let text = format!(
            "receivers: {{otlp: {{protocols: {{{protocol}: {{endpoint: \"127.0.0.1:{port}\"}}}}}}}}\n\
             exporters: {{file: {{path: \"{}\", append: true}}}}\n\
             service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: {{logs: {{receivers: \
             [otlp], exporters: [file]}}}}}}\n",
            dir.path().join("logs.json").display()
        );

        std::fs::write(dir.path().join("collector.yaml"), text).expect("write");
        let mut collector = Collector {
            program,
            dir,
            port,
            protocol,
            server: Server::none(),
        };
        collector.start();

        Some(collector)
    }
}

impl Collector {
    /// Port of its receiver.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Engine for Collector {
    fn settings(&self) -> String {
        let protocol = match self.protocol {
            "grpc" => "otlp_protocol = grpc\n",
            _ => "",
        };
        format!(
            "sink = otlp\n{protocol}server = http://127.0.0.1:{}\ntimeout = 4s\n",
            self.port
        )
    }

    fn start(&mut self) {
        let config = self.dir.path().join("collector.yaml");
        let mut command = Command::new(&self.program);
        let command = command.arg("--config").arg(config);
        self.server = Server::start(command, &self.dir.path().join("server.log"));
        await_port(self.port);
    }

    /// Ends it in order: a collector that is killed loses what it has acknowledged and not written.
    fn kill(&mut self) {
        self.server.end();
    }

    fn stored(&mut self) -> String {
        let text = std::fs::read_to_string(self.dir.path().join("logs.json")).unwrap_or_default();
        let mut lines = String::new();
        for request in text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            let records = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
            for record in records.as_array().into_iter().flatten() {
                let get = |name: &str| {
                    let mut all = record["attributes"].as_array().expect("attributes").iter();
                    let found = all.find(|pair| pair["key"] == name);
                    let value = found.and_then(|pair| pair["value"]["stringValue"].as_str());
                    value.unwrap_or("").to_owned()
                };
                let uid = get("log.record.uid");
                assert!(!uid.is_empty(), "{record}");
                lines += &format!(
                    "from={} to={} events={} filtered={} kind={} uid={uid}\n{}\n",
                    get("tarsier.from"),
                    get("tarsier.to"),
                    get("tarsier.events"),
                    get("tarsier.filtered"),
                    get("tarsier.kind"),
                    record["body"]["stringValue"].as_str().unwrap_or(""),
                );
            }
        }

        lines
    }
}
