//! Known events beside the documents that they become: `tests/formats/events/NAME.log`, `.ecs.json`, `.ocsf.json`.

use super::events::{events, here};
use std::fs;
use std::path::PathBuf;

#[test]
fn known_events_become_the_expected_documents() {
    let writes = std::env::var_os("TARSIER_WRITE_CORPUS").is_some();
    let mut logs: Vec<PathBuf> = fs::read_dir(here("tests/formats/events"))
        .expect("the directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    logs.sort();
    assert!(logs.len() >= 16, "{}", logs.len());
    for log in logs {
        let samples = events(&fs::read(&log).expect("a log"));
        assert_eq!(samples.len(), 1, "{}: one event", log.display());
        for format in ["ecs", "ocsf"] {
            let document = samples[0].map(format);
            let found = serde_json::to_string_pretty(&document).expect("JSON") + "\n";
            let path = log.with_extension(format!("{format}.json"));
            if writes {
                fs::write(&path, &found).expect("written");
            }
            let expected = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(expected, found, "{}", path.display());
        }
    }
}
