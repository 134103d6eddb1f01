//! Tables are read back with the reader of the library.

use crate::export;
use cli::export::ExportArgs;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::fs::{self, File};
use std::path::Path;

fn args(output: &Path, logs: Vec<String>) -> ExportArgs {
    ExportArgs {
        output: output.to_owned(),
        host: Some("here".to_owned()),
        since: None,
        until: None,
        logs,
    }
}

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).expect("open")).expect("a table");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

fn field<'r>(row: &'r Row, name: &str) -> &'r Field {
    let mut columns = row.get_column_iter();
    columns.find(|(column, _)| *column == name).expect(name).1
}

fn texts(field: &Field) -> Vec<String> {
    let Field::ListInternal(list) = field else {
        panic!("{field:?}");
    };
    list.elements()
        .iter()
        .map(|each| each.to_string().trim_matches('"').to_owned())
        .collect()
}

const CALL: &str = "\
type=SYSCALL msg=audit(1795229629.588:9): arch=c000003e syscall=257 success=no exit=-13 a0=1 a1=2 a2=0 a3=0 \
items=2 ppid=4 pid=7 auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses=3 \
comm=\"cat\" exe=\"/bin/cat\" key=6B31016B32\u{1d}AUID=\"alice\" UNIT=\"ssh.service\"
type=CWD msg=audit(1795229629.588:9): cwd=\"/srv\"
type=PATH msg=audit(1795229629.588:9): item=0 name=\"a\" inode=1 nametype=NORMAL
type=PATH msg=audit(1795229629.588:9): item=1 name=2F62FF inode=1 nametype=NORMAL
";

#[test]
fn an_event_is_a_row_with_its_records() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, table) = (directory.path().join("log"), directory.path().join("table"));
    let user = "node=web1 type=USER_LOGIN msg=audit(1795229620.000:3): pid=9 uid=0 auid=1000 ses=3 \
                msg='op=login acct=\"x\" exe=\"/usr/sbin/sshd\" hostname=h addr=1.2.3.4 terminal=ssh res=success'\n";
    fs::write(&log, format!("{CALL}{user}")).expect("written");
    export(&args(&table, vec![log.display().to_string()])).expect("exported");
    let rows = rows(&table);
    assert_eq!(rows.len(), 2);
    assert_eq!(field(&rows[0], "host"), &Field::Str("web1".to_owned()));
    assert_eq!(
        field(&rows[0], "type"),
        &Field::Str("USER_LOGIN".to_owned())
    );
    assert_eq!(field(&rows[0], "ppid"), &Field::Null);
    assert_eq!(texts(field(&rows[0], "keys")), Vec::<String>::new());
    let call = &rows[1];
    for (name, wanted) in [
        ("time", Field::TimestampMillis(1_795_229_629_588)),
        ("serial", Field::Long(9)),
        ("host", Field::Str("here".to_owned())),
        ("pid", Field::Int(7)),
        ("auid", Field::Long(1000)),
        ("user", Field::Str("alice".to_owned())),
        ("syscall", Field::Str("openat".to_owned())),
        ("success", Field::Bool(false)),
        ("exit", Field::Long(-13)),
        ("cwd", Field::Str("/srv".to_owned())),
        ("unit", Field::Str("ssh.service".to_owned())),
        ("container", Field::Null),
    ] {
        assert_eq!(field(call, name), &wanted, "{name}");
    }
    assert_eq!(texts(field(call, "keys")), ["k1", "k2"]);
    assert_eq!(texts(field(call, "paths")), ["/srv/a", "/b\\xff"]);
    let records = field(call, "records").to_string();
    for text in ["SYSCALL", "item=0 name=", "AUID=", "type: \"PATH\""] {
        assert!(records.contains(text), "{text}: {records}");
    }
}

#[test]
fn logs_of_several_hosts_become_one_table_in_the_order_of_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut logs = Vec::new();
    for (number, host) in ["a", "b"].iter().enumerate() {
        let mut log = String::new();
        for event in 0..50 {
            let time = 1_795_229_629 + event * 2 + number as u64;
            log += &CALL.replace("1795229629.588:9", &format!("{time}.000:{event}"));
        }
        let path = directory.path().join(host);
        fs::write(&path, log).expect("written");
        logs.push(format!("{host}={}", path.display()));
    }
    let table = directory.path().join("table");
    export(&args(&table, logs)).expect("exported");
    let rows = rows(&table);
    assert_eq!(rows.len(), 100);
    let (mut last, mut hosts) = (0, Vec::new());
    for row in &rows {
        let Field::TimestampMillis(time) = field(row, "time") else {
            panic!("{row:?}");
        };
        assert!(*time > last);
        last = *time;
        hosts.push(field(row, "host").to_string());
    }
    assert_eq!(hosts[..4], ["\"a\"", "\"b\"", "\"a\"", "\"b\""]);
}

#[test]
fn row_groups_say_which_times_they_hold() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, table) = (directory.path().join("log"), directory.path().join("table"));
    fs::write(&log, CALL).expect("written");
    export(&args(&table, vec![log.display().to_string()])).expect("exported");
    let reader = SerializedFileReader::new(File::open(&table).expect("open")).expect("a table");
    let group = reader.metadata().row_group(0);
    let statistics = group
        .column(0)
        .statistics()
        .expect("statistics of the time");
    let wanted = 1_795_229_629_588_i64.to_le_bytes();
    assert_eq!(statistics.min_bytes_opt(), Some(&wanted[..]));
    assert_eq!(statistics.max_bytes_opt(), Some(&wanted[..]));
    assert!(group.sorting_columns().is_some());
}

#[test]
fn an_error_leaves_the_old_table() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = directory.path().join("table");
    fs::write(&table, "old").expect("written");
    let missing = directory.path().join("missing").display().to_string();
    let error = export(&args(&table, vec![missing.clone()])).expect_err("there is no log");
    assert!(format!("{error:#}").contains(&missing), "{error:#}");
    assert_eq!(fs::read(&table).expect("read"), b"old");
    assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 1);
}

#[test]
fn columns_hold_what_the_log_says_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, table) = (directory.path().join("log"), directory.path().join("table"));
    let text = "\
type=USER_LOGIN msg=audit(1700000000.100:1): pid=1298 uid=0 auid=1000 ses=1 subj=x msg='op=login id=1000 \
exe=\"/usr/sbin/sshd\" hostname=pool-1.example.net addr=198.51.100.7 terminal=/dev/pts/0 res=success'
type=SERVICE_STOP msg=audit(1700000001.100:2): pid=1 uid=0 auid=4294967295 ses=4294967295 subj=x msg='unit=auditd \
comm=\"systemd\" exe=\"/usr/lib/systemd/systemd\" hostname=? addr=? terminal=? res=success'
type=ADD_USER msg=audit(1700000002.100:3): pid=2945 uid=0 auid=1000 ses=14 msg='op=adding user id=1004 \
exe=\"/usr/sbin/useradd\" hostname=web1 addr=? terminal=pts/2 res=success'
type=NETFILTER_CFG msg=audit(1700000003.100:4): table=filter:105 family=2 entries=1 pid=4300 comm=\"nft\"
type=INTEGRITY_RULE msg=audit(1700000004.100:5): file=\"/a\" ppid=31395 pid=31439 auid=1000 uid=33 tty=pts0 exe=\"/d\"
type=CKADDR msg=audit(1700000005.100:6): saddr=0200
";
    fs::write(&log, text).expect("written");
    let mut args = args(&table, vec![log.display().to_string()]);
    args.host = None;
    export(&args).expect("exported");
    let rows = rows(&table);
    let text = |row: usize, name: &str| match field(&rows[row], name) {
        Field::Str(text) => text.clone(),
        Field::Null => "none".to_owned(),
        other => other.to_string(),
    };
    for (row, name, wanted) in [
        (0, "remote", "198.51.100.7"),
        (0, "terminal", "/dev/pts/0"),
        (0, "host", "none"),
        (1, "remote", "none"),
        (1, "terminal", "none"),
        (1, "auid", "none"),
        (2, "remote", "web1"),
        (3, "uid", "none"),
        (3, "auid", "none"),
        (3, "exe", "none"),
        (3, "pid", "4300"),
        (4, "pid", "31439"),
        (4, "ppid", "31395"),
        (4, "exe", "/d"),
        (4, "terminal", "pts0"),
        (5, "type", "CKADDR"),
        (5, "pid", "none"),
    ] {
        assert_eq!(text(row, name), wanted, "{name} of row {row}");
    }
    assert_eq!(texts(field(&rows[4], "paths")), ["/a"]);
}

#[test]
fn what_selinux_only_reports_has_not_failed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, table) = (directory.path().join("log"), directory.path().join("table"));
    let avc = "avc:  denied  { read } for  pid=9 comm=\"httpd\" name=\"shadow\" scontext=a:b:c tcontext=a:b:d \
               tclass=file permissive=";
    let user = "pid=1 uid=0 auid=1000 ses=1 subj=a msg='avc:  denied  { start } for auid=1000 \
                cmdline=\"x tclass=x permissive=1 \" scontext=a:b:c tcontext=a:b:d tclass=service permissive=";
    let call = CALL.split_once("): ").expect("a call").1;
    let call = call.lines().next().expect("a line");
    // A call has its own result: other checks than SELinux's can refuse it.
    let events = [
        (vec![format!("AVC {avc}1")], "true"),
        (vec![format!("AVC {avc}0")], "false"),
        (vec![format!("AVC {avc}1"), format!("AVC {avc}0")], "false"),
        (
            vec![format!("AVC {avc}1"), format!("SYSCALL {call}")],
            "false",
        ),
        (vec![format!("USER_AVC {user}1 exe=\"/a\"'")], "true"),
        (vec![format!("USER_AVC {user}0 exe=\"/a\"'")], "false"),
    ];
    let mut text = String::new();
    for (serial, (records, _)) in events.iter().enumerate() {
        for record in records {
            let (kind, body) = record.split_once(' ').expect("a type");
            text += &format!("type={kind} msg=audit(1700000000.{serial:03}:{serial}): {body}\n");
        }
    }

    fs::write(&log, text).expect("written");
    export(&args(&table, vec![log.display().to_string()])).expect("exported");
    let rows = rows(&table);
    assert_eq!(rows.len(), events.len());
    for (row, (records, wanted)) in rows.iter().zip(&events) {
        assert_eq!(field(row, "success").to_string(), *wanted, "{records:?}");
    }
}

#[test]
fn compressed_logs_are_tables_and_others_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let table = directory.path().join("table");
    let other = directory.path().join("other");
    fs::write(&other, "no log\n").expect("written");
    let error = export(&args(&table, vec![other.display().to_string()])).expect_err("no records");
    assert!(
        format!("{error:#}").contains("other: no audit records"),
        "{error:#}"
    );
    assert!(!table.exists());
}

/// A row's columns that have a value, in the order of the schema, but for its time and the texts of its records.
fn short(row: &Row) -> String {
    let mut out = String::new();
    for (name, value) in row.get_column_iter() {
        let text = match (name.as_str(), value) {
            ("time" | "records", _) | (_, Field::Null) => continue,
            ("keys" | "paths", list) => texts(list).join(","),
            (_, Field::Str(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        if !text.is_empty() {
            out += &format!(" {name}={text}");
        }
    }
    out.trim_start().to_owned() + "\n"
}

/// The bodies of a log's lines by serial, as `records` should have them: type, text and names.
fn lines_of(log: &str) -> Vec<(i64, String)> {
    let one = |line: &str| {
        let (head, body) = line.split_once("): ").expect("a record");
        let serial = head.rsplit(':').next().expect("a serial");
        let body = body.split('\u{1d}').next().unwrap_or_default();
        (serial.parse().expect("a number"), body.to_owned())
    };
    log.lines().map(one).collect()
}

#[test]
fn every_record_type_becomes_the_row_that_was_read_and_found_right() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let writes = std::env::var_os("TARSIER_WRITE_CORPUS").is_some();
    let directory = tempfile::tempdir().expect("a directory");
    let table = directory.path().join("table");
    let mut checked = 0;
    for entry in fs::read_dir(here.join("../formats/tests/formats/records")).expect("the logs") {
        let log = entry.expect("an entry").path();
        if log.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let mut args = args(&table, vec![log.display().to_string()]);
        args.host = Some("web1".to_owned());
        export(&args).expect("exported");
        let rows = rows(&table);

        // What the columns say.
        let found: String = rows.iter().map(short).collect();
        let name = Path::new(log.file_stem().expect("a name")).with_extension("txt");
        let expected = here.join("tests/rows").join(name);
        if writes {
            fs::write(&expected, &found).expect("written");
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        for (is, should) in found.lines().zip(wanted.lines()) {
            assert_eq!(should, is, "{}", expected.display());
        }
        assert_eq!(wanted.len(), found.len(), "{}", expected.display());

        // And nothing of the log is lost.
        for (serial, body) in lines_of(&fs::read_to_string(&log).expect("a log")) {
            let is_it = |row: &&Row| field(row, "serial") == &Field::Long(serial);
            let row = rows.iter().find(is_it).expect("a row");
            let Field::ListInternal(records) = field(row, "records") else {
                panic!("{row:?}");
            };
            let has = |record: &Field| match record {
                Field::Group(record) => field(record, "text") == &Field::Str(body.clone()),
                _ => false,
            };
            assert!(records.elements().iter().any(has), "{serial}: {body}");
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked}");
}
