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
    pub(crate) fn read() -> EcsFacts {
        let path = here("tests/schema/ecs-9.4.0.txt");
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
        for category in list("category") {
            let known = self.categories.get(&category);
            for kind in &types {
                if !known.is_some_and(|known| known.contains(kind)) {
                    errors.push(format!("event.type {kind} is none of category {category}"));
                }
            }
        }
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
        let Some(field) = self.fields.get(place) else {
            errors.push(format!("{place}: no such field"));
            return;
        };
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
