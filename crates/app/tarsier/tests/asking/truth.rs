//! What is said of an event is what its records say: all of them, and nothing else.

use crate::made::{output, printed, report, search, write};
use tempfile::TempDir;

/// A log, and what is asked of it.
struct Log {
    _dir: TempDir,
    path: String,
}

fn log(text: &str) -> Log {
    let dir = TempDir::new().expect("a directory");
    let path = write(&dir, "audit.log", text).display().to_string();
    Log { _dir: dir, path }
}

impl Log {
    /// Serial numbers of the events that a search finds.
    fn serials(&self, words: &str) -> Vec<u64> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let raw = printed(&[&["-if", &self.path, "-r"], &words[..]].concat());
        let serial = |line: &str| line.split_once("):")?.0.rsplit_once(':')?.1.parse().ok();
        let mut serials: Vec<u64> = raw.lines().filter_map(serial).collect();
        serials.dedup();
        serials
    }

    fn search(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        printed(&[&["-if", &self.path], &words[..]].concat())
    }

    fn report(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        let made = output(&mut report(&[&["-if", &self.path], &words[..]].concat()));
        String::from_utf8(made.stdout).expect("text")
    }

    /// Last line of a report.
    fn last(&self, words: &str) -> String {
        let report = self.report(words);
        report
            .trim_end()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    }
}

fn stamp(serial: u32) -> String {
    format!("msg=audit(17000000{serial:02}.100:{serial})")
}

/// The record of a call by this task.
fn syscall(serial: u32, number: u32, task: &str) -> String {
    format!(
        "type=SYSCALL {}: arch=c000003e syscall={number} success=yes exit=0 a0=1 a1=2 a2=3 a3=0 items=0 {task} \
         gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses=3 comm=\"mv\" exe=\"/usr/bin/mv\" \
         subj=unconfined key=(null)\n",
        stamp(serial)
    )
}

#[test]
fn a_field_is_its_whole_name() {
    let log = log(&format!(
        "type=INTEGRITY_RULE {}: file=\"/tmp.ci/preinst\" hash=\"sha256:f8\" ppid=31395 pid=31439 auid=1000 uid=33 \
         gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses=5 comm=\"dpkg\" exe=\"/usr/bin/dpkg\"\n",
        stamp(1)
    ));
    for words in [
        "-p 31439",
        "-pp 31395",
        "-x dpkg",
        "-f preinst",
        "-tm pts0",
        "-ui 33",
        "-ul 1000",
        "-ue 0",
        "--session 5",
        "-c dpkg",
        "-gi 0",
        "-ui 33 -p 31439 -x dpkg -f preinst",
    ] {
        assert_eq!(log.serials(words), [1], "{words}");
    }
    assert!(log.serials("-p 31395").is_empty() && log.serials("-pp 31439").is_empty());
    assert!(log.last("-p").contains(" 31439 /usr/bin/dpkg "));
    assert_eq!(log.last("-f --summary"), "1  /tmp.ci/preinst");
}

#[test]
fn what_no_record_says_is_missing() {
    let log = log(&format!(
        "type=NETFILTER_CFG {}: table=filter:105 family=2 entries=1 op=nft_unregister_chain pid=4300 subj=unconfined \
         comm=\"nft\"\n\
         type=DAEMON_END {}: auditd normal halt, sending auid=? pid=? subj=? res=success\n\
         type=BPF {}: prog-id=7 op=UNLOAD\n\
         type=EVENT_LISTENER {}: pid=9 uid=0 auid=1000 tty=(none) ses=1 subj=u comm=\"systemd\" exe=\"/s\" nl-mcgrp=1 \
         op=connect res=1\n\
         type=USER_LOGIN {}: pid=5 uid=0 auid=4294967295 ses=4294967295 msg='op=login hostname=? addr=? terminal=? \
         res=failed'\n",
        stamp(1),
        stamp(2),
        stamp(3),
        stamp(4),
        stamp(5),
    ));
    assert_eq!(log.serials("-ui 0"), [4, 5]);
    assert_eq!(log.serials("-ul 0"), [0; 0]);
    assert_eq!(log.serials("-ul 4294967295"), [5]);
    assert_eq!(log.serials("-ui root"), [4, 5]);
    assert_eq!(log.serials("-ua 0"), [4, 5]);
    assert_eq!(log.serials("-sc read"), [0; 0]);
    assert_eq!(log.serials("-p 0"), [0; 0]);
    assert!(log.report("--top uid").contains("2         1"));
    assert!(!log.report("--top auid").contains("  0\n"));
    assert!(
        log.report("--top exe").lines().count() == 2,
        "{}",
        log.report("--top exe")
    );
    assert!(log.report("--top host").ends_with("nothing\n"));
    assert!(log.report("--top syscall").ends_with("nothing\n"));
}

#[test]
fn the_record_of_the_call_says_who_acted() {
    let task = "ppid=290 pid=300 auid=1000 uid=1000";
    let domain = |serial| {
        format!(
            "type=LANDLOCK_ACCESS {0}: domain=195 blockers=fs.refer path=\"/usr/bin\" dev=\"vda2\" ino=351\n\
             type=LANDLOCK_DOMAIN {0}: domain=195 status=allocated mode=enforcing pid=290 uid=0 exe=\"/root/sandboxer\" \
             comm=\"sandboxer\"\n",
            stamp(serial)
        )
    };
    let other = format!(
        "type=AVC {}: avc:  denied  {{ read }} for  pid=7 comm=\"other\" name=\"x\" scontext=a tcontext=b tclass=file\n",
        stamp(2)
    );
    let log = log(&[domain(1), syscall(1, 82, task), other, syscall(2, 82, task)].concat());
    assert_eq!(log.last("-p --summary"), "2  300");
    assert_eq!(log.last("-x --summary"), "2  /usr/bin/mv");
    assert!(log.search("--timeline pid:300").contains(" mv[300] rename"));
    // Every record counts for a condition.
    assert_eq!(log.serials("-p 300"), [1, 2]);
    assert_eq!(log.serials("-p 290"), [1]);
    assert_eq!(log.serials("-p 7"), [2]);
    assert_eq!(log.serials("-x sandboxer -c mv"), [1]);
    assert_eq!(log.serials("-f /usr/bin"), [1]);
    assert_eq!(log.serials("-sv yes"), [1, 2]);
}

#[test]
fn a_call_is_found_by_what_is_left_of_its_record() {
    let log = log(&format!(
        "type=SYSCALL {}: arch=c000003e syscall=44 success=yes exit=184 a0=9 items=0 ppid=1240 pid=1281 \
         auid=4294967295 uid=0 gid=0 euid=0 tty=(none) ses=4294967295 comm=\"charon\" exe=\"/usr/libexec/charon\" \
         key=(null)\n\
         type=SYSCALL {}: syscall=44 pid=1282 exe=\"/x\"\n\
         type=SYSCALL {}: exe=\"/y\" key=\"late\" pid=1283 syscall=44 arch=c000003e\n",
        stamp(1),
        stamp(2),
        stamp(3),
    ));
    for words in [
        "-p 1281",
        "-x charon",
        "-c charon",
        "-ui 0",
        "-sv yes",
        "-e 184",
    ] {
        assert_eq!(log.serials(words), [1], "{words}");
    }
    // The second record does not say whose call 44 it is.
    assert_eq!(log.serials("-sc sendto"), [1, 3]);
    assert_eq!(log.serials("-p 1282 -x /x"), [2]);
    assert_eq!(log.serials("-k late -p 1283"), [3]);
}

#[test]
fn both_users_of_a_message_count_each_with_its_name() {
    let names = "\u{1d}UID=\"root\" AUID=\"administrator\" UID=\"bob\"";
    let log = log(&format!(
        "type=ANOM_LOGIN_FAILURES {}: pid=16619 uid=0 auid=1000 ses=7 msg='pam_faillock uid=1003  \
         exe=\"/usr/bin/login\" hostname=? addr=? terminal=pts/2 res=success'{names}\n",
        stamp(1)
    ));
    for words in [
        "-ui 0",
        "-ui 0 -p 16619",
        "-ui 1003",
        "-ui 1003 -p 16619",
        "-ui bob",
        "-ui root",
        "-ul administrator",
        "-ua bob",
        "-ua 1003",
    ] {
        assert_eq!(log.serials(words), [1], "{words}");
    }
    assert!(log.serials("-ui 1000").is_empty() && log.serials("-ui alice").is_empty());
    let shown = log.search("-i");
    assert!(
        shown.contains(" uid=root ") && shown.contains("pam_faillock uid=bob "),
        "{shown}"
    );
    let object: serde_json::Value =
        serde_json::from_str(&log.search("--format jsonl")).expect("an object");
    assert_eq!(object["names"]["UID"], serde_json::json!(["root", "bob"]));
    assert_eq!(object["names"]["AUID"], "administrator");
}

#[test]
fn every_record_of_a_type_counts_for_a_condition() {
    let avc = |pid: u32, comm: &str| {
        format!(
            "type=AVC {}: avc:  denied  {{ read }} for  pid={pid} comm=\"{comm}\" path=\"/a{pid}\" scontext=s{pid} \
             tcontext=t{pid} tclass=file permissive=1\n",
            stamp(1)
        )
    };
    let log = log(&[avc(5, "first"), avc(6, "second")].concat());
    for words in [
        "-c first",
        "-c second",
        "-p 6",
        "-f /a5",
        "-f /a6",
        "-su s6",
        "-o t5",
        "-c first -c second",
    ] {
        assert_eq!(log.serials(words), [1], "{words}");
    }
}

#[test]
fn names_are_those_of_the_log_behind_whatever_is_left_of_their_separator() {
    let line = |serial, between: &str| {
        format!(
            "type=USER_LOGIN {}: pid=4885 uid=0 auid=1000 ses=1 msg='op=login id=1000 exe=\"/usr/sbin/sshd\" hostname=h \
             addr=198.51.100.10 terminal=ssh res=failed'{between}UID=\"root\" AUID=\"alice\" ID=\"alice\"\n",
            stamp(serial)
        )
    };
    let betweens = ["\u{1d}", "#035", " ", "\\x1d", "^]", ""];
    let lines: Vec<String> = (1..)
        .zip(betweens)
        .map(|(serial, between)| line(serial, between))
        .collect();
    let log = log(&lines.concat());
    let all = [1, 2, 3, 4, 5, 6];
    assert_eq!(log.serials("-ul alice"), all);
    assert_eq!(log.serials("-sv no"), all);
    assert_eq!(log.search("-i").matches("auid=alice ").count(), 6);
    assert_eq!(
        log.search("-r"),
        lines.concat(),
        "raw is the log's own text"
    );
    assert_eq!(log.report("-l -i").matches("alice").count(), 6);
    assert_eq!(log.last("--top auid -i").rsplit("  ").next(), Some("alice"));
}

#[test]
fn the_file_of_a_report_is_not_the_directory_of_a_new_one() {
    for tail in ["", " cap_fp=0 cap_fi=0 cap_fe=0 cap_fver=0 cap_frootid=0"] {
        let path = |item: u32, name: &str, nametype: &str| {
            format!(
                "type=PATH {}: item={item} name=\"{name}\" inode={item} dev=fd:00 mode=0100644 ouid=0 ogid=0 \
                 rdev=00:00 nametype={nametype}{tail}\n",
                stamp(1)
            )
        };
        let log = log(&[
            syscall(1, 2, "ppid=432 pid=3333 auid=1000 uid=0"),
            format!("type=CWD {}: cwd=\"/root\"\n", stamp(1)),
            path(0, "/etc/cron.d/", "PARENT"),
            path(1, "/etc/cron.d/evil", "CREATE"),
        ]
        .concat());
        assert!(log.last("-f").contains(" /etc/cron.d/evil "), "{tail}");
        // aureport passes over a directory only if its type ends the record.
        let words = ["--compat", "-if", &log.path, "-f"];
        let listed = String::from_utf8(output(&mut report(&words)).stdout).expect("text");
        let has_file = listed.contains(" /etc/cron.d/evil ");
        assert_eq!(has_file, tail.is_empty(), "{listed}");
    }
}

#[test]
fn apparmor_is_reported_as_selinux_is() {
    let log = log(&format!(
        "type=AVC {}: apparmor=\"DENIED\" operation=\"open\" class=\"file\" profile=\"/usr/bin/x\" name=\"/etc/shadow\" \
         pid=12 comm=\"x\" requested_mask=\"r\" denied_mask=\"r\" fsuid=0 ouid=0\n\
         type=AVC {}: apparmor=\"ALLOWED\" operation=\"exec\" profile=\"p2\" name=2F746D702F612062 pid=13 comm=\"y\" \
         requested_mask=\"x\" denied_mask=\"x\" fsuid=0 ouid=0 target=\"p3\"\n\
         type=AVC {}: apparmor=\"STATUS\" operation=\"profile_load\" profile=\"unconfined\" name=\"snap.x\" pid=14 \
         comm=\"apparmor_parser\"\n\
         type=AVC {}: apparmor=\"DENIED\" operation=\"capable\" profile=\"cups\" pid=15 comm=\"cupsd\" capability=12 \
         capname=\"net_admin\"\n\
         type=1503 {}: apparmor=\"DENIED\" operation=\"open\" profile=\"old\" name=\"/x\" pid=16 comm=\"z\" \
         requested_mask=\"r::\" denied_mask=\"r::\" fsuid=0 ouid=0\n",
        stamp(1),
        stamp(2),
        stamp(3),
        stamp(4),
        stamp(5),
    ));
    assert!(
        log.report("").contains("Number of AVC's: 5\n"),
        "{}",
        log.report("")
    );
    let list = log.report("-a");
    assert!(
        list.contains(" x /usr/bin/x ? file r /etc/shadow denied 1\n"),
        "{list}"
    );
    assert!(list.contains(" y p2 ? exec x p3 granted 2\n"), "{list}");
    assert!(
        list.contains(" cupsd cups ? capable net_admin ? denied 4\n"),
        "{list}"
    );
    assert!(list.contains(" z old ? open r:: /x denied 5\n"), "{list}");
    assert!(log.report("-a --summary").contains("1  /etc/shadow\n"));
    assert_eq!(log.serials("--touched /etc/shadow"), [1]);
    assert_eq!(log.serials("-f /etc/shadow"), [1]);
    assert_eq!(log.serials("-p 14"), [3]);
    assert!(log.serials("-f snap.x").is_empty());
    assert!(log.report("--top file").contains("  /etc/shadow\n"));
    assert_eq!(log.serials("-su cups"), [4]);
    assert_eq!(log.serials("-sv no"), [1, 4, 5]);
}

#[test]
fn an_unknown_type_keeps_its_name() {
    let log = log(&format!(
        "type=MAC_TASK_CONTEXTS {}: subj_selinux=u:r:t:s0 subj_apparmor=unconfined\n\
         type=CKADDR {}: saddr=0200\n\
         type=SYSCALL {}: arch=c000003e syscall=1 pid=5\u{1d}ARCH=x86_64 AUID=\"alice\"\n",
        stamp(1),
        stamp(2),
        stamp(3)
    ));
    let json = log.search("--format jsonl");
    for name in ["MAC_TASK_CONTEXTS", "CKADDR"] {
        assert!(json.contains(&format!("{{\"type\":\"{name}\",")), "{json}");
        assert!(log.search("--format csv").contains(&format!(",{name},")));
    }
    assert!(
        json.ends_with("\"names\":{\"ARCH\":\"x86_64\",\"AUID\":\"alice\"}}\n"),
        "{json}"
    );
    assert!(log.report("--top type").contains("CKADDR"));
    assert_eq!(log.serials("-su unconfined"), [1]);
}

#[test]
fn the_object_of_a_denial_is_no_field_of_the_call() {
    let log = log(&format!(
        "type=AVC {0}: avc:  denied  {{ name_bind }} for  pid=1440 comm=\"nginx\" src=4881 scontext=a:b:httpd_t:s0 \
         tcontext=a:b:port_t:s0 tclass=tcp_socket permissive=0\n{1}\
         type=SOCKADDR {0}: saddr=02001311000000000000000000000000\n\
         type=PROCTITLE {0}: proctitle=\"nginx\"\n",
        stamp(1),
        syscall(1, 49, "ppid=1 pid=1440 auid=1000 uid=0")
    ));
    let csv = log.search("--format csv");
    assert!(
        csv.contains("lport=4881") && !csv.contains("x86_64"),
        "{csv}"
    );
    assert!(!log.search("--format text").contains("x86_64"));
}

#[test]
fn a_node_may_have_blanks() {
    let log = log(&format!(
        "node=CentOS 7.7 type=USER_CMD {0}: pid=1 uid=0 msg='x res=success'\nnode=db1 type=USER_CMD {0}: pid=2 uid=0\n",
        stamp(1)
    ));
    let words = ["-if", &log.path, "-r", "-n", "CentOS 7.7"];
    assert!(printed(&words).starts_with("node=CentOS 7.7 type=USER_CMD"));
    assert!(log.report("").contains("Number of events: 2\n"));
    assert!(log.report("--top node").contains("  CentOS 7.7\n"));
    assert!(log
        .search("-i")
        .contains("node=CentOS 7.7 type=USER_CMD msg=audit("));
}

#[test]
fn an_event_that_is_written_late_is_whole() {
    let late = |serial, text: &str| format!("{text} msg=audit(1700000000.000:{serial}): ");
    let at = |second: u32, serial: u32| {
        format!("type=USER_CMD msg=audit(17000000{second:02}.000:{serial}): pid=1 uid=0\n")
    };
    let text = [
        at(10, 1),
        format!("{}arch=c000003e syscall=2 pid=5\n", late(2, "type=SYSCALL")),
        at(10, 3),
        at(11, 4),
        format!(
            "{}item=0 name=\"/late\" nametype=NORMAL\n",
            late(2, "type=PATH")
        ),
        at(14, 5),
    ]
    .concat();
    let log = log(&text);
    assert_eq!(log.search("-f /late -r").lines().count(), 2);
    assert_eq!(log.serials("-p 5 -f /late"), [2]);
    assert!(log.report("").contains("Number of events: 5\n"));
}

#[test]
fn processes_and_files_are_those_of_their_node() {
    let call = |node: &str, serial, number, task: &str| {
        format!(
            "node={node} {}",
            syscall(serial, number, task).replace("exit=0", "exit=2001")
        )
    };
    let path = |node: &str, serial, name: &str| {
        format!(
            "node={node} type=CWD {0}: cwd=\"/\"\nnode={node} type=PATH {0}: item=0 name=\"{name}\" inode=131 dev=fd:00 \
             nametype=NORMAL\n",
            stamp(serial)
        )
    };
    let user = "auid=1000 uid=0";
    let text = [
        call("web1", 1, 56, &format!("ppid=10 pid=2000 {user}")),
        call("db1", 2, 59, &format!("ppid=77 pid=2001 {user}")).replace("\"mv\"", "\"pg_dump\""),
        call("web1", 3, 59, &format!("ppid=2000 pid=2001 {user}")).replace("\"mv\"", "\"nc\""),
        call("web1", 4, 257, &format!("ppid=2000 pid=2002 {user}")),
        path("web1", 4, "/etc/shadow"),
        call("db1", 5, 257, &format!("ppid=77 pid=2003 {user}")),
        path("db1", 5, "/home/x"),
    ]
    .concat();
    let log = log(&text);
    let tree = log.search("--tree 2000");
    assert!(
        tree.starts_with("web1: ") && tree.contains(" nc[2001] from ") && !tree.contains("pg_dump"),
        "{tree}"
    );
    let both = log.search("--tree 2001");
    assert!(
        both.contains("web1: ") && both.contains("db1: ") && both.contains("pg_dump"),
        "{both}"
    );
    let of_web1 = log.search("--tree 2001 -n web1");
    assert!(
        !of_web1.contains("pg_dump") && of_web1.contains("nc[2001]"),
        "{of_web1}"
    );
    assert_eq!(log.serials("--touched /etc/shadow"), [4]);
}

#[test]
fn a_root_without_an_event_of_its_own_has_a_tree() {
    let log = log(&[
        syscall(1, 59, "ppid=777 pid=800 auid=1000 uid=33"),
        syscall(2, 59, "ppid=800 pid=801 auid=1000 uid=33"),
        syscall(3, 59, "ppid=777 pid=802 auid=1000 uid=33"),
        syscall(4, 59, "ppid=1 pid=803 auid=1000 uid=33"),
    ]
    .concat());
    let tree = log.search("--tree 777");
    for pid in ["process 777 (it has no event)", "[800]", "[801]", "[802]"] {
        assert!(tree.contains(pid), "{pid}: {tree}");
    }
    assert!(!tree.contains("[803]"), "{tree}");
    assert_eq!(
        output(&mut search(&["-if", &log.path, "--tree", "778"]))
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn a_checkpoint_goes_on_whatever_the_condition() {
    let dir = TempDir::new().expect("a directory");
    let seen = dir.path().join("seen").display().to_string();
    let line = |kind: &str, serial| {
        format!(
            "type={kind} {}: pid=5 uid=0 auid=1000 msg='op=x res=success'\n",
            stamp(serial)
        )
    };
    let mut text = [line("USER_AUTH", 1), line("USER_LOGIN", 11)].concat();
    for (condition, first, then) in [
        ("-m USER_AUTH", "1", "21"),
        ("-k nothing", "", ""),
        ("-ts 1700000000 -m USER_LOGIN", "11", "31"),
        ("-ts 1700000020 -m USER_LOGIN", "", "31"),
        ("-n web1", "", ""),
        ("-ui 0 -x nothing", "", ""),
    ] {
        let _ = std::fs::remove_file(&seen);
        let ask = |text: &str| {
            let path = write(&dir, "audit.log", text);
            let path = path.display().to_string();
            let words: Vec<&str> = condition.split_whitespace().collect();
            let options = ["-if", &path, "--checkpoint", &seen, "-r"];
            let asked = output(&mut search(&[&options, &words[..]].concat()));
            let raw = String::from_utf8(asked.stdout).expect("text");
            let serials = raw
                .lines()
                .filter_map(|line| line.split("):").next()?.rsplit(':').next());
            (serials.collect::<Vec<_>>().join(" "), asked.status.code())
        };
        let status = |found: &str| Some(i32::from(found.is_empty()));
        assert_eq!(ask(&text), (first.to_owned(), status(first)), "{condition}");
        let more = [line("USER_AUTH", 21), line("USER_LOGIN", 31)].concat();
        let whole = [&text[..], &more].concat();
        assert_eq!(ask(&whole), (then.to_owned(), status(then)), "{condition}");
        assert_eq!(ask(&whole), (String::new(), Some(1)), "{condition}");
    }
    // A log without the event is told, each time.
    text = line("USER_AUTH", 45);
    let path = write(&dir, "audit.log", &text).display().to_string();
    let gone = output(&mut search(&["-if", &path, "--checkpoint", &seen, "-r"]));
    assert_eq!(gone.status.code(), Some(12));
    let said = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(said.contains("-ts checkpoint"), "{said}");
}

#[test]
fn calls_are_named_and_found_by_name_whatever_machine_made_them() {
    let line = |serial: u32, arch: &str, number: u32| {
        format!(
            "type=SYSCALL msg=audit(1700000001.100:{serial}): arch={arch} syscall={number} success=yes exit=3 \
             a0=ffffffffffffff9c a1=2 a2=0 a3=0 items=0 ppid=1 pid=77 auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 \
             egid=0 sgid=0 fsgid=0 tty=pts0 ses=4 comm=\"cat\" exe=\"/bin/cat\" key=\"k\"\n"
        )
    };
    let machines = [
        ("c000003e", 257),
        ("c00000b7", 56),
        ("40000028", 322),
        ("c0000015", 286),
        ("80000016", 288),
    ];
    let lines = machines
        .iter()
        .zip(1..)
        .map(|(machine, serial)| line(serial, machine.0, machine.1));
    // openat2 of PowerPC, and the number of openat on x86-64 elsewhere, are other calls.
    let others = [line(6, "c0000015", 257), line(7, "c0000015", 437)];
    let log = log(&lines.chain(others).collect::<String>());
    let input = &log.path;

    let found = printed(&["-if", input, "-sc", "openat", "-i"]);
    assert_eq!(
        found.matches("syscall=openat ").count(),
        machines.len(),
        "{found}"
    );
    assert_eq!(found.matches("a0=AT_FDCWD").count(), machines.len());
    assert_eq!(log.serials("-sc openat"), [1, 2, 3, 4, 5]);
    assert_eq!(log.serials("-sc openat2"), [7]);
    assert_eq!(log.serials("--arch aarch64 -sc openat"), [2]);
    assert_eq!(log.serials("-sc openat --arch arm"), [3]);
    assert_eq!(log.serials("-sc 257"), [1, 6]);
    let csv = printed(&["-if", input, "-sc", "openat", "--format", "csv"]);
    assert_eq!(
        csv.matches(",opened-file,").count(),
        machines.len(),
        "{csv}"
    );
}

#[test]
fn whoever_is_not_named_is_not_root_in_any_format() {
    let log = log(
        "type=DAEMON_END msg=audit(1700000001.100:2): op=terminate auid=? uid=? ses=? pid=? subj=? res=success\n\
         type=USER_AUTH msg=audit(1700000009.100:3): pid=15 uid=? auid=unset ses=unset msg='op=x acct=\"(unknown)\" \
         exe=? hostname=? addr=? terminal=? res=failed'\n",
    );
    for format in ["-i", "--format csv", "--format text", "--format jsonl"] {
        let mut options = vec!["-if", &log.path];
        options.extend(format.split(' '));
        let shown = printed(&options);
        assert!(!shown.contains("root"), "{format}: {shown}");
        assert!(!shown.contains("privileged"), "{format}: {shown}");
    }
    let whole = printed(&["-if", &log.path, "-i"]);
    assert!(whole.contains("auid=? uid=? ses=?"), "{whole}");
}
