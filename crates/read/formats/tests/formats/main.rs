//! Every event of the corpora has a valid form in ECS and OCSF, and known events have the expected one.

mod directories;
mod ecs_facts;
mod events;
mod fixtures;
mod lineage;
mod ocsf_facts;
mod planted;
mod records;
mod rules;

use ecs_facts::EcsFacts;
use events::Sample;
use ocsf_facts::OcsfFacts;

/// Logs whose events are mapped: what kernels wrote, what Tarsier writes, and what fuzzing begins with.
const CORPORA: [&str; 6] = [
    "../../log/record/tests/corpus",
    "../../log/compose/tests/corpus",
    "../../../fuzz/seeds/log_lines",
    "../../../fuzz/seeds/search",
    "tests/formats/events",
    "tests/formats/records",
];

#[test]
fn every_event_of_the_corpora_is_valid_ecs_and_ocsf() {
    let (ecs, ocsf) = (EcsFacts::read(), OcsfFacts::read());
    let (older_ecs, older_ocsf) = (EcsFacts::of("9.0.0"), OcsfFacts::of("1.7.0"));
    let samples: Vec<Sample> = CORPORA.iter().flat_map(|dir| events::of(dir)).collect();
    assert!(samples.len() > 2000, "{} events", samples.len());
    let mut classes = std::collections::BTreeMap::new();
    for sample in &samples {
        let (plain, auditbeat) = (sample.map("ecs"), sample.map("ecs-auditbeat"));
        let document = sample.map("ocsf");
        for (form, errors) in [
            ("ECS", ecs.errors(&plain)),
            ("ECS 9.0", older_ecs.errors(&plain)),
            ("Auditbeat", ecs.errors_of_auditbeat(&auditbeat)),
            ("Auditbeat 9.0", older_ecs.errors_of_auditbeat(&auditbeat)),
            ("OCSF", ocsf.errors(&document)),
            ("OCSF 1.7", older_ocsf.errors(&document)),
        ] {
            assert!(errors.is_empty(), "{form}: {errors:#?}\n{}", sample.text());
        }
        let class = document["class_uid"].as_u64().expect("a class");
        *classes.entry(class).or_insert(0_u32) += 1;
        assert!(sample.map("json").is_object());
    }
    // The corpora reach the classes of calls and logins; those of accounts are among the fixtures.
    for class in [0, 1001, 1003, 1005, 1007, 1008, 3001, 3002, 3006, 4001] {
        assert!(
            classes.contains_key(&class),
            "no event of class {class}: {classes:?}"
        );
    }
}

#[test]
fn a_host_without_a_name_has_the_same_classes() {
    let facts = OcsfFacts::read();
    for sample in events::of("tests/formats/records") {
        let (named, unnamed) = (sample.map("ocsf"), sample.map_on("", "ocsf"));
        let text = sample.text();
        assert_eq!(named["class_uid"], unnamed["class_uid"], "{text}");
        assert_eq!(facts.errors(&unnamed), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn an_event_has_its_lines_whatever_they_are() {
    for text in [
        "type=NO_SUCH_TYPE msg=audit(1795229630.644:45): secret=1 words",
        "type=UNKNOWN[1999] msg=audit(1795229630.644:45): secret=1",
        "no record at all",
        "{\"time\":1.5,\"serial\":3,\"records\":7}",
        "{\"type\":\"USER\",\"text\":\"no stamp\"}",
        "{broken",
    ] {
        let sample = Sample::new(text.as_bytes().to_vec());
        assert_eq!(sample.map("ecs")["event"]["original"], text);
        let document = sample.map("ocsf");
        assert_eq!(document["raw_data"], text);
        assert_eq!(document["class_uid"], 0, "{text}");
        assert_eq!(OcsfFacts::read().errors(&document), Vec::<String>::new());
        assert_eq!(
            EcsFacts::read().errors(&sample.map("ecs")),
            Vec::<String>::new()
        );
    }
}

#[test]
fn bytes_that_are_no_text_stand_in_hex_beside_it() {
    let line = b"type=USER msg=audit(1795229630.644:45): pid=1 uid=0 msg='text=\xff\xfe'";
    let sample = Sample::new(line.to_vec());
    let hex: String = line.iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(sample.map("ecs")["auditd"]["original_hex"], hex.as_str());
    assert_eq!(sample.map("ocsf")["unmapped"]["raw_data_hex"], hex.as_str());
}

#[test]
fn a_json_log_maps_as_the_raw_log_it_came_from() {
    let samples = events::of("../../log/record/tests/corpus");
    let mut compared = 0;
    for raw in samples.iter().filter(|sample| !sample.is_enriched()) {
        let json = raw.map("json").to_string();
        let from_json = Sample {
            lines: json.into_bytes(),
            ..raw.clone()
        };
        for name in ["ecs", "ocsf"] {
            let (mut a, mut b) = (raw.map(name), from_json.map(name));
            for document in [&mut a, &mut b] {
                document["raw_data"] = "".into();
                document["event"]["original"] = "".into();
            }
            assert_eq!(a, b, "{name}: {}", raw.text());
        }
        compared += 1;
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn damaged_events_are_valid_ecs_and_ocsf_too() {
    let (ecs, ocsf) = (EcsFacts::read(), OcsfFacts::read());
    let mut checked = 0;
    for sample in events::of("tests/formats/events") {
        let step = (sample.lines.len() / 8).max(1);
        for at in (0..sample.lines.len()).step_by(step) {
            for value in [b' ', b'=', b'9', b'\n', 0xff] {
                let mut damaged = sample.clone();
                damaged.lines[at] = value;
                let text = damaged.text();
                let errors = ecs.errors(&damaged.map("ecs"));
                assert!(errors.is_empty(), "ECS: {errors:#?}\n{text}");
                let errors = ocsf.errors(&damaged.map("ocsf"));
                assert!(errors.is_empty(), "OCSF: {errors:#?}\n{text}");
                checked += 1;
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}
