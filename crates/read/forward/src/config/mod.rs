//! `/etc/tarsier/forward.conf`: `key = value` lines as in auditd.conf, one sink per file.

mod keys;
mod values;

use std::path::{Path, PathBuf};
use std::time::Duration;

use conf::Place;

pub use keys::{described_keys, is_host_name, is_of_host_name, KeyDescription};

/// Path of the configuration file unless `--config` names another.
pub const DEFAULT_PATH: &str = "/etc/tarsier/forward.conf";
/// Largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Kinds of sinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkKind {
    /// A Kafka topic.
    Kafka,
    /// A subject of a NATS JetStream stream.
    Nats,
    /// An OTLP receiver.
    Otlp,
    /// Lines appended to a file.
    File,
    /// Lines on standard output.
    Stdout,
}

/// Place to begin at when there is no cursor yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The beginning of the oldest log file.
    Oldest,
    /// The end of the log: only text written from now on is sent.
    Now,
}

/// Compression of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// zstd (Kafka).
    Zstd,
    /// gzip (OTLP).
    Gzip,
}

/// Means by which the sender proves its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Not at all, or by its TLS certificate.
    None,
    /// SASL PLAIN (Kafka).
    Plain,
    /// SASL SCRAM-SHA-256 (Kafka).
    ScramSha256,
    /// SASL SCRAM-SHA-512 (Kafka).
    ScramSha512,
    /// User and password (NATS; basic authentication of HTTP).
    Password,
    /// A token (NATS; bearer token of HTTP).
    Token,
    /// An nkey seed (NATS).
    Nkey,
}

/// Words for what happened in ECS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcsFlavour {
    /// Words of this project.
    Tarsier,
    /// Words of Auditbeat and the integration auditd_manager.
    Auditbeat,
}

/// Transport of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// Protobuf by HTTP/1.1.
    Http,
    /// gRPC.
    Grpc,
}

/// Form of the body of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpBody {
    /// The event as text.
    Text,
    /// The event's JSON object as a map.
    Structured,
}

/// Action in case of trouble, in the words of audisp-remote.conf(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TroubleAction {
    /// Nothing.
    Ignore,
    /// A message to syslog.
    Syslog,
    /// A program.
    Exec(PathBuf),
    /// Send nothing until SIGHUP or SIGUSR2.
    Suspend,
    /// Single-user mode.
    Single,
    /// Shut the system down.
    Halt,
}

/// Words that select the events that are sent, or are urgent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Words of which an event has to have one; empty for all.
    pub include: Vec<String>,
    /// Words that an event must not have, written with `!`.
    pub exclude: Vec<String>,
}

impl Words {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }
}

/// The configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The log to follow.
    pub log_file: PathBuf,
    /// Directory for links and the cursor, on the file system of the log; beside the log by default.
    pub spool: Option<PathBuf>,
    /// Place to begin at.
    pub start: Start,
    /// Name of this host at the destination; the system's if not set.
    pub host: Option<String>,
    /// Kind of the sink.
    pub sink: SinkKind,
    /// Name of the format.
    pub format: String,
    /// Words that `format = ecs` uses.
    pub ecs_flavour: EcsFlavour,
    /// Transport of OTLP.
    pub otlp_protocol: OtlpProtocol,
    /// Form of the bodies of OTLP's log records.
    pub otlp_body: OtlpBody,
    /// Headers of HTTP requests: names and values.
    pub headers: Vec<(String, String)>,
    /// Name of the HTTP header that has the secret.
    pub secret_header: Option<String>,
    /// Servers, `HOST:PORT`; for OTLP one URL.
    pub server: Vec<String>,
    /// Kafka's topic.
    pub topic: String,
    /// Kafka's partition; by the host's name if not set.
    pub partition: Option<u32>,
    /// NATS' subject; `%h` is the host.
    pub subject: String,
    /// File of the file sink.
    pub path: PathBuf,
    /// Whether lines come in an envelope with positions and counts.
    pub envelope: bool,
    /// Whether TLS is used.
    pub tls: bool,
    /// Certificates of the authorities that are trusted.
    pub tls_ca: PathBuf,
    /// Certificate of this host.
    pub tls_cert: Option<PathBuf>,
    /// Key of that certificate.
    pub tls_key: Option<PathBuf>,
    /// Means by which the sender proves its identity.
    pub auth: Auth,
    /// Name of the user.
    pub user: String,
    /// File with password, token or seed.
    pub secret_file: Option<PathBuf>,
    /// Compression; the sink's usual one if not set.
    pub compression: Option<Compression>,
    /// Largest batch, in bytes; the sink's usual size if not set.
    pub batch_bytes: Option<usize>,
    /// Time that events wait for others.
    pub linger: Duration,
    /// Time that a server has to answer.
    pub timeout: Duration,
    /// Keys of events that are sent.
    pub filter_keys: Words,
    /// Types of records, one of which an event must have to be sent.
    pub filter_types: Words,
    /// Keys of events of which a batch has the first of those alike, and a count of the others.
    pub aggregate_keys: Words,
    /// Keys of events for which nothing waits.
    pub urgent_keys: Words,
    /// Bytes of the log that may wait to be sent.
    pub hold_bytes: u64,
    /// Action when more bytes wait.
    pub overflow_action: TroubleAction,
    /// Action when the sink cannot be reached.
    pub network_failure_action: TroubleAction,
    /// Time without the sink after which that action is taken.
    pub network_failure_after: Duration,
    /// File for metrics, beside the spool's own copy.
    pub metrics_file: Option<PathBuf>,
}

impl Config {
    /// Defaults of all keys.
    pub fn unset() -> Config {
        Config {
            log_file: PathBuf::from("/var/log/audit/audit.log"),
            spool: None,
            start: Start::Oldest,
            host: None,
            sink: SinkKind::Stdout,
            format: "raw".into(),
            ecs_flavour: EcsFlavour::Tarsier,
            otlp_protocol: OtlpProtocol::Http,
            otlp_body: OtlpBody::Text,
            headers: Vec::new(),
            secret_header: None,
            server: Vec::new(),
            topic: "audit".into(),
            partition: None,
            subject: "audit.%h".into(),
            path: PathBuf::new(),
            envelope: false,
            tls: false,
            tls_ca: PathBuf::from("/etc/ssl/certs/ca-certificates.crt"),
            tls_cert: None,
            tls_key: None,
            auth: Auth::None,
            user: String::new(),
            secret_file: None,
            compression: None,
            batch_bytes: None,
            linger: Duration::from_millis(200),
            timeout: Duration::from_secs(10),
            filter_keys: Words::default(),
            filter_types: Words::default(),
            aggregate_keys: Words::default(),
            urgent_keys: Words::default(),
            hold_bytes: 20 << 30,
            overflow_action: TroubleAction::Syslog,
            network_failure_action: TroubleAction::Syslog,
            network_failure_after: Duration::from_secs(60),
            metrics_file: None,
        }
    }

    /// Name of the format that events get: a flavour is a format of its own.
    pub fn format_name(&self) -> &str {
        match (self.format.as_str(), self.ecs_flavour) {
            ("ecs", EcsFlavour::Auditbeat) => "ecs-auditbeat",
            (format, _) => format,
        }
    }

    /// Directory of the spool.
    pub fn spool_dir(&self) -> PathBuf {
        self.spool.clone().unwrap_or_else(|| {
            let dir = self.log_file.parent().unwrap_or(Path::new("."));
            dir.join("forward")
        })
    }
}

/// Reason why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot read the configuration: {source}; name it by --config, or create it", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the read.
        source: std::io::Error,
    },
    /// The file is not controlled by root alone.
    #[error(transparent)]
    Untrusted(#[from] trust::TrustError),
    /// A line cannot be understood.
    #[error("{place}: {found}; expected {expected}")]
    Line {
        /// Place of the line.
        place: Place,
        /// Description of the fault.
        found: String,
        /// Description of correct input.
        expected: String,
    },
    /// Two keys contradict each other, or one lacks.
    #[error("{}: {found}; {remedy}", path.display())]
    Conflict {
        /// The file.
        path: PathBuf,
        /// Description of the conflict.
        found: String,
        /// Remedy.
        remedy: &'static str,
    },
}

/// Reads and checks the configuration at `path`. The file, and the directories above it, must be
/// of root alone if root is who asks: it may name programs.
///
/// # Errors
/// The file cannot be read or is wrong; the error names the line.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    use std::io::Read;
    let io = |source| ConfigError::Io {
        path: path.to_owned(),
        source,
    };
    let file = if rustix::process::geteuid().is_root() {
        trust::open(path, trust::Links::Refuse)?
    } else {
        std::fs::File::open(path).map_err(io)?
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(io)?;

    parse(&text, path)
}

/// Parses the text of a configuration. `path` only serves to name places.
///
/// # Errors
/// The text is wrong; the error names the line.
pub fn parse(text: &[u8], path: &Path) -> Result<Config, ConfigError> {
    let mut config = Config::unset();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let place = Place {
            file: path.to_owned(),
            line: index + 1,
        };
        let refuse = |found: String, expected: String| ConfigError::Line {
            place: place.clone(),
            found,
            expected,
        };
        let line = std::str::from_utf8(line)
            .map_err(|_| refuse("bytes that are not UTF-8".into(), "text".into()))?
            .trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let form = || "`key = value`".to_owned();
        let (name, value) = line
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .ok_or_else(|| refuse(format!("no `=` in {line:?}"), form()))?;
        if value.is_empty() {
            return Err(refuse(format!("{name} has no value"), form()));
        }
        keys::apply(&mut config, name, value)
            .map_err(|(found, expected)| refuse(found, expected))?;
    }

    check(&config, path)?;
    Ok(config)
}

/// A conflict, with its remedy, among the keys that say what events and requests look like.
fn form_conflict(config: &Config) -> Option<(&'static str, &'static str)> {
    let is_of_otlp = !config.headers.is_empty()
        || config.secret_header.is_some()
        || config.otlp_protocol != OtlpProtocol::Http
        || config.otlp_body != OtlpBody::Text;
    if is_of_otlp && config.sink != SinkKind::Otlp {
        return Some((
            "headers, secret_header, otlp_protocol and otlp_body are for otlp only",
            "remove them, or set `sink = otlp`",
        ));
    }

    if config.secret_header.is_some() && (config.auth != Auth::None || config.secret_file.is_none())
    {
        return Some((
            "secret_header needs the secret for itself",
            "set secret_file, and remove auth",
        ));
    }
    if config.otlp_body == OtlpBody::Structured && config.format == "raw" {
        return Some((
            "otlp_body = structured needs JSON objects",
            "set `format = json`, `ecs` or `ocsf`",
        ));
    }
    if config.ecs_flavour != EcsFlavour::Tarsier && config.format != "ecs" {
        return Some(("ecs_flavour is for ECS only", "set `format = ecs`"));
    }

    None
}

/// Whether the keys go together.
fn check(config: &Config, path: &Path) -> Result<(), ConfigError> {
    let conflict = |found: &str, remedy: &'static str| {
        Err(ConfigError::Conflict {
            path: path.to_owned(),
            found: found.into(),
            remedy,
        })
    };
    let is_remote = matches!(
        config.sink,
        SinkKind::Kafka | SinkKind::Nats | SinkKind::Otlp
    );
    if is_remote && config.server.is_empty() {
        return conflict(
            "the sink needs a server",
            "add `server = HOST:PORT` (for otlp `server = http://HOST:4318`)",
        );
    }
    if config.sink == SinkKind::File && config.path.as_os_str().is_empty() {
        return conflict("sink = file without a path", "add `path = /FILE`");
    }
    if let Some((found, remedy)) = form_conflict(config) {
        return conflict(found, remedy);
    }

    let fits = match config.auth {
        Auth::None => true,
        Auth::Plain | Auth::ScramSha256 | Auth::ScramSha512 => config.sink == SinkKind::Kafka,
        Auth::Password | Auth::Token => matches!(config.sink, SinkKind::Nats | SinkKind::Otlp),
        Auth::Nkey => config.sink == SinkKind::Nats,
    };
    if !fits {
        return conflict(
            "auth does not go with the sink",
            "kafka: plain, scram-sha-256, scram-sha-512; nats: password, token, nkey; otlp: \
             password, token",
        );
    }

    if config.auth != Auth::None && config.secret_file.is_none() {
        return conflict(
            "auth without secret_file",
            "add `secret_file = /FILE` with the password, token or seed in it",
        );
    }

    let fits = match config.compression {
        None | Some(Compression::None) => true,
        Some(Compression::Zstd) => config.sink == SinkKind::Kafka,
        Some(Compression::Gzip) => config.sink == SinkKind::Otlp,
    };
    if !fits {
        return conflict(
            "compression does not go with the sink",
            "zstd is for kafka, gzip for otlp",
        );
    }
    if config.tls_cert.is_some() != config.tls_key.is_some() {
        return conflict(
            "only one of tls_cert and tls_key is set",
            "set both, or neither",
        );
    }

    Ok(())
}

#[cfg(test)]
mod tests;
