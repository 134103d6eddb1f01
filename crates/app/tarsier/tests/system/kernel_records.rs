//! Records of other programs reach the same log, and the daemon's own calls are not recorded.

use crate::calls::{call, Call, Caller};
use crate::{log, machine, programs};
use netlink::AuditSocket;
use std::process::{Command, Stdio};

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61239 -k mine\n";
const USER: u16 = abi::RecordType::USER.netlink();
const USER_AUTH: u16 = abi::RecordType::USER_AUTH.netlink();
const USER_CMD: u16 = abi::RecordType::USER_CMD.netlink();

fn count(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

#[test]
fn a_message_of_another_program_is_in_the_log_exactly_once() {
    machine::test("USER message", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        let mut socket = AuditSocket::open().expect("an audit socket");
        for number in 0..50 {
            let text = format!("op=tarsier-test number={number} res=success");
            socket.send_user_message(USER, &text).expect("it is sent");
        }
        if testkit::peers("USER message of auditctl").is_some() {
            let mut auditctl = programs::peer("auditctl");
            programs::output_of(auditctl.args(["-m", "tarsier-test of auditctl"]));
        }
        daemon.stop();
        let text = setup.read("audit.log");
        for number in 0..50 {
            let part = format!("op=tarsier-test number={number} ");
            assert_eq!(count(&text, &part), 1, "{part}");
        }
        let of_auditctl = usize::from(std::env::var_os("TARSIER_PEERS").is_some());
        assert_eq!(count(&text, "tarsier-test of auditctl"), of_auditctl);
        log::events(&setup.path("audit.log"));
    });
}

#[test]
fn a_login_is_in_the_log() {
    machine::test("LOGIN", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        let made = Caller::auid(61301).make(&[]);
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        let logins = log::records(&events, "LOGIN");
        let of_caller: Vec<_> = logins
            .iter()
            .filter(|record| record.number("pid") == Some(made.pid.into()))
            .collect();
        assert_eq!(of_caller.len(), 1);
        assert_eq!(of_caller[0].number("auid"), Some(61301));
    });
}

#[test]
fn exclude_rules_hold_for_messages_of_others() {
    machine::test("excluded USER message", |setup| {
        let rules = format!("-a always,exclude -F msgtype=USER_CMD\n{RULE}");
        let daemon = setup.tarsier(&rules).format("raw").start();
        let mut socket = AuditSocket::open().expect("an audit socket");
        for kind in [USER_CMD, USER_AUTH] {
            let text = format!("op=tarsier-test kind={kind} res=success");
            socket.send_user_message(kind, &text).expect("it is sent");
        }
        daemon.stop();
        let text = setup.read("audit.log");
        assert_eq!(count(&text, "type=USER_AUTH "), 1);
        assert_eq!(count(&text, "type=USER_CMD "), 0);
    });
}

#[test]
fn without_kernel_records_audit_is_left_alone() {
    machine::test("--no-kernel-records", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        let daemon = run.option("--no-kernel-records").start();
        let mut socket = AuditSocket::open().expect("an audit socket");
        let status = socket.status().expect("the audit status");
        assert_eq!((status.enabled, status.pid), (0, 0));
        assert_eq!(socket.list_rules().expect("rules").len(), 0);
        let made = Caller::gid(61239).make(&[call!(getppid)]);
        let ended = daemon.stop();
        assert_eq!(
            log::calls_of(&log::events(&ended.log), made.pid),
            ["getppid mine"]
        );
    });
}

#[test]
fn the_daemon_never_audits_itself() {
    machine::test("own calls", |setup| {
        let exe = std::fs::canonicalize(programs::tarsier()).expect("the program");
        let rules = format!(
            "-a always,exit -F arch=b64 -S all -F exe={} -k self\n",
            exe.display()
        );
        let daemon = setup.tarsier(&rules).format("raw").start();
        // Another process of the same program is selected by the rule.
        let mut status = Command::new(&exe)
            .args(["status", "--run-dir"])
            .arg(setup.path("run"))
            .stdout(Stdio::null())
            .spawn()
            .expect("tarsier status runs");
        let asker = status.id();
        assert!(status.wait().expect("its status").success());
        let pid = daemon.pid();
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        let with_key = |pid| {
            let calls = log::calls_of(&events, pid);
            calls.iter().filter(|call| call.ends_with(" self")).count()
        };
        assert!(with_key(asker) > 10, "{}", with_key(asker));
        assert_eq!(with_key(pid), 0);
    });
}

/// A call that loads a BPF program of two instructions.
fn load_program() -> Call {
    /// `r0 = 0; exit`
    static INSTRUCTIONS: [u64; 2] = [0xb7, 0x95];
    const BPF_PROG_LOAD: u32 = 5;
    const SOCKET_FILTER: u64 = 1;
    let count = (INSTRUCTIONS.len() as u64) << 32;
    let words = [
        SOCKET_FILTER | count,
        INSTRUCTIONS.as_ptr() as u64,
        c"GPL".as_ptr() as u64,
    ];
    let attributes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let size = attributes.len() as u32;
    call!(bpf, BPF_PROG_LOAD, attributes, size)
}

#[test]
fn a_loaded_bpf_program_is_in_the_event_of_its_call_and_nowhere_else() {
    machine::test("BPF", |setup| {
        let rules = "-a always,exit -F arch=b64 -S bpf -F gid=61239 -k load\n";
        let daemon = setup.tarsier(rules).format("raw").start();
        let recorded: Vec<_> = (0..20)
            .map(|_| Caller::gid(61239).make(&[load_program()]))
            .collect();
        let other = Caller::gid(61240).make(&[load_program()]);
        assert!(other.results[0] >= 0, "{other:?}");
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        let loads = log::records(&events, "BPF");
        let loads: Vec<_> = loads
            .iter()
            .filter(|record| record.body().ends_with(" op=LOAD"))
            .filter_map(|record| record.number("prog-id"))
            .collect();
        let mut last = 0;
        for made in &recorded {
            let event = log::events_of(&events, made.pid).next().expect("an event");
            assert_eq!(event.kinds(), ["BPF", "SYSCALL", "PROCTITLE"]);
            last = event.records[0].number("prog-id").expect("a number");
            assert_eq!(loads.iter().filter(|&&id| id == last).count(), 1);
        }
        let alone = loads.iter().filter(|&&id| id > last).count();
        assert_eq!(alone, 1, "{loads:?}: that of the call that no rule selects");
    });
}

#[test]
fn status_counts_processes_that_the_kernel_audits_and_later_ones_are_not_among_them() {
    const PROCESSES: u64 = 40;
    // Others may come and go meanwhile.
    const OTHERS: u64 = 15;
    machine::test("audit contexts", |setup| {
        match capture::AuditContexts::load().newborn_gets_one() {
            Some(true) => {}
            Some(false) => {
                return println!("skipped: audit contexts: audit was never enabled here")
            }
            None => return println!("skipped: audit contexts: no task iterator"),
        }
        let sleepers = || -> Vec<_> {
            let sleeper = |_| {
                Command::new("sleep")
                    .arg("600")
                    .spawn()
                    .expect("sleep runs")
            };
            (0..PROCESSES).map(sleeper).collect()
        };
        let end = |sleepers: Vec<std::process::Child>| {
            for mut sleeper in sleepers {
                sleeper.kill().expect("it is killed");
                sleeper.wait().expect("it ends");
            }
        };
        let earlier = sleepers();
        let daemon = setup.tarsier(RULE).format("raw").start();
        let count = || {
            let status = daemon.status();
            let count = |name: &str| status[name].as_u64().expect("a number");
            assert!(count("audited_threads") >= count("audited_processes"));
            count("audited_processes")
        };
        let with_earlier = count();
        assert!(with_earlier >= PROCESSES, "{with_earlier}");
        let later = sleepers();
        let with_later = count();
        assert!(
            with_later < with_earlier + OTHERS,
            "{with_later} after {with_earlier}"
        );
        end(earlier);
        let without = count();
        assert!(
            without + PROCESSES < with_earlier + OTHERS,
            "{without} after {with_earlier}"
        );
        end(later);
        daemon.stop();
    });
}
