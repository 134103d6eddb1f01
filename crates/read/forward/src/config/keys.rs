//! The keys, with what the manual says of each.

use std::time::Duration;

use super::values::{action, bytes, list, path, time, word, words, wrong, yes_no, Wrong};
use super::{Auth, Compression, Config, EcsFlavour, OtlpBody, OtlpProtocol, SinkKind, Start};
use crate::format::FORMATS;

type Apply = fn(&mut Config, &str) -> Result<(), Wrong>;

/// A key as the manual describes it.
#[derive(Clone, Copy, Debug)]
pub struct KeyDescription {
    /// The key.
    pub name: &'static str,
    /// Value that holds if the key is not set.
    pub default: &'static str,
    /// Purpose of the key, and its values.
    pub text: &'static str,
}

struct Key {
    name: &'static str,
    default: &'static str,
    text: &'static str,
    apply: Apply,
}

const SINKS: &[(&str, SinkKind)] = &[
    ("kafka", SinkKind::Kafka),
    ("nats", SinkKind::Nats),
    ("otlp", SinkKind::Otlp),
    ("file", SinkKind::File),
    ("stdout", SinkKind::Stdout),
];

const AUTHS: &[(&str, Auth)] = &[
    ("none", Auth::None),
    ("plain", Auth::Plain),
    ("scram-sha-256", Auth::ScramSha256),
    ("scram-sha-512", Auth::ScramSha512),
    ("password", Auth::Password),
    ("token", Auth::Token),
    ("nkey", Auth::Nkey),
];

const COMPRESSIONS: &[(&str, Compression)] = &[
    ("none", Compression::None),
    ("zstd", Compression::Zstd),
    ("gzip", Compression::Gzip),
];

const FLAVOURS: &[(&str, EcsFlavour)] = &[
    ("tarsier", EcsFlavour::Tarsier),
    ("auditbeat", EcsFlavour::Auditbeat),
];

const BODIES: &[(&str, OtlpBody)] = &[
    ("text", OtlpBody::Text),
    ("structured", OtlpBody::Structured),
];

/// Words of OTEL_EXPORTER_OTLP_PROTOCOL.
const PROTOCOLS: &[(&str, OtlpProtocol)] = &[
    ("http/protobuf", OtlpProtocol::Http),
    ("grpc", OtlpProtocol::Grpc),
];

/// Headers that requests have of their own, besides `grpc-…`.
const OWN_HEADERS: [&str; 7] = [
    "te",
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
];

const DAY: Duration = Duration::from_secs(86_400);

macro_rules! keys {
    ($($name:ident, $default:literal, $text:literal, $apply:expr;)*) => {
        const KEYS: &[Key] = &[$(Key {
            name: stringify!($name), default: $default, text: $text, apply: $apply,
        }),*];
    };
}

keys! {
    log_file, "/var/log/audit/audit.log", "log to follow, in RAW, ENRICHED or JSON",
        |c, v| path(v).map(|x| c.log_file = x);
    spool, "forward, beside the log",
        "directory of links and cursor, on the log's file system",
        |c, v| path(v).map(|x| c.spool = Some(x));
    start, "oldest", "where the first start begins: `oldest` file, or `now`",
        |c, v| word(v, &[("oldest", Start::Oldest), ("now", Start::Now)]).map(|x| c.start = x);
    host, "the system's name", "name of this host at the far side",
        host;
    sink, "stdout", "`kafka`, `nats`, `otlp`, `file` or `stdout`",
        |c, v| word(v, SINKS).map(|x| c.sink = x);
    format, "raw", "what an event looks like",
        format_name;
    ecs_flavour, "tarsier", "words of `format = ecs`: `tarsier`, or `auditbeat` for Elastic's rules",
        |c, v| word(v, FLAVOURS).map(|x| c.ecs_flavour = x);
    server, "none", "`HOST:PORT`, several with commas; otlp: a URL",
        |c, v| { c.server = list(v); Ok(()) };
    topic, "audit", "kafka: the topic",
        |c, v| { c.topic = v.into(); Ok(()) };
    partition, "by hash of the host", "kafka: the partition",
        |c, v| v.parse().map(|x| c.partition = Some(x)).map_err(|_| wrong(v, "a number"));
    subject, "audit.%h", "nats: the subject of this host alone; `%h` is the host",
        subject;
    path, "none", "file: the file",
        |c, v| path(v).map(|x| c.path = x);
    envelope, "no", "file, stdout: JSON around each line, with positions and counts",
        |c, v| yes_no(v).map(|x| c.envelope = x);
    tls, "no", "kafka, nats: TLS; otlp: by the URL",
        |c, v| yes_no(v).map(|x| c.tls = x);
    tls_ca, "/etc/ssl/certs/ca-certificates.crt", "PEM file of trusted authorities",
        |c, v| path(v).map(|x| c.tls_ca = x);
    tls_cert, "none", "PEM file of this host's certificate",
        |c, v| path(v).map(|x| c.tls_cert = Some(x));
    tls_key, "none", "PEM file of its key",
        |c, v| path(v).map(|x| c.tls_key = Some(x));
    auth, "none",
        "`plain`, `scram-sha-256`, `scram-sha-512`, `password`, `token`, `nkey`",
        |c, v| word(v, AUTHS).map(|x| c.auth = x);
    user, "none", "name of the user",
        |c, v| { c.user = v.into(); Ok(()) };
    secret_file, "none", "file with password, token or seed",
        |c, v| path(v).map(|x| c.secret_file = Some(x));
    headers, "none", "otlp: further headers, `NAME: VALUE` with commas between them",
        |c, v| headers(v).map(|x| c.headers = x);
    secret_header, "none", "otlp: header that has the secret, such as `api-key`",
        |c, v| header_name(v).map(|x| c.secret_header = Some(x));
    otlp_protocol, "http/protobuf", "otlp: `http/protobuf`, or `grpc`",
        |c, v| word(v, PROTOCOLS).map(|x| c.otlp_protocol = x);
    otlp_body, "text", "otlp: `text`, or `structured` (a map; not with `format = raw`)",
        |c, v| word(v, BODIES).map(|x| c.otlp_body = x);
    compression, "zstd, gzip (kafka, otlp)", "`none`, `zstd`, `gzip`",
        |c, v| word(v, COMPRESSIONS).map(|x| c.compression = Some(x));
    batch_bytes, "1M (nats: 512K)", "size of a batch, before compression",
        |c, v| bytes(v, 1024, 16 << 20).map(|x| c.batch_bytes = Some(x as usize));
    linger, "200ms", "how long an event waits for others",
        |c, v| time(v, Duration::from_secs(60)).map(|x| c.linger = x);
    timeout, "10s", "how long a server has to answer",
        |c, v| time(v, Duration::from_secs(300)).map(|x| c.timeout = x.max(MIN_TIMEOUT));
    filter_keys, "all", "send events with these keys; `!KEY`: those without",
        |c, v| words(v).map(|x| c.filter_keys = x);
    filter_types, "all", "the same with types of records",
        |c, v| words(v).map(|x| c.filter_types = x);
    aggregate_keys, "none",
        "keys of events that are counted if the batch has one like them",
        |c, v| words(v).map(|x| c.aggregate_keys = x);
    urgent_keys, "none", "keys of events that do not wait for `linger`",
        |c, v| words(v).map(|x| c.urgent_keys = x);
    hold, "20G", "bytes of the log that may wait to be sent",
        |c, v| bytes(v, 1, 1 << 50).map(|x| c.hold_bytes = x);
    overflow_action, "syslog", "what is done when more wait",
        |c, v| action(v).map(|x| c.overflow_action = x);
    network_failure_action, "syslog", "what is done when nothing can be sent",
        |c, v| action(v).map(|x| c.network_failure_action = x);
    network_failure_after, "60s", "after how long",
        |c, v| time(v, DAY).map(|x| c.network_failure_after = x);
    metrics_file, "none", "file for Prometheus' text collector",
        |c, v| path(v).map(|x| c.metrics_file = Some(x));
}

const MIN_TIMEOUT: Duration = Duration::from_millis(100);

/// Every key.
pub fn described_keys() -> Vec<KeyDescription> {
    let describe = |key: &Key| KeyDescription {
        name: key.name,
        default: key.default,
        text: key.text,
    };
    KEYS.iter().map(describe).collect()
}

/// Sets the key `name`.
pub(super) fn apply(config: &mut Config, name: &str, value: &str) -> Result<(), Wrong> {
    let key = KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(name));
    let Some(key) = key else {
        let near = conf::nearest(name, KEYS.iter().map(|key| key.name));
        let expected = match near {
            Some(near) => format!("a key of this file, perhaps {near}"),
            None => "a key that docs/guide/forward.md lists".into(),
        };
        return Err((format!("unknown key {name:?}"), expected));
    };

    (key.apply)(config, value).map_err(|(found, expected)| {
        (
            format!("{} = {}", key.name, found.trim_matches('"')),
            expected,
        )
    })
}

/// Whether `text` can name a host: it is a token of a subject, a header and a line, and names a file with its key.
pub fn is_host_name(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.chars().all(is_of_host_name)
}

/// Whether a host's name may have this character.
pub fn is_of_host_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || "._-:".contains(character)
}

fn host(config: &mut Config, value: &str) -> Result<(), Wrong> {
    if is_host_name(value) {
        config.host = Some(value.into())
    } else {
        return Err(wrong(value, "a name of letters, digits and any of . _ - :"));
    }
    Ok(())
}

fn format_name(config: &mut Config, value: &str) -> Result<(), Wrong> {
    if FORMATS.contains(&value) {
        config.format = value.into()
    } else {
        return Err(wrong(value, &format!("one of {}", FORMATS.join(", "))));
    }
    Ok(())
}

/// `NAME: VALUE, NAME: VALUE`.
fn headers(value: &str) -> Result<Vec<(String, String)>, Wrong> {
    let header = |text: &str| {
        let (name, content) = text
            .split_once(':')
            .ok_or_else(|| wrong(text, "a header, such as X-Scope-OrgID: tenant1"))?;
        let content = content.trim();
        let is_fine = |c: char| c.is_ascii_graphic() || c == ' ';
        if !content.is_empty() && content.chars().all(is_fine) {
            Ok((header_name(name.trim())?, content.to_owned()))
        } else {
            Err(wrong(content, "a value of printable ASCII characters"))
        }
    };

    value.split(',').map(|text| header(text.trim())).collect()
}

/// The name of a header (a token of RFC 9110), unless requests have it of their own.
fn header_name(value: &str) -> Result<String, Wrong> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let lower = value.to_ascii_lowercase();
    let is_own = OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("grpc-");
    if !value.is_empty() && value.chars().all(is_token) && !is_own {
        Ok(value.to_owned())
    } else {
        Err(wrong(
            value,
            "the name of a header, such as api-key, that requests lack",
        ))
    }
}

fn subject(config: &mut Config, value: &str) -> Result<(), Wrong> {
    let is_fine = |c: char| c.is_ascii_graphic() && !"*>".contains(c);
    if value.chars().all(is_fine) {
        config.subject = value.into()
    } else {
        return Err(wrong(value, "a subject without blanks and wildcards"));
    }
    Ok(())
}
