//! Compares documents with the facts of ECS in `tests/schema`.

use super::events::here;
use serde_json::Value;
use std::collections::HashMap;

/// A field: its type, and the values that it may have (none: any).
struct Field {
    kind: String,
    values: Vec<String>,
}

/// ECS's definitions of the fields that Tarsier uses.
pub(crate) struct EcsFacts {
    fields: HashMap<String, Field>,
    categories: HashMap<String, Vec<String>>,
}

/// Fields that every event has: those that ECS asks of all, and those that keep it.
const REQUIRED: [&str; 9] = [
    "@timestamp",
    "ecs.version",
    "event.kind",
    "event.action",
    "event.outcome",
    "event.id",
    "event.original",
    "host.name",
    "event.dataset",
];

impl EcsFacts {
    /// The facts of the version that documents name.
    pub(crate) fn read() -> EcsFacts {
        EcsFacts::of("9.4.0")
    }

    /// The facts of a version.
    pub(crate) fn of(version: &str) -> EcsFacts {
        let path = here(&format!("tests/schema/ecs-{version}.txt"));
        let text = std::fs::read_to_string(path).expect("the facts");
        let mut facts = EcsFacts {
            fields: HashMap::new(),
            categories: HashMap::new(),
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ').map(str::to_owned);
            let mut next = || words.next().expect("a word");
            let first = next();
            match first.as_str() {
                "category" => {
                    let name = next();
                    facts.categories.insert(name, words.collect());
                }
                _ => {
                    let name = if first == "custom" { next() } else { first };
                    let kind = next();
                    let values = words.collect();
                    facts.fields.insert(name, Field { kind, values });
                }
            }
        }
        facts
    }

    /// Errors in a document.
    pub(crate) fn errors(&self, document: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.walk("", document, &mut errors);
        for name in REQUIRED {
            let pointer = format!("/{}", name.replace('.', "/"));
            if document.pointer(&pointer).is_none() {
                errors.push(format!("{name}: required"));
            }
        }
        let list = |name: &str| -> Vec<String> {
            let list = document["event"][name].as_array();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            list.map(|list| list.iter().map(text).collect())
                .unwrap_or_default()
        };
        let types = list("type");
        // Each type goes with one of the categories.
        let categories = list("category");
        for kind in &types {
            let goes = |category: &String| {
                self.categories
                    .get(category)
                    .is_some_and(|known| known.contains(kind))
            };
            if !categories.iter().any(goes) {
                errors.push(format!("event.type {kind} is of none of {categories:?}"));
            }
        }
        errors
    }

    /// Errors in a document with Auditbeat's words, which pair categories and types as Auditbeat does.
    pub(crate) fn errors_of_auditbeat(&self, document: &Value) -> Vec<String> {
        let mut errors = self.errors(document);
        errors.retain(|error| !error.contains("is of none of"));
        errors
    }

    fn walk(&self, place: &str, value: &Value, errors: &mut Vec<String>) {
        if let Value::Object(object) = value {
            for (name, value) in object {
                let place = match place {
                    "" => name.clone(),
                    _ => format!("{place}.{name}"),
                };
                self.walk(&place, value, errors);
            }
            return;
        }
        let below = || {
            let (above, _) = place.rsplit_once('.')?;
            self.fields.get(&format!("{above}.*"))
        };
        let Some(field) = self.fields.get(place).or_else(below) else {
            // A list of objects, as Auditbeat has paths.
            match value {
                Value::Array(items) if items.iter().all(Value::is_object) => {
                    items.iter().for_each(|item| self.walk(place, item, errors));
                }
                _ => errors.push(format!("{place}: no such field")),
            }
            return;
        };
        if let Some(kind) = field.kind.strip_suffix('*') {
            match value {
                Value::Array(items) => items
                    .iter()
                    .for_each(|item| field.check(place, kind, item, errors)),
                item => field.check(place, kind, item, errors),
            }
            return;
        }
        match (field.kind.strip_suffix("[]"), value) {
            (Some(kind), Value::Array(items)) => {
                for item in items {
                    field.check(place, kind, item, errors);
                }
            }
            (Some(_), _) => errors.push(format!("{place}: {value} is no list")),
            (None, _) => field.check(place, &field.kind, value, errors),
        }
    }
}

impl Field {
    fn check(&self, place: &str, kind: &str, value: &Value, errors: &mut Vec<String>) {
        let is_right = match (kind, value) {
            ("text", Value::String(_)) => true,
            ("long", Value::Number(number)) => number.is_i64() || number.is_u64(),
            ("ip", Value::String(text)) => text.parse::<std::net::IpAddr>().is_ok(),
            ("date", Value::String(text)) => text.parse::<jiff::Timestamp>().is_ok(),
            _ => false,
        };
        if !is_right {
            errors.push(format!("{place}: {value} is no {kind}"));
        }
        let text = value.as_str().unwrap_or_default();
        if !self.values.is_empty() && !self.values.iter().any(|known| known == text) {
            errors.push(format!("{place}: {value} is none of {:?}", self.values));
        }
    }
}
