//! Reads back what the streams hold whose subjects are the hosts'.

use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::{json, Value};

use super::{code, subject_of, Nats};
use crate::config::Config;
use crate::sink::{patiently, Held, TakeHeld};

/// Prefix of the names of our headers.
const PREFIX: &str = "Tarsier-";

/// Reads everything that the streams hold now.
pub(in crate::sink) fn read_back(config: &Config, take: &mut TakeHeld<'_>) -> Result<(), String> {
    let mut reader = Reader {
        nats: Nats::new(config, "*").map_err(|error| error.to_string())?,
        pattern: &config.subject,
    };
    for stream in reader.streams()? {
        reader
            .read(&stream, take)
            .map_err(|error| format!("stream {stream:?}: {error}"))?;
    }
    Ok(())
}

struct Reader<'a> {
    nats: Nats,
    /// Subject of a host, whose name stands for `%h`.
    pattern: &'a str,
}

impl Reader<'_> {
    /// An answer without an error, or `None` if there is no such message.
    fn ask(&mut self, api: &str, body: &Value) -> Result<Option<Value>, String> {
        let asked = patiently(|| {
            let asked = self.nats.ask_json(api, body);
            asked.map_err(|error| error.to_string())
        });
        let answer = asked?;
        match answer.get("error") {
            None | Some(Value::Null) => Ok(Some(answer)),
            Some(error) if error["err_code"].as_u64() == Some(code::NO_MESSAGE) => Ok(None),
            Some(error) => Err(self.nats.explained(error)),
        }
    }

    /// The streams with subjects of hosts.
    fn streams(&mut self) -> Result<Vec<String>, String> {
        let subject = self.nats.subject.clone();
        let answer = self.ask("$JS.API.STREAM.NAMES", &json!({ "subject": subject }))?;
        let names = answer
            .as_ref()
            .and_then(|answer| answer["streams"].as_array());
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<String> = names.map(str::to_owned).collect();

        if names.is_empty() {
            Err(format!(
                "no JetStream stream has the subject {subject:?}; check `subject` and the user's rights"
            ))
        } else {
            Ok(names)
        }
    }

    fn read(&mut self, stream: &str, take: &mut TakeHeld<'_>) -> Result<(), String> {
        let info = self.ask(&format!("$JS.API.STREAM.INFO.{stream}"), &json!({}))?;
        let last = info.and_then(|info| info["state"]["last_seq"].as_u64());
        let last = last.ok_or("the server does not say how many messages there are")?;
        let subject = self.nats.subject.clone();
        let api = format!("$JS.API.STREAM.MSG.GET.{stream}");
        let mut next = 1;
        while next <= last {
            let asked = json!({ "seq": next, "next_by_subj": subject });
            let Some(answer) = self.ask(&api, &asked)? else {
                break;
            };
            let message = &answer["message"];
            let sequence = message["seq"].as_u64().filter(|found| *found >= next);
            let sequence = sequence.ok_or_else(|| {
                format!("the server returns neither message {next} nor a later one")
            })?;
            if sequence > last {
                break;
            }
            self.message(stream, sequence, message, take)?;
            next = sequence + 1;
        }

        Ok(())
    }

    fn message(
        &self,
        stream: &str,
        sequence: u64,
        message: &Value,
        take: &mut TakeHeld<'_>,
    ) -> Result<(), String> {
        let place = format!("stream {stream:?}, message {sequence}");
        let decode = |name: &str| match message[name].as_str() {
            None => Ok(Vec::new()),
            Some(text) => BASE64_STANDARD
                .decode(text)
                .map_err(|error| format!("{place}: {name} is not base64: {error}")),
        };
        let (headers, body) = (decode("hdrs")?, decode("data")?);
        let headers = headers_of(&headers);
        let subject = message["subject"].as_str().unwrap_or("");
        let host = headers.iter().find(|(name, _)| name == "host");
        let host = host.map_or("", |(_, host)| host);

        // The server lets a host publish to its own subject only, if its rights say so.
        if !host.is_empty() && subject_of(self.pattern, host) != subject {
            return take(Held::Forged {
                place: &place,
                why: format!("it claims to be of host {host:?}, but its subject is {subject:?}"),
            });
        }

        take(Held::Message {
            place: &place,
            headers: &headers,
            body: &body,
        })
    }
}

/// Our headers, with the names that those of Kafka and of files have.
fn headers_of(text: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let ours = lines.filter_map(|(name, value)| {
        let name = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
        Some((name, value.trim().to_owned()))
    });
    ours.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_headers_are_read() {
        let text = b"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 4\r\nTarsier-Host: web1\r\n\
            Tarsier-From: 1/0/0\r\n\r\n";
        let expected = [("host", "web1"), ("from", "1/0/0")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers_of(text), expected);
        assert!(headers_of(b"\xff\xfe").is_empty());
    }
}
