//! Events of every record type that can be in a log, in the form that kernels and programs of RHEL, Debian, Ubuntu and
//! SUSE write: `tests/formats/records/THEME.log`. `THEME.txt` has what each becomes, in short; both were read by hand.

use super::events::{events, here, Sample};
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// The logs and their events.
fn themes() -> Vec<(PathBuf, Vec<Sample>)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(here("tests/formats/records"))
        .expect("the directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let samples = events(&fs::read(&path).expect("a log"));
        (path, samples)
    };
    paths.into_iter().map(read).collect()
}

/// The records of an event in the format `json`.
fn records(sample: &Sample) -> Vec<Value> {
    sample.map("json")["records"]
        .as_array()
        .expect("records")
        .clone()
}

#[test]
fn every_record_type_has_an_event() {
    let mut seen = BTreeSet::new();
    for (_, samples) in themes() {
        for record in samples.iter().flat_map(records) {
            seen.insert(record["type"].as_str().expect("a type").to_owned());
        }
    }
    for (number, name) in abi::record_type_names() {
        // EOE only ends events, and numbers from 2 on are requests to the kernel.
        let is_record = abi::record_type_name(number).is_some() && name != "EOE" && number > 1004;
        assert!(
            !is_record || seen.contains(name),
            "no event has a record {name} ({number}): add one to tests/formats/records"
        );
    }
}

/// Places of a document by what stands in them.
type Places = &'static [(&'static str, &'static [&'static str])];

const ECS_PLACES: Places = &[
    ("user", &["/user/id", "/user/name"]),
    ("audit", &["/user/audit/id", "/user/audit/name"]),
    ("effective", &["/user/effective/id"]),
    ("target", &["/user/target/id", "/user/target/name"]),
    ("group", &["/group/id", "/group/name"]),
    ("from", &["/source/ip", "/source/port", "/source/address"]),
    ("to", &["/destination/ip", "/destination/port"]),
    (
        "process",
        &["/process/pid", "/process/name", "/process/executable"],
    ),
    ("file", &["/file/path", "/file/name", "/file/inode"]),
    ("package", &["/package/name", "/package/version"]),
];

const OCSF_PLACES: Places = &[
    ("user", &["/user/uid", "/user/name"]),
    ("group", &["/group/uid", "/group/name"]),
    (
        "actor",
        &[
            "/actor/user/uid",
            "/actor/process/pid",
            "/actor/process/name",
        ],
    ),
    (
        "src",
        &[
            "/src_endpoint/ip",
            "/src_endpoint/port",
            "/src_endpoint/hostname",
        ],
    ),
    ("dst", &["/dst_endpoint/ip", "/dst_endpoint/port"]),
    ("app", &["/app/name", "/app/version"]),
    ("before", &["/prev_security_states"]),
    ("after", &["/security_states"]),
    ("evidences", &["/evidences"]),
];

/// The text at a pointer; `-` for nothing.
fn at(document: &Value, pointer: &str) -> String {
    match document.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "-".to_owned(),
    }
}

/// What happened according to ECS.
fn what(document: &Value) -> String {
    let names = ["action", "category", "type", "outcome"];
    names
        .map(|name| at(document, &format!("/event/{name}")))
        .join(" ")
}

/// The places of a document that have something.
fn listed(places: Places, document: &Value) -> String {
    let mut text = String::new();
    for (name, pointers) in places {
        let values: Vec<String> = pointers
            .iter()
            .map(|pointer| at(document, pointer))
            .collect();
        if values.iter().any(|value| value != "-") {
            let _ = write!(text, " {name}={}", values.join("/"));
        }
    }
    text
}

/// What an event becomes, on a few lines.
fn short(sample: &Sample) -> String {
    let (ecs, ocsf) = (sample.map("ecs"), sample.map("ocsf"));
    let beat = sample.map("ecs-auditbeat");
    let mut out = String::new();
    let kinds = at(&ecs, "/auditd/record_types");
    let _ = writeln!(out, "{} {kinds}", at(&ecs, "/event/sequence"));
    let _ = writeln!(out, "  ecs   {}", what(&ecs));
    let _ = writeln!(out, "  beat  {}", what(&beat));
    let _ = writeln!(out, "   {}", listed(ECS_PLACES, &ecs));
    let names = [
        "class_name",
        "activity_name",
        "severity",
        "status",
        "action_id",
    ];
    let head: Vec<String> = names
        .iter()
        .map(|name| at(&ocsf, &format!("/{name}")))
        .collect();
    let _ = writeln!(
        out,
        "  ocsf  {}{}",
        head.join(", "),
        listed(OCSF_PLACES, &ocsf)
    );
    out
}

#[test]
fn every_event_becomes_what_was_read_and_found_right() {
    let writes = std::env::var_os("TARSIER_WRITE_CORPUS").is_some();
    for (path, samples) in themes() {
        let found: String = samples.iter().map(short).collect();
        let expected = path.with_extension("txt");
        if writes {
            fs::write(&expected, &found).expect("written");
        }
        let text = fs::read_to_string(&expected).unwrap_or_default();
        for (is, should) in found.lines().zip(text.lines()) {
            assert_eq!(should, is, "{}", expected.display());
        }
        assert_eq!(text.len(), found.len(), "{}", expected.display());
    }
}

/// Values that say that nothing is known, and are left out.
fn says_nothing(value: &Value) -> bool {
    let unset = Value::from(u32::MAX);
    let words = ["", "?", "(none)", "(null)", "(unknown)", "unset"];
    *value == unset || value.is_null() || value.as_str().is_some_and(|text| words.contains(&text))
}

/// Every text, number and list in a document, but for the copy of the lines.
fn leaves(value: &Value, out: &mut HashSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if name != "original" && name != "raw_data" {
                    leaves(value, out);
                }
            }
        }
        Value::Array(list) => {
            let texts: Vec<String> = list
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            out.insert(texts.join(" "));
            list.iter().for_each(|value| leaves(value, out));
        }
        Value::String(text) => {
            out.insert(text.clone());
        }
        other => {
            out.insert(other.to_string());
        }
    }
}

/// Fields of an event whose values are nowhere in a document.
fn lost(sample: &Sample, json: &Value, format: &str) -> Vec<String> {
    let mut there = HashSet::new();
    leaves(&sample.map(format), &mut there);
    let mut lost = Vec::new();
    let mut check = |name: &str, value: &Value, is_sentence: bool| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(list) => {
                let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                texts.join(" ")
            }
            other => other.to_string(),
        };
        let is_register = name.len() == 2 && name.starts_with('a');
        let bare = if is_register {
            text.strip_prefix("0x").unwrap_or(&text)
        } else {
            &text
        };
        // `(enforcing=0)`: the parentheses are of the sentence around it.
        let bare = if is_sentence {
            bare.trim_end_matches([')', ','])
        } else {
            bare
        };
        // Auditbeat has the name of an error in place of its number.
        let is_error = format == "ecs-auditbeat" && name == "exit" && text.starts_with('-');
        if !says_nothing(value) && !there.contains(bare) && !is_error {
            lost.push(format!("{name}={text}"));
        }
    };
    for record in json["records"].as_array().expect("records") {
        for (name, value) in record.as_object().expect("a record") {
            match (name.as_str(), value) {
                ("msg", _) if record.get("msg_fields").is_some() => {}
                ("saddr_fam", _) if format == "ecs-auditbeat" => {}
                ("msg_fields", Value::Object(fields)) => {
                    let is_sentence = fields.keys().any(|name| name.starts_with('('));
                    let check = |(name, value): (&String, &Value)| check(name, value, is_sentence);
                    fields.iter().for_each(check);
                }
                _ => check(name, value, false),
            }
        }
    }
    if let Some(names) = json["names"].as_object() {
        for (name, value) in names {
            let is_decoded = matches!(name.as_str(), "ARCH" | "SYSCALL" | "SADDR");
            if !is_decoded
                && !value
                    .as_str()
                    .is_some_and(|text| text.starts_with("unknown("))
            {
                check(name, value, false);
            }
        }
    }
    lost
}

#[test]
fn every_field_of_every_record_arrives() {
    let mut checked = 0;
    let extra = super::CORPORA.iter().filter(|dir| !dir.contains("fuzz"));
    let corpora = extra.flat_map(|dir| super::events::of(dir));
    let samples = themes()
        .into_iter()
        .flat_map(|(_, samples)| samples)
        .chain(corpora);
    for sample in samples {
        let json = sample.map("json");
        for format in ["ecs", "ecs-auditbeat", "ocsf"] {
            let lost = lost(&sample, &json, format);
            assert!(
                lost.is_empty(),
                "{format} lost {lost:?} of\n{}",
                sample.text()
            );
            checked += 1;
        }
    }
    assert!(checked > 5000, "{checked}");
}

/// The account that the text of a program names, as far as it has one: `acct=`, `id=` or `uid=`.
fn named_inside(sample: &Sample) -> Option<(Option<String>, Option<String>)> {
    let records = records(sample);
    let fields = records.iter().find_map(|record| record.get("msg_fields"))?;
    let text = |name: &str| {
        let value = fields.get(name).filter(|value| !says_nothing(value))?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    };
    let name = text("acct").filter(|acct| !acct.starts_with('(') && acct != "UNKNOWN");
    Some((text("id").or_else(|| text("uid")), name))
}

#[test]
fn nothing_fills_a_hole_of_somebody_else() {
    let mut checked = 0;
    for (path, samples) in themes() {
        for sample in samples {
            let ecs = sample.map("ecs");
            let category = ecs["event"]["category"][0].as_str().unwrap_or_default();
            let target = match category {
                "authentication" | "session" if !sample.text().contains("type=LOGIN ") => {
                    &ecs["user"]
                }
                "iam" => &ecs["user"]["target"],
                _ => continue,
            };
            let (id, name) = named_inside(&sample).unwrap_or_default();
            let text = sample.text();
            let is_group = ecs["event"]["type"][0] == "group";
            for (field, inside) in [("id", id), ("name", name)] {
                let found = target[field].as_str().map(str::to_owned);
                // A group's record has the group in these fields; names may also be ENRICHED's.
                let is_named =
                    text.contains(&format!("=\"{}\"", found.clone().unwrap_or_default()));
                let is_right = match (&found, &inside) {
                    (found, inside) if found == inside => true,
                    (Some(_), None) => field == "name" && is_named,
                    (None, Some(_)) => is_group,
                    // gpasswd's sentence names the member, and `acct=` the group.
                    (Some(found), Some(_)) => {
                        is_group && text.contains(&format!("op=user {found} "))
                    }
                    _ => false,
                };
                assert!(
                    is_right,
                    "{}: user.{field} is {found:?}, the record names {inside:?}\n{text}",
                    path.display()
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}
