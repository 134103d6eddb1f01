//! `tarsier rules` and `tarsier plan` as programs: status, text and files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const RULES: &str = "\
-D
-b 8192
-a always,exit -F arch=b64 -S chmod -F uid=5 -k k
-a always,exit -F arch=b32 -S chmod -F uid=5 -k k
-a always,exit -F arch=b64 -S fchmod,fchmodat,fchmodat2 -F uid=5 -k k
-a always,exit -F arch=b32 -S fchmod,fchmodat,fchmodat2 -F uid=5 -k k
-e 1
";

fn tarsier(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tarsier"))
        .args(args)
        .output()
        .expect("tarsier runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn file(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, text).expect("the file is written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths are text")
}

#[test]
fn of_many_errors_the_first_are_shown_and_the_rest_counted() {
    let directory = TempDir::new().unwrap();
    let bad = file(
        &directory,
        "bad.rules",
        &"-a always,exit -k x\n".repeat(1000),
    );
    let output = tarsier(&["rules", "check", text(&bad)]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("key option needs").count(), 20, "{said}");
    assert!(said.contains("add -S all before -k"), "{said}");
    assert!(said.contains("980 more errors are not shown"), "{said}");
    assert!(said.contains("1000 error(s)"), "{said}");
}

#[test]
fn check_says_by_its_status_whether_there_is_something() {
    let directory = TempDir::new().unwrap();
    let clean = file(&directory, "clean.rules", RULES);
    let output = tarsier(&["rules", "check", text(&clean)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stdout(&output), "4 rules, 0 findings\n");

    let odd = file(
        &directory,
        "odd.rules",
        "\n-a always,exit -F arch=b64 -S exit -F success=1 -k k\n",
    );
    let output = tarsier(&["rules", "check", text(&odd)]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let place = format!("{}:2: never matches", text(&odd));
    assert!(stdout(&output).contains(&place), "{output:?}");

    let wrong = file(&directory, "wrong.rules", "-a always,exit -F uod=0\n");
    assert_eq!(
        tarsier(&["rules", "check", text(&wrong)]).status.code(),
        Some(2)
    );
    let missing = directory.path().join("missing");
    assert_eq!(
        tarsier(&["rules", "check", text(&missing)]).status.code(),
        Some(2)
    );
}

#[test]
fn check_finds_what_fills_a_log() {
    let directory = TempDir::new().unwrap();
    let rules = file(&directory, "some.rules", RULES);
    let event = |serial: u32, key: &str| {
        format!("type=SYSCALL msg=audit(1.000:{serial}): arch=c000003e syscall=90 key={key}\n")
    };
    let log: String = (1..10)
        .map(|serial| event(serial, if serial == 5 { "(null)" } else { "\"k\"" }))
        .collect();
    let log = file(&directory, "audit.log", &log);
    let output = tarsier(&[
        "rules",
        "check",
        "--json",
        "--log",
        text(&log),
        text(&rules),
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["floods"][0]["key"], "k");
    assert_eq!(report["floods"][0]["events"], 8);
    assert_eq!(report["floods"][0]["rules"].as_array().unwrap().len(), 4);
    assert_eq!(report["floods"][1]["is_flood"], false);
}

#[test]
fn optimised_rules_are_written_with_their_settings_and_are_optimal() {
    let directory = TempDir::new().unwrap();
    let rules = file(&directory, "some.rules", RULES);
    let written = directory.path().join("better.rules");
    let output = tarsier(&["rules", "optimise", text(&rules), "--write", text(&written)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        stdout(&output).contains("\n+ -a always,exit -F arch=b64 -S chmod,fchmod,fchmodat,452 "),
        "{output:?}"
    );
    let lines = std::fs::read_to_string(&written).unwrap();
    let lines: Vec<&str> = lines
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(
        lines,
        [
            "-D",
            "-b 8192",
            "-a always,exit -F arch=b64 -S chmod,fchmod,fchmodat,452 -F uid=5 -F key=k",
            "-a always,exit -F arch=b32 -S chmod,fchmod,fchmodat,452 -F uid=5 -F key=k",
            "-e 1",
        ]
    );
    let again = tarsier(&["rules", "optimise", text(&written)]);
    assert!(stdout(&again).starts_with("Nothing to gain."), "{again:?}");
}

#[test]
fn plan_warns_of_what_costs_much_or_holds_up_a_host() {
    let directory = TempDir::new().unwrap();
    let lines =
        "-b 64\n--backlog_wait_time 60000\n-a always,exit -F arch=b64 -S all -F uid=5 -k k\n";
    let rules = file(&directory, "some.rules", lines);
    let output = tarsier(&["plan", "--rules", text(&rules)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    for (line, lint) in [(1, "backlog"), (2, "waits-when-full"), (3, "all-calls")] {
        let place = format!("{}:{line}: warning: ", text(&rules));
        let told = said.lines().find(|told| told.starts_with(&place));
        assert!(
            told.is_some_and(|told| told.contains(&format!("[{lint}]"))),
            "{line}: {said}"
        );
    }
    assert!(
        said.contains("60.0 s where the kernel has 1000 ticks"),
        "{said}"
    );
    let quiet = file(&directory, "quiet.rules", RULES);
    assert_eq!(tarsier(&["plan", "--rules", text(&quiet)]).stderr, b"");
}

#[test]
fn plan_shows_a_call_and_refuses_a_name_that_is_none() {
    let directory = TempDir::new().unwrap();
    let rules = file(&directory, "some.rules", RULES);
    let output = tarsier(&["plan", "--rules", text(&rules), "--syscall", "fchmod"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let shown = stdout(&output);
    assert!(shown.contains("     3  -a always,exit"), "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");
    let output = tarsier(&["plan", "--rules", text(&rules), "--syscall", "nosuchcall"]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn rules_of_others_are_printed_and_checked_but_not_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let rules = file(&directory, "a.rules", "-w /etc/passwd -p wa -k k\n");
    for path in [directory.path(), &rules] {
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(path, mode).expect("permissions");
    }
    let place = text(directory.path());
    let printed = tarsier(&["rules", "merge", place]);
    assert!(printed.status.success());
    assert!(stdout(&printed).contains("-w /etc/passwd"));
    let planned = tarsier(&["plan", "--rules", text(&rules)]);
    assert!(planned.status.success(), "{planned:?}");
    let checked = stdout(&tarsier(&["rules", "check", text(&rules)]));
    assert!(checked.contains("1 rule, "), "{checked}");
    let loaded = tarsier(&["rules", "merge", place, "--load", "--run-dir", place]);
    assert!(!loaded.status.success());
    let said = String::from_utf8_lossy(&loaded.stderr).into_owned();
    assert!(said.contains(&format!("chmod go-w {place}")), "{said}");
}

#[test]
fn a_reason_is_printed_once() {
    let missing = tarsier(&["rules", "merge", "/nowhere/at/all"]);
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

#[test]
fn a_plan_names_directories_that_are_links() {
    let directory = TempDir::new().unwrap();
    let link = directory.path().join("dlink");
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    let link = text(&link);
    let rules = format!("-w {link} -p wa -k one\n-w /etc -p wa -k two\n");
    let rules = file(&directory, "a.rules", &rules);
    let planned = tarsier(&["plan", "--engine", "tracepoint", "--rules", text(&rules)]);
    let said = String::from_utf8_lossy(&planned.stderr).into_owned();
    let warning = format!("a.rules:1: warning: {link} is a symbolic link: Tarsier watches /etc,");
    assert!(said.contains(&warning), "{said}");
    assert_eq!(said.matches("symbolic link").count(), 1, "{said}");
}

#[test]
fn what_a_start_would_leave_out_is_told_before_it() {
    let directory = TempDir::new().unwrap();
    let rules = file(&directory, "a.rules", RULES);
    let state = text(directory.path());
    let check = |rules: &Path| {
        tarsier(&[
            "rules",
            "check",
            "--boot",
            "--state-dir",
            state,
            text(rules),
        ])
    };
    let output = check(&rules);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stdout(&output), "4 rules, a start would put all in force\n");
    // Paths have to be there, and the file has to be root's alone, as at a start.
    let gone = "-a always,exit -F arch=b64 -S open -F dir=/opt/gone -k x\n-Z\n";
    let broken = file(&directory, "broken.rules", gone);
    let output = check(&broken);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = stdout(&output);
    assert!(
        said.contains("broken.rules:1: ") && said.contains("broken.rules:2: "),
        "{said}"
    );
    assert!(
        said.ends_with("0 rules, and 2 lines or files that a start would not put in force\n"),
        "{said}"
    );
    let many: String = (0..4100)
        .map(|i| format!("-a always,exit -F arch=b64 -S getppid -F gid=61238 -F a0={i}\n"))
        .collect();
    let many = file(&directory, "many.rules", &many);
    let output = check(&many);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stdout(&output).contains("many.rules:4097"), "{output:?}");
}

#[test]
fn the_starter_set_has_no_findings_and_every_rule_is_honoured() {
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../share/rules/starter.rules"
    );
    let checked = tarsier(&["rules", "check", rules]);
    assert_eq!(checked.status.code(), Some(0), "{}", stdout(&checked));
    for engine in ["tracepoint", "trampoline"] {
        let planned = tarsier(&["plan", "--engine", engine, "--rules", rules]);
        let text = stdout(&planned);
        assert!(
            planned.status.success() && planned.stderr.is_empty(),
            "{planned:?}"
        );
        assert!(
            text.contains("0 not honoured; 0 shadowed"),
            "{engine}: {text}"
        );
    }
}

#[test]
fn the_doctor_prints_a_line_per_finding_and_the_same_as_json() {
    let directory = TempDir::new().unwrap();
    let rules = file(&directory, "a.rules", RULES);
    let broken = file(&directory, "broken.conf", "no_such_key = 1\n");
    let of = |more: &[&str]| {
        let mut args = vec!["doctor", "--rules", text(&rules), "--config", text(&broken)];
        args.extend(more);
        tarsier(&args)
    };
    let said = of(&[]);
    let lines = stdout(&said);
    assert_eq!(
        said.status.code(),
        Some(2),
        "the configuration is wrong: {lines}"
    );
    for line in lines.lines() {
        assert!(
            ["ok    ", "warn  ", "fail  "]
                .iter()
                .any(|level| line.starts_with(level)),
            "{line}"
        );
        assert!(
            line.starts_with("ok") || line.contains(" — "),
            "no remedy: {line}"
        );
    }
    let configuration = lines.lines().find(|line| line.contains(" configuration: "));
    assert!(configuration.unwrap().contains("no_such_key"), "{lines}");
    let json: serde_json::Value = serde_json::from_slice(&of(&["--json"]).stdout).unwrap();
    assert_eq!(json["status"], 2);
    assert_eq!(
        json["findings"].as_array().unwrap().len(),
        lines.lines().count()
    );
}

#[test]
fn settings_that_hold_up_or_stop_a_host_are_findings_at_their_line() {
    let directory = TempDir::new().unwrap();
    let rules =
        "-D\n-b 64\n-f 2\n-r 100\n--backlog_wait_time 60000\n-a always,exit -S all -k everything\n";
    let path = file(&directory, "traps.rules", rules);
    let found = tarsier(&["rules", "check", text(&path)]);
    assert_eq!(found.status.code(), Some(1));
    let found = stdout(&found);
    for (line, lint) in [
        (2, "backlog"),
        (3, "panics-on-loss"),
        (4, "rate-loses"),
        (5, "waits-when-full"),
        (6, "every-call"),
    ] {
        let start = format!("{}:{line}: ", path.display());
        let is_there =
            |said: &&str| said.starts_with(&start) && said.ends_with(&format!("[{lint}]"));
        assert!(found.lines().any(|said| is_there(&said)), "{lint}: {found}");
    }
    let as_json = tarsier(&["rules", "check", "--json", text(&path)]);
    let report: serde_json::Value = serde_json::from_slice(&as_json.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of_settings = findings.iter().filter(|finding| finding["rule"].is_null());
    assert_eq!(of_settings.count(), 4, "{report}");
}

#[test]
fn rules_by_workload_are_planned_checked_and_written_in_files_of_their_own() {
    let directory = TempDir::new().unwrap();
    let own = "-a never,exit -F unit=backup.service\n\
               -a always,exit -F arch=b64 -S chmod -F container!=none -k c\n\
               -a always,exit -F arch=b64 -S fchmod -F container!=none -k c\n";
    let rules = file(&directory, "a.tarsier", own);
    let planned = stdout(&tarsier(&["plan", "--rules", text(&rules)]));
    let planned = planned.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        planned.matches("decided in the kernel").count(),
        3,
        "{planned}"
    );
    let kernel = ["plan", "--engine", "kernel", "--rules", text(&rules)];
    let planned = stdout(&tarsier(&kernel));
    assert_eq!(planned.matches("not honoured: ").count(), 3, "{planned}");
    let call = ["plan", "--syscall", "chmod", "--rules", text(&rules)];
    let planned = stdout(&tarsier(&call));
    assert!(planned.contains("unit"), "{planned}");
    let write = |name: &str| {
        let written = directory.path().join(name);
        let optimise = ["rules", "optimise", text(&rules), "--write", text(&written)];
        (tarsier(&optimise), written)
    };
    let (refused, written) = write("b.rules");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("ends with .tarsier"), "{said}");
    assert!(!written.exists());
    let (output, written) = write("b.tarsier");
    assert!(output.status.success());
    let read = std::fs::read_to_string(&written).expect("it is written");
    assert!(
        read.contains("-S chmod,fchmod -F container!=none"),
        "{read}"
    );
    let checked = tarsier(&["rules", "check", text(&written)]);
    assert!(checked.status.code() < Some(2), "{}", stdout(&checked));
}
