//! Rules by workload: what they select, however short the lives of cgroups are, and who tries to hide behind them.

use crate::daemon::{Daemon, Run, Setup};
use crate::identity::{events, run, wait, Top, GID};
use crate::{machine, programs};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// The calls of the test's processes.
const CALLS: &str = "-F arch=b64 -S fchmodat -F gid=61333";
const ID: &str = "1e84f70d4d5b0d5e0d9d4fa6cb21a4ab1cb8d1d1bd4d9f2c61d7eb9d3a0b7c55";

fn tarsier(setup: &Setup, rules: &str) -> Run {
    let run = setup.tarsier("").format("json").ring_kib(4096);
    let rules = rules.replace("CALLS", CALLS);
    run.rules(setup.write("own.tarsier", &rules))
        .option("--no-kernel-records")
}

/// Changes the class that the programs have for a cgroup, as root can who has found their map.
fn falsify(before: &BTreeSet<u32>, cgroup: u64) {
    let new = machine::bpf_maps()
        .into_iter()
        .filter(|id| !before.contains(id));
    let mut maps = new.filter_map(|id| MapHandle::from_map_id(id).ok());
    let map = maps.find(|map| map.name() == "workloads");
    let map = map.expect("the map of classes");
    let key = cgroup.to_ne_bytes();
    let value = map.lookup(&key, MapFlags::ANY).expect("it can be read");
    let mut value = value.expect("the cgroup has a class");
    // Number of the unit, behind the epoch: none of the rules'.
    value[8..12].fill(0xff);
    map.update(&key, &value, MapFlags::ANY)
        .expect("root may write it");
}

#[test]
fn a_class_that_somebody_has_changed_is_told_again_and_in_the_log() {
    machine::test("changed classes", |setup| {
        let Some(top) = Top::new("changed classes") else {
            return;
        };
        let before = machine::bpf_maps();
        let rules = "-a always,exit CALLS -F unit=web.service -k web\n";
        let daemon = tarsier(setup, rules).start();
        let procs = top.make("web.service");
        run(&procs, "first");
        let dir = std::fs::metadata(top.path.join("web.service")).expect("the cgroup");
        falsify(&before, dir.ino());
        daemon.wait_for("another process has changed map workloads of the capture");
        run(&procs, "second");
        drop(procs);
        top.remove("web.service");
        let ended = daemon.stop();
        assert_eq!(recorded(&ended.log), ["first", "second"]);
    });
}

/// The names that the recorded calls of the test's processes used.
fn recorded(log: &Path) -> Vec<String> {
    events(log).into_iter().map(|(name, _)| name).collect()
}

fn of(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Makes the cgroups of a path that do not exist, and runs a process in the last that makes one call with this name.
fn run_in(top: &Top, path: &str, name: &str) {
    let dir = top.path.join(path);
    std::fs::create_dir_all(&dir).expect("cgroups");
    let procs = File::options().write(true).open(dir.join("cgroup.procs"));
    run(&procs.expect("its processes"), name);
}

fn undecided(daemon: &Daemon) -> u64 {
    daemon.status()["events_candidate"]
        .as_u64()
        .expect("a number")
}

#[test]
fn a_unit_that_is_made_a_thousand_times_matches_from_its_first_call() {
    machine::test("rules on a unit that is made often", |setup| {
        let Some(top) = Top::new("rules on a unit that is made often") else {
            return;
        };
        let rules = "-a always,exit CALLS -F unit=web.service -k web\n";
        let daemon = tarsier(setup, rules).start();
        let mut expected = Vec::new();
        for start in 0..1000 {
            for unit in ["web.service", "db.service"] {
                let procs = top.make(unit);
                let name = format!("{unit}-{start}");
                run(&procs, &name);
                if unit == "web.service" {
                    expected.push(name);
                }
                drop(procs);
                top.remove(unit);
            }
        }
        assert_eq!(undecided(&daemon), 0, "decided in the kernel");
        let ended = daemon.stop();
        let events = events(&ended.log);
        let names = events.iter().map(|(name, _)| name);
        assert!(names.eq(&expected), "{} events", events.len());
        for (name, workload) in &events {
            assert_eq!(workload["unit"], "web.service", "{name}");
        }
        println!("1000 of 1000 recorded, 0 of another unit");
    });
}

#[test]
fn nobody_hides_behind_a_unit_that_is_left_out() {
    machine::test("hiding behind a unit", |setup| {
        let Some(top) = Top::new("hiding behind a unit") else {
            return;
        };
        let rules = "-a never,exit -F unit=backup.service\n-a always,exit CALLS -k all\n";
        let daemon = tarsier(setup, rules).start();
        let places = [
            // Below the manager of a user, in a service of somebody else, and below what is no unit.
            ("user.slice/user@1000.service/backup.service", "user"),
            ("other.service/backup.service", "service"),
            ("other/backup.service", "nothing"),
            (&format!("docker-{ID}.scope/backup.service"), "container"),
            ("backup.service.d", "longer"),
            ("Backup.service", "capital"),
            ("backup.slice/backup.scope", "slice"),
            ("__backup.service", "marks"),
            ("x/backup.slice/backup.service", "slices-too-late"),
        ];
        let mut expected = BTreeSet::new();
        for (path, name) in places {
            run_in(&top, path, name);
            expected.insert(name.to_owned());
        }
        for path in [
            "backup.service",
            "backup.service/below",
            "a.slice/backup.service",
            "_backup.service",
        ] {
            run_in(&top, path, "left out");
        }
        moves(&top, &["backup.service", "other.service", "backup.service"]);
        expected.insert("moved-1".to_owned());
        if in_namespace(&top, "other.service/own") {
            expected.insert("in-namespace".to_owned());
        }
        let found = recorded(&daemon.stop().log);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    });
}

/// A process that moves through cgroups and makes one call in each.
fn moves(top: &Top, cgroups: &[&str]) {
    let open = |cgroup: &&str| {
        let procs = top.path.join(cgroup).join("cgroup.procs");
        let file = File::options().write(true).open(procs);
        file.expect("its processes")
    };
    let procs: Vec<File> = cgroups.iter().map(open).collect();
    let path = |step| CString::new(format!("/no/such/moved-{step}")).expect("a path");
    let paths: Vec<CString> = (0..procs.len()).map(path).collect();
    // SAFETY: after fork, the child makes system calls only.
    let pid = unsafe {
        match libc::fork() {
            0 => {
                let mut is_fine = true;
                libc::syscall(libc::SYS_setresgid, GID, 0, 0);
                for (procs, path) in procs.iter().zip(&paths) {
                    is_fine &= libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) == 1;
                    libc::syscall(libc::SYS_fchmodat, libc::AT_FDCWD, path.as_ptr(), 0o600);
                }
                libc::_exit(i32::from(!is_fine))
            }
            pid => pid,
        }
    };
    wait(pid);
}

/// A process in a cgroup namespace, for which the unit is at the root. Returns whether there are such namespaces.
fn in_namespace(top: &Top, cgroup: &str) -> bool {
    let dir = top.path.join(cgroup);
    std::fs::create_dir_all(dir.join("backup.service")).expect("cgroups");
    let open = |dir: &Path| {
        let file = File::options().write(true).open(dir.join("cgroup.procs"));
        file.expect("its processes")
    };
    let (outer, inner) = (open(&dir), open(&dir.join("backup.service")));
    // SAFETY: after fork, the child makes system calls only.
    let pid = unsafe {
        match libc::fork() {
            0 => {
                let own = libc::write(outer.as_raw_fd(), c"0".as_ptr().cast(), 1) == 1;
                if libc::unshare(libc::CLONE_NEWCGROUP) != 0 {
                    libc::_exit(2);
                }
                let moved = libc::write(inner.as_raw_fd(), c"0".as_ptr().cast(), 1) == 1;
                libc::syscall(libc::SYS_setresgid, GID, GID, GID);
                let path = c"/no/such/in-namespace";
                libc::syscall(libc::SYS_fchmodat, libc::AT_FDCWD, path.as_ptr(), 0o600);
                libc::_exit(i32::from(!own || !moved))
            }
            pid => pid,
        }
    };
    let mut status = 0;
    // SAFETY: the status is written to a variable of ours.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    if libc::WEXITSTATUS(status) == 2 {
        println!("skipped: a cgroup namespace: the kernel has none");
        return false;
    }
    assert_eq!(status, 0, "a process in its cgroup");
    true
}

#[test]
fn containers_are_told_by_id_any_and_none_at_any_depth() {
    machine::test("rules on containers", |setup| {
        let Some(top) = Top::new("rules on containers") else {
            return;
        };
        let inner = ID.replace('1', "2");
        let rules = format!(
            "-a always,exit CALLS -F container={ID} -k this\n\
             -a never,exit -F container=any\n\
             -a always,exit CALLS -F slice={} -F unit!=db.service -k host\n",
            top.name
        );
        // One is older than the daemon.
        let docker = format!("docker-{ID}.scope");
        std::fs::create_dir(top.path.join(&docker)).expect("a cgroup");
        let daemon = tarsier(setup, &rules).start();
        run_in(&top, &docker, "this");
        run_in(&top, &format!("{docker}/system.slice/a.service"), "below");
        run_in(&top, &format!("{docker}/docker/{inner}"), "nested");
        run_in(&top, &format!("docker-{inner}.scope"), "other");
        run_in(&top, "lxc.payload.web/init.scope", "lxc");
        run_in(&top, "web.service", "host");
        run_in(&top, "db.service", "db");
        run_in(&top, "x.slice/web.service", "other slice");
        let mut dir = "web.service".to_owned();
        for depth in 0..12 {
            dir = format!("{dir}/{depth:0>250}");
        }
        // As deep as a path for one call may be.
        run_in(&top, &dir, "deep");
        // Whoever is in a container may name another in it.
        assert_eq!(
            undecided(&daemon),
            1,
            "the others are decided in the kernel"
        );
        let found = recorded(&daemon.stop().log);
        let found: BTreeSet<String> = found.into_iter().collect();
        assert_eq!(found, of(&["this", "below", "nested", "host", "deep"]));
    });
}

#[test]
fn a_container_that_a_user_may_have_named_proves_nothing() {
    machine::test("rules on containers of users", |setup| {
        let Some(top) = Top::new("rules on containers of users") else {
            return;
        };
        let rules = format!(
            "-a always,exit CALLS -F container={ID} -k this\n\
             -a never,exit -F container=any\n\
             -a always,exit CALLS -F slice={} -k host\n",
            top.name
        );
        top.make("user@1000.service");
        let given = top.path.join("user@1000.service");
        std::os::unix::fs::chown(&given, Some(1000), None).expect("its owner");
        let other = ID.replace('1', "2");
        // One is older than the daemon.
        top.make(&format!("user@1000.service/libpod-{other}.scope"));
        let daemon = tarsier(setup, &rules).start();
        for id in [ID, &other] {
            let name = format!("user@1000.service/libpod-{id}.scope");
            run_in(&top, &name, &id[..8]);
        }
        run_in(&top, &format!("docker-{other}.scope"), "never");
        let found: BTreeSet<String> = recorded(&daemon.stop().log).into_iter().collect();
        assert_eq!(found, of(&[&ID[..8], &other[..8]]));
    });
}

#[test]
fn what_the_programs_do_not_know_the_daemon_decides_and_tells_them() {
    machine::test("rules on names with escapes", |setup| {
        let Some(top) = Top::new("rules on names with escapes") else {
            return;
        };
        let rules = "-a never,exit -F container=quiet-one\n\
                     -a always,exit CALLS -F container=loud-one -k loud\n\
                     -a always,exit CALLS -F container=none -k none\n";
        let daemon = tarsier(setup, rules).start();
        for round in ["first", "second", "third"] {
            run_in(&top, r"machine-loud\x2done.scope", &format!("loud-{round}"));
            run_in(&top, r"machine-quiet\x2done.scope", "quiet");
            run_in(
                &top,
                r"machine-qemu\x2d1\x2dv.scope",
                &format!("vm-{round}"),
            );
            daemon.wait_for_record(&format!("vm-{round}"));
        }
        assert_eq!(undecided(&daemon), 3, "one event of each machine");
        let found: BTreeSet<String> = recorded(&daemon.stop().log).into_iter().collect();
        let rounds = ["first", "second", "third"];
        let expected = rounds.map(|round| [format!("loud-{round}"), format!("vm-{round}")]);
        assert_eq!(found, expected.into_iter().flatten().collect());
    });
}

#[test]
fn other_names_are_in_force_after_a_reload_for_cgroups_of_before_too() {
    machine::test("a reload of rules on units", |setup| {
        let Some(top) = Top::new("a reload of rules on units") else {
            return;
        };
        let old = top.make("old.service");
        let daemon = tarsier(setup, "-a always,exit CALLS -F unit=old.service\n").start();
        let new = top.make("new.service");
        run(&old, "old-1");
        run(&new, "new-1");
        let rules = format!("-a always,exit {CALLS} -F unit=new.service\n");
        setup.write("own.tarsier", &rules);
        daemon.reload();
        run(&old, "old-2");
        run(&new, "new-2");
        run_in(&top, "new.service/below", "new-3");
        assert_eq!(undecided(&daemon), 0, "decided in the kernel");
        let found = recorded(&daemon.stop().log);
        assert_eq!(found, ["old-1", "new-2", "new-3"]);
    });
}

#[test]
fn auditctl_lists_rules_by_workload_and_says_where_they_belong() {
    machine::test("rules by workload and auditctl", |setup| {
        let rules = "-a never,exit -F unit=backup.service\n-a always,exit CALLS -k all\n";
        let daemon = tarsier(setup, rules).start();
        let auditctl = |words: &[&str]| {
            let mut command = Command::new(programs::tarsier());
            command.args(["ctl", "--run-dir"]).arg(setup.path("run"));
            let output = command.args(words).output().expect("it starts");
            let said = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&said).into_owned()
        };
        let listed = auditctl(&["-l"]);
        assert!(
            listed.starts_with("-a never,exit -S all -F unit=backup.service\n"),
            "{listed}"
        );
        let refused = auditctl(&["-a", "never,exit", "-F", "unit=other.service"]);
        assert!(refused.contains("-F unknown field: unit"), "{refused}");
        assert_eq!(auditctl(&["-l"]), listed);
        drop(daemon.stop());
    });
}

#[test]
fn the_kernel_s_audit_is_not_given_rules_that_it_does_not_know() {
    machine::test("rules by workload and the kernel engine", |setup| {
        let rules = "-a always,exit -S chmod -F unit=a.service\n";
        let rules = setup.write("own.tarsier", rules);
        let run = setup.tarsier("").rules(rules).refusing_wrong_rules();
        let ended = run.option("--engine").option("kernel").finish();
        let said = &ended.said;
        assert!(said.contains("own.tarsier:1:"), "{said}");
        assert!(said.contains("use an eBPF engine"), "{said}");
    });
}
