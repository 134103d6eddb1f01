//! Responses: what a server took.

use serde_json::Value as Json;

use super::protobuf::{fields, Value};

/// What a response says of a partial success: how many records were rejected, and why or what else.
pub(super) fn partial(answer: &[u8]) -> (u64, Option<String>) {
    if answer.first() == Some(&b'{') {
        let object: Json = serde_json::from_slice(answer).unwrap_or_default();
        let partial = &object["partialSuccess"];
        let count = &partial["rejectedLogRecords"];
        // Numbers of 64 bits are strings in JSON of protobuf.
        let count = count.as_u64().or_else(|| count.as_str()?.parse().ok());
        let text = partial["errorMessage"]
            .as_str()
            .filter(|text| !text.is_empty());
        return (count.unwrap_or(0), text.map(str::to_owned));
    }

    let (mut count, mut remark) = (0, None);
    for (number, value) in fields(answer) {
        let (1, Value::Bytes(partial)) = (number, value) else {
            continue;
        };
        for field in fields(partial) {
            match field {
                (1, Value::Number(rejected)) => count = rejected,
                (2, Value::Bytes(text)) if !text.is_empty() => {
                    remark = Some(String::from_utf8_lossy(text).into_owned());
                }
                _ => {}
            }
        }
    }

    (count, remark)
}

#[cfg(test)]
mod tests {
    use super::super::protobuf::{field, text, varint};
    use super::*;

    #[test]
    fn a_partial_success_is_read_with_the_servers_text() {
        let (mut inner, mut answer) = (Vec::new(), Vec::new());
        varint(1 << 3, &mut inner);
        varint(300, &mut inner);
        text(2, b"too old", &mut inner);
        field(1, &inner, &mut answer);
        let said = (300, Some("too old".to_owned()));
        assert_eq!(partial(&answer), said);
        let json = br#"{"partialSuccess":{"rejectedLogRecords":"300","errorMessage":"too old"}}"#;
        assert_eq!(partial(json), said);
        assert_eq!(partial(b""), (0, None));
        assert_eq!(partial(&[0xff; 20]), (0, None));
    }
}
