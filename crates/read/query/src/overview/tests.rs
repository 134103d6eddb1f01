//! The overview says what the log says, of each host apart, and the same of a log in parts.

use super::{Finished, Overview, Shown};
use crate::{Assembler, Dialect, Event};

const LOG: &str = "\
node=web1 type=USER_LOGIN msg=audit(1000000.100:10): pid=5 uid=0 auid=4294967295 ses=4294967295 msg='op=login acct=\"root\" exe=\"/usr/sbin/sshd\" hostname=? addr=203.0.113.9 terminal=ssh res=failed'
node=web1 type=USER_LOGIN msg=audit(1000001.100:11): pid=5 uid=0 auid=4294967295 ses=4294967295 msg='op=login acct=\"root\" exe=\"/usr/sbin/sshd\" hostname=? addr=203.0.113.9 terminal=ssh res=failed'
node=web1 type=USER_LOGIN msg=audit(1000002.100:12): pid=5 uid=0 auid=1000 ses=3 msg='op=login id=1000 exe=\"/usr/sbin/sshd\" hostname=203.0.113.9 addr=203.0.113.9 terminal=/dev/pts/0 res=success'\x1dAUID=\"alice\" ID=\"alice\"
node=web1 type=USER_CMD msg=audit(1000003.100:13): pid=6 uid=1000 auid=1000 ses=3 msg='cwd=\"/home/alice\" cmd=2F62696E2F7368202D63206964 exe=\"/usr/bin/sudo\" terminal=pts/0 res=success'\x1dUID=\"alice\" AUID=\"alice\"
node=db1 type=USER_AUTH msg=audit(1000004.100:77): pid=6 uid=1001 auid=1001 ses=3 msg='op=PAM:authentication grantors=? acct=\"root\" exe=\"/usr/bin/su\" hostname=? addr=? terminal=pts/0 res=failed'
node=db1 type=ADD_USER msg=audit(1000005.100:78): pid=6 uid=0 auid=1001 ses=3 msg='op=adding user acct=\"mallory\" exe=\"/usr/sbin/useradd\" hostname=db1 addr=? terminal=pts/0 res=success'
node=db1 type=USER_MGMT msg=audit(1000006.100:79): pid=6 uid=0 auid=1001 ses=3 msg='op=add-user-to-group id=1002 exe=\"/usr/sbin/usermod\" hostname=db1 addr=? terminal=pts/0 res=success'
node=db1 type=CONFIG_CHANGE msg=audit(1000007.100:83): auid=1001 ses=3 op=remove_rule key=\"identity\" list=4 res=1
node=db1 type=DAEMON_ERR msg=audit(1000008.100:1000000001): op=events-lost lost=17 cause=ring:17 res=failed
node=db1 type=AVC msg=audit(1000009.100:84): avc:  denied  { read write } for  pid=9 comm=\"httpd\" name=\"shadow\" dev=\"dm-0\" ino=7 scontext=system_u:system_r:httpd_t:s0 tcontext=system_u:object_r:shadow_t:s0 tclass=file permissive=1
type=AVC msg=audit(1100009.100:85): apparmor=\"DENIED\" operation=\"open\" class=\"file\" profile=\"/usr/bin/man\" name=\"/etc/shadow\" pid=9 comm=\"man\" requested_mask=\"r\" denied_mask=\"r\" fsuid=0 ouid=0
";

fn events() -> Vec<Event> {
    let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
    let (mut events, mut take) = (Vec::new(), 0);
    for line in LOG.lines() {
        take += usize::from(assembler.add(line.as_bytes()));
    }
    assembler.finish();
    while let Some(event) = assembler.pop() {
        events.push(event);
    }
    assert!(take > 0, "lines are taken");
    events
}

fn texts(shown: &Shown) -> Vec<String> {
    let row = |(values, hits): &(super::Values, super::Hits)| {
        let cells = values.iter().map(|value| match value {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => "-".to_owned(),
        });
        let cells: Vec<String> = cells.collect();
        format!("{}/{} {}", hits.hits, hits.failures, cells.join("|"))
    };
    shown.rows.iter().map(row).collect()
}

fn whole() -> Finished {
    let mut overview = Overview::default();
    for event in events() {
        overview.add(event.view());
        overview.settle();
    }
    overview.finish()
}

#[test]
fn each_section_has_what_its_records_say() {
    let finished = whole();
    let rows: Vec<Vec<String>> = finished.sections.iter().map(texts).collect();
    assert_eq!(
        rows[0],
        [
            "2/2 web1|203.0.113.9|root|/usr/sbin/sshd|USER_LOGIN|failed",
            "1/0 web1|203.0.113.9|alice|/usr/sbin/sshd|USER_LOGIN|success",
        ]
    );
    assert_eq!(
        rows[1],
        [
            "1/0 web1|alice|/usr/bin/sudo|-|/bin/sh -c id|success",
            "1/1 db1|auid 1001|/usr/bin/su|root|-|failed",
        ]
    );
    assert_eq!(
        rows[2],
        [
            "1/0 db1|auid 1001|ADD_USER|mallory|adding user|success",
            "1/0 db1|auid 1001|USER_MGMT|id 1002|add-user-to-group|success",
        ]
    );
    assert_eq!(
        rows[3],
        ["1/0 db1|auid 1001|CONFIG_CHANGE|op=remove_rule key=identity list=4|success"]
    );
    assert_eq!(
        rows[4],
        [
            "1/1 db1|SELinux, permissive|system_u:system_r:httpd_t:s0|read write|file|\
             system_u:object_r:shadow_t:s0|httpd",
            "1/1 -|AppArmor|/usr/bin/man|r|file|/etc/shadow|man",
        ]
    );
    assert!(finished.has_before, "the log is longer than a day");
    assert_eq!(
        rows[5],
        Vec::<String>::new(),
        "no program is new: {:?}",
        rows[5]
    );
    // 80 to 82 of db1 are missing. The host of the last event is not known.
    assert_eq!(rows[6], ["1/0 -|0|0|0", "6/0 db1|3|1|17", "4/0 web1|0|0|0"]);
}

#[test]
fn a_log_in_parts_gives_the_same() {
    let mut merged = Overview::default();
    for events in events().chunks(2) {
        let mut part = Overview::default();
        events.iter().for_each(|event| part.add(event.view()));
        merged.merge(part);
    }
    assert_eq!(merged.finish(), whole());
}

#[test]
fn a_program_is_new_if_the_log_had_none_before_its_last_day() {
    let line = |sec: u64, exe: &str| {
        format!("type=ANOM_ABEND msg=audit({sec}.000:{sec}): auid=1 pid=2 comm=\"x\" exe=\"{exe}\" sig=6 res=1")
    };
    let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
    for text in [
        line(1_000_000, "/old"),
        line(1_100_000, "/old"),
        line(1_100_001, "/new"),
    ] {
        assembler.add(text.as_bytes());
    }
    assembler.finish();
    let mut overview = Overview::default();
    while let Some(event) = assembler.pop() {
        overview.add(event.view());
    }
    let finished = overview.finish();
    assert_eq!(texts(&finished.sections[5]), ["1/0 -|/new"]);
}
