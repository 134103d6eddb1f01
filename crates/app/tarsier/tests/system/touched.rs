//! What a call touched, whoever calls: refused calls, links that are not followed, links that lead out of a directory, and
//! other mount namespaces. The kernel's audit records the same (tests/exact compares).

use crate::calls::{call, Call, Caller};
use crate::daemon::Setup;
use crate::log::{self, Event, Record};
use crate::machine;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const GID: u32 = 61351;
const NOBODY: u32 = 12345;

/// The PATH records as `NAMETYPE NAME`, where a name in the directory of the test is relative to it, and ` =PATH` behind
/// it if the inode is that of this file there.
fn items(event: &Event, dir: &Path) -> Vec<String> {
    let text = dir.to_str().expect("a test's path is UTF-8");
    let known = [
        "", "f", "d", "d/f", "pub", "link", "link-out", "out", "out/x", "tree",
    ];
    let ino = |path: &&str| std::fs::symlink_metadata(dir.join(path)).map(|found| found.ino());
    let item = |record: &Record| {
        let role = record.field("nametype").expect("a role");
        let name = record.field("name").expect("a name").replace(text, "");
        let inode = record.number("inode").map(|inode| inode as u64);
        let mut known = known.iter();
        let is = known.find(|path| inode.is_some() && ino(path).ok() == inode);
        match is {
            Some(path) => format!("{role} {name} ={path}"),
            None if inode.is_some() => format!("{role} {name} =?"),
            None => format!("{role} {name}"),
        }
    };
    let paths = event.records.iter().filter(|record| record.kind == "PATH");
    paths.map(item).collect()
}

/// A directory of root's with files, links, and directories that all may or may not change.
fn tree(setup: &Setup) -> std::path::PathBuf {
    let dir = setup.path("objects");
    for name in ["", "d", "pub", "out", "tree"] {
        std::fs::create_dir(dir.join(name)).expect("a directory");
    }
    for name in ["f", "d/f", "out/x"] {
        std::fs::write(dir.join(name), "text").expect("a file");
    }
    symlink("f", dir.join("link")).expect("a link");
    symlink("../out", dir.join("tree/link")).expect("a link");
    let mode = |name, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.join(name), mode).expect("a mode")
    };
    mode("", 0o755);
    mode("d", 0o755);
    mode("pub", 0o1777);
    mode("tree", 0o755);
    mode("out", 0o777);
    dir
}

/// The events of calls that `caller` makes in `dir` under these rules.
fn events(setup: &Setup, rules: &str, dir: &Path, caller: Caller, calls: &[Call]) -> Vec<Event> {
    let run = setup.tarsier(rules).format("enriched");
    let daemon = run.start();
    let caller = Caller {
        gids: Some([GID; 3]),
        ..caller
    };
    let directory = Caller::within(dir).directory;
    let made = Caller {
        directory,
        ..caller
    }
    .make(calls);
    let events = log::events(&daemon.stop().log);
    log::events_of(&events, made.pid).cloned().collect()
}

#[test]
fn a_refused_change_of_a_directory_says_what_it_was_about() {
    machine::test("refused changes", |setup| {
        let dir = tree(setup);
        let names = "unlink,rmdir,rename,mkdir,symlink,mknod,link";
        let rules = format!("-a always,exit -F arch=b64 -S {names} -F gid={GID} -k k\n");
        let calls = [
            call!(unlink, "f"),
            call!(rmdir, "d"),
            call!(rename, "f", "pub/new"),
            call!(mkdir, "new", 0o700),
            call!(symlink, "text", "new"),
            call!(mknod, "new", 0o100600, 0),
            call!(mkdir, "/", 0o700),
            call!(mkdir, "f", 0o700),
        ];
        let user = Caller::uid(NOBODY);
        let events = events(setup, &rules, &dir, user, &calls);
        let found: Vec<Vec<String>> = events.iter().map(|event| items(event, &dir)).collect();
        let expected: [&[&str]; 8] = [
            &["PARENT  =", "DELETE f =f"],
            &["PARENT  =", "DELETE d =d"],
            &["PARENT pub/ =pub", "PARENT  =", "DELETE f =f"],
            &["PARENT  =", "CREATE new"],
            &["PARENT  =", "UNKNOWN text", "CREATE new"],
            &["PARENT  =", "CREATE new"],
            &["PARENT / =?"],
            &["PARENT  ="],
        ];
        for (found, expected) in found.iter().zip(expected) {
            let mut sorted = found.clone();
            let mut expected: Vec<_> = expected.iter().map(|item| (*item).to_owned()).collect();
            sorted.sort();
            expected.sort();
            assert_eq!(sorted, expected);
        }
        assert_eq!(found.len(), calls.len());
    });
}

#[test]
fn a_watch_sees_that_somebody_was_refused_to_remove_its_file() {
    machine::test("refused removal", |setup| {
        let dir = tree(setup);
        let f = dir.join("f");
        let rules = format!(
            "-a always,exit -F arch=b64 -F path={} -F perm=wa -F gid={GID} -k f\n",
            f.display()
        );
        let calls = [
            call!(unlink, "f"),
            call!(unlink, "d/f"),
            call!(rename, f.as_path(), "pub/x"),
        ];
        let events = events(setup, &rules, &dir, Caller::uid(NOBODY), &calls);
        let brief: Vec<_> = events.iter().filter_map(Event::brief).collect();
        assert_eq!(brief, ["unlink f", "rename f"]);
        for event in &events {
            let call = event.record("SYSCALL").expect("a SYSCALL");
            assert_eq!(call.field("match"), None, "it is known");
        }
    });
}

#[test]
fn a_link_that_is_not_to_be_followed_is_what_the_call_touched() {
    const AT_FDCWD: i32 = -100;
    const IN_DONT_FOLLOW: i32 = 0x0200_0000;
    machine::test("no-follow flags", |setup| {
        let dir = tree(setup);
        let names = "inotify_add_watch,umount2,name_to_handle_at,execveat,statx";
        let rule = |file: &str| {
            let file = dir.join(file);
            let file = file.display();
            format!(
                "-a always,exit -F arch=b64 -S {names} -F path={file} -F gid={GID} -k {{key}}\n"
            )
        };
        let rules = rule("f").replace("{key}", "file") + &rule("link").replace("{key}", "link");
        let calls = [
            call!(inotify_add_watch, -1, "link", 1 | IN_DONT_FOLLOW),
            call!(umount2, "link", 8),
            call!(name_to_handle_at, AT_FDCWD, "link", 0, 0, 0),
            call!(execveat, AT_FDCWD, "link", 0, 0, 0x100),
            call!(statx, AT_FDCWD, "link", 0x100, 0x7ff, 0),
            call!(umount2, "link", 0),
            call!(statx, AT_FDCWD, "link", 0, 0x7ff, 0),
        ];
        let events = events(setup, &rules, &dir, Caller::default(), &calls);
        let brief: Vec<_> = events.iter().filter_map(Event::brief).collect();
        let expected = [
            "umount2 link",
            "execveat link",
            "statx link",
            "umount2 file",
            "statx file",
        ];
        // Calls that need something else before they look at the name may or may not be there.
        let is_sure = |event: &&str| !event.starts_with("inotify") && !event.starts_with("name_to");
        let told: Vec<&str> = brief.iter().map(String::as_str).filter(is_sure).collect();
        assert_eq!(told, expected);
    });
}

#[test]
fn what_a_link_out_of_a_directory_leads_to_is_not_in_the_directory() {
    machine::test("links out", |setup| {
        let dir = tree(setup);
        let top = dir.join("tree");
        let rules = format!(
            "-a always,exit -F arch=b64 -F dir={} -F perm=wa -F gid={GID} -k tree\n",
            top.display()
        );
        let calls = [
            call!(mkdir, "tree/link/a", 0o700),
            call!(rmdir, "tree/link/a"),
            call!(chmod, "tree/link", 0o755),
            call!(chmod, "tree/link/x", 0o600),
            call!(unlink, "tree/link/x"),
            call!(unlink, "tree/link"),
        ];
        let events = events(setup, &rules, &dir, Caller::default(), &calls);
        let brief: Vec<_> = events.iter().filter_map(Event::brief).collect();
        // The link itself is in the directory.
        let told: Vec<_> = events.iter().map(|event| items(event, &dir)).collect();
        assert_eq!(brief, ["unlink tree"], "{told:?}");
    });
}

#[test]
fn short_lived_mount_namespaces_have_names_of_their_own() {
    machine::test("other mount namespaces", |setup| {
        let dir = tree(setup);
        let rules = format!(
            "-w /etc/shadow -p wa -k identity\n-a always,exit -F arch=b64 -F path={0}/f -F perm=wa -F gid={GID} -k f\n\
             -a always,exit -F arch=b64 -F dir={0}/d -F perm=wa -F gid={GID} -k d\n",
            dir.display()
        );
        let daemon = setup.tarsier(&rules).format("enriched").start();
        // What is made in a cgroup or an overlay has no entry in the kernel's cache until somebody looks for it.
        let script = "mount -t tmpfs t /mnt; mkdir /mnt/u /mnt/w /mnt/o; mount -t cgroup2 c /media
            mount -t overlay o -o lowerdir=\"$1/out\",upperdir=/mnt/u,workdir=/mnt/w /mnt/o
            mkdir /media/tarsier$$; chmod 700 /media/tarsier$$; rmdir /media/tarsier$$
            touch /mnt/o/f; ln /mnt/o/f /mnt/o/g; mknod /mnt/o/n p; ln -s f /mnt/o/s; mv /mnt/o/g /mnt/o/h; rm /mnt/o/h /mnt/o/n /mnt/o/s
            for i in 1 2 3 4 5; do mkdir /mnt/d; touch /mnt/shadow; chmod 700 /mnt/d; ln /mnt/shadow /mnt/s; mv /mnt/d /mnt/e; rm /mnt/s; rmdir /mnt/e; done
            mount --bind \"$1/out\" /etc
            touch /etc/shadow; chmod 600 /etc/shadow; rm /etc/shadow
            chmod 640 \"$1/f\"; touch \"$1/d/new\"";
        for _ in 0..10 {
            let mut command = Command::new("unshare");
            command.args(["-mC", "sh", "-ec", script, "sh"]).arg(&dir);
            let status = command.gid(GID).status().expect("unshare starts");
            assert!(status.success(), "the work is done");
        }
        let events = log::events(&daemon.stop().log);
        let mut brief: Vec<_> = events.iter().filter_map(Event::brief).collect();
        brief.retain(|event| !event.ends_with(" -"));
        brief.sort();
        brief.dedup();
        let other = |event: &&Event| {
            event
                .brief()
                .is_some_and(|brief| brief.ends_with("identity"))
        };
        let other = events.iter().find(other);
        assert_eq!(brief, ["fchmodat f", "openat d"], "{other:?}");
        let times = |name: &str| {
            let of = |event: &&Event| event.brief().as_deref() == Some(name);
            events.iter().filter(of).count()
        };
        assert_eq!((times("fchmodat f"), times("openat d")), (10, 10));
    });
}

#[test]
fn a_mount_names_the_directories_of_its_layers() {
    machine::test("layers of a mount", |setup| {
        let dir = tree(setup);
        for name in ["l1", "l2", "u", "w", "m"] {
            std::fs::create_dir(dir.join(name)).expect("a directory");
        }
        let rules =
            format!("-a always,exit -F arch=b64 -S mount,fsconfig -F gid={GID} -k mounts\n");
        let daemon = setup.tarsier(&rules).format("raw").start();
        let script = "mount -t overlay overlay -o lowerdir=l1:l2,upperdir=u,workdir=w m";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-ec", script]).current_dir(&dir);
        let status = command.gid(GID).status().expect("unshare starts");
        assert!(status.success(), "the layers are mounted");
        let events = log::events(&daemon.stop().log);
        let names: Vec<String> = events
            .iter()
            .filter(|event| {
                event
                    .brief()
                    .is_some_and(|brief| brief.ends_with(" mounts"))
            })
            .flat_map(|event| &event.records)
            .filter(|record| record.kind == "PATH")
            .filter_map(|record| record.field("name").map(str::to_owned))
            .collect();
        for name in ["l1", "l2", "u", "w"] {
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
    });
}
