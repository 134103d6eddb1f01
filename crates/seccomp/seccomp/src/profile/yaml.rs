//! YAML with one or several documents, as Kubernetes has it.

use super::members::Noted;
use super::ProfileError;
use serde_json::Value;

/// A document, with the text that it is alone in, on the same lines as in the whole.
struct Document {
    value: Value,
    notes: Vec<String>,
    text: String,
}

impl Document {
    fn is_profile(&self) -> bool {
        self.value.get("kind").and_then(Value::as_str) == Some("SeccompProfile")
    }

    fn name(&self) -> &str {
        let name = self.value.get("metadata").and_then(|it| it.get("name"));
        name.and_then(Value::as_str).unwrap_or("")
    }
}

/// Parses a whole text: its only document, or its only SeccompProfile.
pub(super) fn read(text: &str) -> Result<Noted, ProfileError> {
    let mut documents = documents(text)?;
    if documents.len() > 1 {
        documents.retain(Document::is_profile);
    }
    let names: Vec<&str> = documents.iter().map(Document::name).collect();
    if names.len() > 1 {
        return Err(ProfileError::new(
            "SeccompProfile",
            names.join(", "),
            "one of them",
            format!("write its name after the file: FILE#{}", names[0]),
        ));
    }

    let only = documents
        .pop()
        .map(|Document { value, notes, .. }| Noted { value, notes });

    only.ok_or_else(|| {
        ProfileError::new(
            "kind",
            "no such document",
            "SeccompProfile",
            "give a file with one",
        )
    })
}

/// The SeccompProfile of this name in a text with several, as a text of its own.
///
/// # Errors
/// The text is no YAML, or has no such document.
pub fn named(text: &str, name: &str) -> Result<String, ProfileError> {
    let mut documents = documents(text)?;
    documents.retain(Document::is_profile);
    let found = documents.iter().position(|it| it.name() == name);
    let Some(index) = found else {
        let names: Vec<&str> = documents.iter().map(Document::name).collect();
        return Err(ProfileError::new(
            "SeccompProfile",
            name,
            &if names.is_empty() {
                "a file with a SeccompProfile".to_owned()
            } else {
                names.join(", ")
            },
            "correct the name after #",
        ));
    };

    Ok(documents.swap_remove(index).text)
}

/// The documents of a text that are not empty; of a list, as `kubectl get` prints it, its items.
fn documents(text: &str) -> Result<Vec<Document>, ProfileError> {
    let mut found = Vec::new();
    let mut before = 0;
    let mut own = String::new();
    let mut rows = text.split_inclusive('\n').enumerate().peekable();

    while let Some((row, line)) = rows.next() {
        let is_marker = |line: &str| line.trim_end() == "---" || line.starts_with("--- ");
        if is_marker(line) {
            own.clear();
            before = row;
        }
        own.push_str(line);
        if rows.peek().is_none_or(|row| is_marker(row.1)) {
            add(&format!("{}{own}", "\n".repeat(before)), &mut found)?;
        }
    }

    Ok(found)
}

fn add(text: &str, found: &mut Vec<Document>) -> Result<(), ProfileError> {
    let document = serde_yaml_ng::Deserializer::from_str(text);
    let Noted { value, notes } = Noted::read(document).map_err(|error| not_yaml(&error))?;
    match value.get("items").and_then(Value::as_array) {
        _ if value.is_null() => {}
        Some(items) => found.extend(items.iter().map(|item| Document {
            value: item.clone(),
            notes: notes.clone(),
            text: item.to_string(),
        })),
        None => found.push(Document {
            value,
            notes,
            text: text.to_owned(),
        }),
    }

    Ok(())
}

fn not_yaml(error: &serde_yaml_ng::Error) -> ProfileError {
    let place = error.location();
    let message = error.to_string();
    ProfileError::Yaml {
        line: place.as_ref().map_or(1, |place| place.line().max(1)),
        column: place.as_ref().map_or(1, |place| place.column().max(1)),
        message: message
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}
