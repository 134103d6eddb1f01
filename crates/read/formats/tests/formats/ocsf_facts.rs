//! Compares documents with the facts of OCSF in `tests/schema`.

use super::events::here;
use serde_json::{Map, Value};
use std::collections::HashMap;

struct Attribute {
    kind: String,
    is_required: bool,
    profile: Option<String>,
    numbers: Vec<i64>,
}

/// A class or an object.
#[derive(Default)]
struct Shape {
    /// Number of the category of a class.
    category: i64,
    attributes: HashMap<String, Attribute>,
    /// Sets of attributes of which one must be there.
    one_of: Vec<Vec<String>>,
}

/// OCSF's definitions of the classes that Tarsier uses.
pub(crate) struct OcsfFacts {
    classes: HashMap<i64, Shape>,
    objects: HashMap<String, Shape>,
}

impl OcsfFacts {
    /// The facts of the version that documents name.
    pub(crate) fn read() -> OcsfFacts {
        OcsfFacts::of("1.8.0")
    }

    /// The facts of a version.
    pub(crate) fn of(version: &str) -> OcsfFacts {
        let path = here(&format!("tests/schema/ocsf-{version}.txt"));
        let text = std::fs::read_to_string(path).expect("the facts");
        let mut facts = OcsfFacts {
            classes: HashMap::new(),
            objects: HashMap::new(),
        };
        let mut current = &mut Shape::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["class", uid, category, _] => {
                    let uid = uid.parse().expect("a number");
                    current = facts.classes.entry(uid).or_default();
                    current.category = category.parse().expect("a number");
                }
                ["object", name] => current = facts.objects.entry(name.to_owned()).or_default(),
                ["one-of", ref names @ ..] => {
                    let names = names.iter().map(|name| (*name).to_owned());
                    current.one_of.push(names.collect());
                }
                [name, kind, need, profile, ref numbers @ ..] => {
                    let number = |text: &&str| text.parse().expect("a number");
                    let attribute = Attribute {
                        kind: kind.to_owned(),
                        is_required: need == "required",
                        profile: (profile != "-").then(|| profile.to_owned()),
                        numbers: numbers.iter().map(number).collect(),
                    };
                    current.attributes.insert(name.to_owned(), attribute);
                }
                _ => panic!("{line}"),
            }
        }
        facts
    }

    /// Errors in a document.
    pub(crate) fn errors(&self, document: &Value) -> Vec<String> {
        let number = |name: &str| document[name].as_i64().unwrap_or(-1);
        let Some(class) = self.classes.get(&number("class_uid")) else {
            return vec![format!("class_uid: {} is not known", document["class_uid"])];
        };
        let mut errors = Vec::new();
        if number("category_uid") != class.category {
            errors.push("category_uid: not the one of the class".to_owned());
        }
        if number("type_uid") != number("class_uid") * 100 + number("activity_id") {
            errors.push("type_uid: not class_uid * 100 + activity_id".to_owned());
        }
        let profiles = document["metadata"]["profiles"].as_array();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let profiles: Vec<String> = profiles.into_iter().flatten().map(text).collect();
        match document {
            Value::Object(object) => self.shape("", class, object, &profiles, &mut errors),
            _ => errors.push("no object".to_owned()),
        }
        errors
    }

    fn shape(
        &self,
        place: &str,
        shape: &Shape,
        object: &Map<String, Value>,
        profiles: &[String],
        errors: &mut Vec<String>,
    ) {
        for (name, attribute) in &shape.attributes {
            let counts = attribute
                .profile
                .as_ref()
                .is_none_or(|profile| profiles.contains(profile));
            if attribute.is_required && counts && !object.contains_key(name) {
                errors.push(format!("{place}{name}: required"));
            }
            if object.contains_key(name) && !counts {
                errors.push(format!("{place}{name}: its profile is not named"));
            }
        }
        for set in &shape.one_of {
            if !set.iter().any(|name| object.contains_key(name)) {
                errors.push(format!("{place}: none of {set:?}"));
            }
        }
        for (name, value) in object {
            let place = format!("{place}{name}");
            let Some(attribute) = shape.attributes.get(name) else {
                errors.push(format!("{place}: no such attribute"));
                continue;
            };
            match (attribute.kind.strip_suffix("[]"), value) {
                (Some(kind), Value::Array(items)) => {
                    for item in items {
                        self.value(&place, kind, attribute, item, profiles, errors);
                    }
                }
                (Some(_), _) => errors.push(format!("{place}: {value} is no list")),
                (None, _) => {
                    self.value(&place, &attribute.kind, attribute, value, profiles, errors)
                }
            }
        }
    }

    fn value(
        &self,
        place: &str,
        kind: &str,
        attribute: &Attribute,
        value: &Value,
        profiles: &[String],
        errors: &mut Vec<String>,
    ) {
        let is_right = match (kind, value) {
            ("any", Value::Object(_)) | ("string", Value::String(_)) => true,
            ("boolean", Value::Bool(_)) => true,
            ("integer" | "long", Value::Number(number)) => number.is_i64(),
            ("port", Value::Number(number)) => number.as_u64().is_some_and(|port| port < 65536),
            ("ip", Value::String(text)) => text.parse::<std::net::IpAddr>().is_ok(),
            ("uuid", Value::String(text)) => {
                text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
            }
            (_, Value::Object(object)) if kind.starts_with('@') => {
                let shape = self.objects.get(&kind[1..]).expect("a known object");
                self.shape(&format!("{place}."), shape, object, profiles, errors);
                true
            }
            _ => false,
        };
        if !is_right {
            errors.push(format!("{place}: {value} is no {kind}"));
        }
        if let Some(number) = value.as_i64() {
            if !attribute.numbers.is_empty() && !attribute.numbers.contains(&number) {
                errors.push(format!("{place}: {number} is not in its enumeration"));
            }
        }
    }
}
