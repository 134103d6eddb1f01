//! The usual tools read the log without a warning.

use crate::{log, machine, programs, workload};
use std::path::Path;

/// The message of these tools if auditd is not installed.
const NO_AUDITD_CONF: &str = "Config file /etc/audit/auditd.conf doesn't exist, skipping";

/// The standard output of a tool, which must not print warnings.
fn read(program: &str, log: &Path, options: &[&str]) -> String {
    let mut command = programs::peer(program);
    command.arg("-if").arg(log).args(options);
    let (out, err) = programs::output_of(&mut command);
    let warnings: Vec<&str> = err.lines().filter(|line| *line != NO_AUDITD_CONF).collect();
    assert_eq!(warnings, Vec::<&str>::new(), "{program}");
    out
}

fn tools_read(name: &str, format: &str) {
    machine::test(name, |setup| {
        if testkit::peers(name).is_none() {
            return;
        }
        let ended = workload::record(setup, &workload::rules(&programs::workload()), format);
        let events = log::events(&ended.log);
        let records: usize = events.iter().map(|event| event.records.len()).sum();

        let interpreted = read("ausearch", &ended.log, &["-i"]);
        let found = interpreted.lines().filter(|line| *line == "----").count();
        assert_eq!(found, events.len(), "events of ausearch -i");
        let raw = read("ausearch", &ended.log, &["--raw"]);
        assert_eq!(raw.lines().count(), records, "records of ausearch --raw");
        let keyed = read("ausearch", &ended.log, &["-k", "all", "--raw"]);
        let all = events.iter().filter_map(log::Event::brief);
        let all = all.filter(|brief| brief.ends_with(" all") || brief.ends_with(" all32"));
        let found = log::calls(&keyed).len();
        assert_eq!(found, all.count(), "events of ausearch -k");

        let summary = read("aureport", &ended.log, &["--summary"]);
        let total = summary
            .lines()
            .find_map(|line| line.strip_prefix("Number of events: "))
            .map(|count| count.trim().parse::<usize>());
        assert_eq!(total, Some(Ok(events.len())), "{summary}");
        for report in ["-s", "-f", "-x", "-e", "-k"] {
            read("aureport", &ended.log, &[report, "-i"]);
        }

        let script = setup.write("walk.py", AUPARSE);
        let mut python = programs::peer("python3");
        python.arg(script).arg(&ended.log);
        let (counts, err) = programs::output_of(&mut python);
        assert_eq!(err, "", "python3 auparse");
        assert_eq!(counts, format!("{} {records}\n", events.len()), "auparse");
    });
}

/// Walks over all events, records and fields. For a name that is not UTF-8 the binding itself
/// fails, but still returns the text of the log.
const AUPARSE: &str = r#"
import sys
import auparse

parser = auparse.AuParser(auparse.AUSOURCE_FILE, sys.argv[1])
events = records = 0
while parser.parse_next_event():
    events += 1
    parser.first_record()
    while True:
        records += 1
        assert parser.get_type_name(), "a record without a type"
        parser.first_field()
        while True:
            name = parser.get_field_name()
            assert name, "a field without a name"
            text = parser.get_field_str()
            assert text is not None or name == "key", name
            try:
                parser.interpret_field()
            except UnicodeDecodeError:
                pass
            if not parser.next_field():
                break
        if not parser.next_record():
            break
print(events, records)
"#;

#[test]
fn ausearch_aureport_and_auparse_read_the_raw_log_without_a_warning() {
    tools_read("readers, RAW", "raw");
}

#[test]
fn ausearch_aureport_and_auparse_read_the_enriched_log_without_a_warning() {
    tools_read("readers, ENRICHED", "enriched");
}
