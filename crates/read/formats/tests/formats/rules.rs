//! Terms of detection rules (`rules.txt`) find the events that are made for them (`rules.log`).

use super::events::{events, here, Sample};
use serde_json::Value;
use std::fs;

/// One comparison: a field, whether it has to be equal, and the values.
struct Term {
    field: String,
    is_equal: bool,
    values: Vec<String>,
}

/// Splits `A=b C!=d|e F="g h"`.
fn terms(text: &str) -> Vec<Term> {
    let mut words: Vec<String> = vec![String::new()];
    let mut is_quoted = false;
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            other => words.last_mut().expect("a word").push(other),
        }
    }
    let term = |word: &String| {
        let (field, values) = word.split_once('=').expect("a comparison");
        Term {
            field: field.trim_end_matches('!').to_owned(),
            is_equal: !field.ends_with('!'),
            values: values.split('|').map(str::to_owned).collect(),
        }
    };
    words
        .iter()
        .filter(|word| !word.is_empty())
        .map(term)
        .collect()
}

/// Whether text has the form of a pattern, in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().expect("a part");
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        last = Some(part);
        rest = &rest[at + part.len()..];
    }
    match last {
        None => rest.is_empty(),
        Some(part) => text.ends_with(part),
    }
}

/// The texts of a field with dots.
fn texts(document: &Value, field: &str) -> Vec<String> {
    let mut value = document;
    for part in field.split('.') {
        match value.get(part) {
            Some(inner) => value = inner,
            None => return Vec::new(),
        }
    }
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    match value {
        Value::Array(list) => list.iter().map(text).collect(),
        value => vec![text(value)],
    }
}

fn holds(document: &Value, terms: &[Term]) -> bool {
    terms.iter().all(|term| {
        let found = texts(document, &term.field);
        let any = found
            .iter()
            .any(|text| term.values.iter().any(|value| fits(value, text)));
        any == term.is_equal
    })
}

/// The records of an event as rules on auditd's own fields see them.
fn records(document: &Value) -> Vec<Value> {
    let records = document["records"].as_array().expect("records");
    let flat = |record: &Value| {
        let mut flat = record.clone();
        for (number, argument) in record["argv"].as_array().into_iter().flatten().enumerate() {
            flat[format!("a{number}")] = argument.clone();
        }
        for (name, value) in record["msg_fields"].as_object().into_iter().flatten() {
            flat[name.as_str()] = value.clone();
        }
        flat
    };
    records.iter().map(flat).collect()
}

#[test]
fn terms_of_rules_find_the_events_made_for_them() {
    let samples = events(&fs::read(here("tests/formats/rules.log")).expect("the events"));
    let text = fs::read_to_string(here("tests/formats/rules.txt")).expect("the terms");
    let mut checked = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (head, comparisons) = line.split_once(": ").expect("a row");
        let mut words = head.split(' ');
        let serial: u64 = words
            .next()
            .and_then(|word| word.parse().ok())
            .expect("a serial");
        let format = words.next().expect("a format");
        let terms = terms(comparisons);
        let sample = samples
            .iter()
            .find(|sample| sample.stamp.serial == serial)
            .expect("the event");
        let finds = |sample: &Sample| {
            let document = sample.map(format);
            match format {
                "json" => records(&document)
                    .iter()
                    .any(|record| holds(record, &terms)),
                _ => holds(&document, &terms),
            }
        };
        assert!(
            finds(sample),
            "{line}\n{}\n{:#}",
            sample.text(),
            sample.map(format)
        );

        // The terms tell the event from most others.
        let found = samples.iter().filter(|sample| finds(sample)).count();
        assert!(
            found * 4 < samples.len(),
            "{line}: finds {found} of {}",
            samples.len()
        );
        checked += 1;
    }
    assert!(checked >= 45, "{checked}");
}

#[test]
fn a_term_does_not_find_what_it_should_not() {
    let document = serde_json::json!({"a": {"b": ["x", "yz"]}, "c": 7});
    for (text, is) in [
        ("a.b=x", true),
        ("a.b=y*", true),
        ("a.b=y", false),
        ("a.b=*z c=7", true),
        ("c!=7", false),
        ("d!=7", true),
        ("d=7", false),
        ("c=6|7", true),
        ("a.b=*q*", false),
    ] {
        assert_eq!(holds(&document, &terms(text)), is, "{text}");
    }
}
