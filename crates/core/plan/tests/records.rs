//! The exclude and user lists drop the same records as in the kernel. The rules and outcomes were
//! recorded on Linux 6.1 with audit 3.0.9.

mod common;

use abi::RecordType;
use common::{identities, rule, ruleset};
use plan::{excluded, user_drops, ObjectId, RecordFilter, SecurityModule, Sender, Subject};
use rules::Rule;

const ROOT: Sender<'_> = Sender {
    tid: 101,
    uid: 0,
    gid: 0,
    auid: u32::MAX,
    exe: None,
    subject: Subject {
        module: SecurityModule::None,
        label: None,
    },
};

fn kind(name: &str) -> RecordType {
    RecordType::from_name(name.as_bytes()).unwrap()
}

fn excludes(lines: &[&str], record: &str, sender: &Sender<'_>) -> bool {
    let rules = ruleset(lines);
    let drops = excluded(&rules, kind(record), sender, &identities());
    let filter = RecordFilter::exclude(&rules);
    let filtered = filter.is_some_and(|f| f.drops(kind(record), sender, &identities()));
    assert_eq!(drops, filtered);
    drops
}

fn drops_message(lines: &[&str], record: &str, sender: &Sender<'_>) -> bool {
    let rules = ruleset(lines);
    let drops = user_drops(&rules, kind(record), sender, &identities());
    let filter = RecordFilter::user(&rules);
    let filtered = filter.is_some_and(|f| f.drops(kind(record), sender, &identities()));
    assert_eq!(drops, filtered);
    drops
}

#[test]
fn exclude_drops_the_named_kinds_of_record_alone() {
    let rules = [
        "-a always,exclude -F msgtype=CWD",
        "-a always,exclude -F msgtype=PROCTITLE",
    ];
    for (record, expected) in [
        ("CWD", true),
        ("PROCTITLE", true),
        ("SYSCALL", false),
        ("PATH", false),
    ] {
        assert_eq!(excludes(&rules, record, &ROOT), expected, "{record}");
    }
}

#[test]
fn both_actions_on_the_exclude_list_drop() {
    for action in ["always", "never"] {
        let rule = format!("-a {action},exclude -F msgtype=CWD");
        assert!(excludes(&[&rule], "CWD", &ROOT));
    }
}

#[test]
fn exclude_by_executable_drops_all_that_it_does() {
    // /c is the object 0x800002:5 to `identities`, /missing none.
    let inside = Sender {
        exe: Some(ObjectId {
            dev: 0x0080_0002,
            ino: 5,
        }),
        ..ROOT
    };
    let outside = Sender {
        exe: Some(ObjectId {
            dev: 0x0080_0001,
            ino: 5,
        }),
        ..ROOT
    };
    let rules = ["-a never,exclude -F exe=/c"];
    assert!(excludes(&rules, "SYSCALL", &inside));
    assert!(excludes(&rules, "USER_ACCT", &inside));
    assert!(!excludes(&rules, "SYSCALL", &outside));
    assert!(!excludes(&rules, "SYSCALL", &ROOT));
    assert!(!excludes(
        &["-a never,exclude -F exe=/missing"],
        "SYSCALL",
        &ROOT
    ));
}

/// The outcomes without a security module were recorded on Linux 6.18 with audit 3.0.9.
#[test]
fn labels_are_compared_by_the_security_module_or_keep_the_outcome_before() {
    let labelled = |module, label: &'static str| Sender {
        subject: Subject {
            module,
            label: Some(label.as_bytes()),
        },
        ..ROOT
    };
    let drops = |fields: &str, sender| {
        let rule = format!("-a always,exclude {fields}");
        excludes(&[&rule], "USER_ACCT", sender)
    };
    let selinux = labelled(SecurityModule::Selinux, "u:r:crond_t:s0-s0:c0.c1023");
    assert!(drops("-F subj_type=crond_t", &selinux));
    assert!(drops("-F msgtype=USER_ACCT -F subj_clr>=s0:c7", &selinux));
    assert!(!drops(
        "-F msgtype=USER_ACCT -F subj_type!=crond_t",
        &selinux
    ));
    assert!(!drops("-F subj_type=crond_t -F uid=7", &selinux));
    for (fields, expected) in [
        ("-F subj_type=foo", false),
        ("-F subj_type!=foo", false),
        ("-F subj_type=foo -F msgtype=USER_ACCT", false),
        ("-F uid=0 -F subj_type=foo", true),
        ("-F uid=0 -F subj_type!=foo", true),
        ("-F uid=7 -F subj_type=foo", false),
    ] {
        assert_eq!(drops(fields, &ROOT), expected, "{fields}");
    }
    let rules = ["-a never,user -F subj_type=crond_t"];
    assert!(drops_message(&rules, "USER_ACCT", &selinux));
    assert!(!drops_message(&rules, "USER_ACCT", &ROOT));
}

#[test]
fn exclude_takes_ranges_of_kinds() {
    let rules = ["-a always,exclude -F msgtype>=1300 -F msgtype<=1399 -F msgtype!=EXECVE"];
    for (record, expected) in [
        ("SYSCALL", true),
        ("EOE", true),
        ("PROCTITLE", true),
        ("EXECVE", false),
        ("CONFIG_CHANGE", true),
        ("USER_ACCT", false),
        ("USER_LOGIN", false),
    ] {
        assert_eq!(excludes(&rules, record, &ROOT), expected, "{record}");
    }
}

#[test]
fn never_rules_of_the_user_list_drop_messages_and_always_rules_shield_them() {
    let login = Sender { auid: 1000, ..ROOT };
    let rules = [
        "-a never,user -F msgtype=USER_AUTH",
        "-a never,user -F auid=1000",
    ];
    assert!(drops_message(&rules, "USER_AUTH", &ROOT));
    assert!(!drops_message(&rules, "USER_ACCT", &ROOT));
    assert!(drops_message(&rules, "USER_ACCT", &login));
    let rules = ["-a always,user -F auid=1000", "-a never,user -F uid=0"];
    assert!(!drops_message(&rules, "USER_ACCT", &login));
    assert!(drops_message(&rules, "USER_ACCT", &ROOT));
    // Rules of one list do not affect the other.
    assert!(!excludes(&rules, "USER_ACCT", &ROOT));
}

fn exclude_with(conditions: &[&str]) -> Rule {
    let line = format!("-a always,exit -S all {}", conditions.join(" "));
    Rule {
        list: rules::List::Exclude,
        ..rule(&line)
    }
}

#[test]
fn a_field_that_the_list_cannot_ask_about_ends_it_when_it_is_reached() {
    let cwd = rule("-a always,exclude -F msgtype=CWD");
    let excluded = |rules: &[Rule], sender| excluded(rules, kind("CWD"), sender, &identities());
    let ends = exclude_with(&["-F sessionid=5"]);
    assert!(!excluded(&[ends.clone(), cwd.clone()], &ROOT));
    assert!(excluded(&[cwd.clone(), ends], &ROOT));
    let not_reached = exclude_with(&["-F uid=7", "-F sessionid=5"]);
    assert!(excluded(&[not_reached.clone(), cwd.clone()], &ROOT));
    assert!(!excluded(&[not_reached, cwd], &Sender { uid: 7, ..ROOT }));
}

#[test]
fn a_rule_without_conditions_drops_nothing() {
    assert!(!excluded(
        &[exclude_with(&[])],
        kind("CWD"),
        &ROOT,
        &identities()
    ));
}

#[test]
fn pid_is_the_thread_and_gid_the_group_alone() {
    assert!(excludes(&["-a always,exclude -F pid=101"], "CWD", &ROOT));
    assert!(!excludes(&["-a always,exclude -F pid=100"], "CWD", &ROOT));
    assert!(excludes(&["-a always,exclude -F gid=0"], "CWD", &ROOT));
    assert!(excludes(&["-a always,exclude -F auid=unset"], "CWD", &ROOT));
}

#[test]
fn without_rules_that_drop_there_is_no_filter_to_ask() {
    let rules = ruleset(&["-a always,user -F uid=0", "-a always,exit -S all -F uid=0"]);
    assert!(RecordFilter::exclude(&rules).is_none());
    assert!(RecordFilter::user(&rules).is_none());
    let rules = ruleset(&[
        "-a never,user -F exe=/c",
        "-a always,exclude -F msgtype=CWD",
    ]);
    let filter = RecordFilter::user(&rules).unwrap();
    assert!(filter.needs_exe() && !filter.needs_label());
    let rules = ruleset(&["-a always,exclude -F subj_role=r"]);
    assert!(RecordFilter::exclude(&rules).unwrap().needs_label());
    assert!(!RecordFilter::exclude(&rules).unwrap().needs_exe());
}
