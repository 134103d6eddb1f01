//! Objects in the records of calls that change or remove them at once, so that no look-up after the calls can find them.

use crate::calls::{call, Call, Caller};
use crate::daemon::Setup;
use crate::log::{self, Event};
use crate::machine;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const GID: u32 = 61114;

/// Role, inode and mode of the PATH records, as `DELETE 7 0100644`; `-` where there is none.
fn objects(event: &Event) -> Vec<String> {
    let paths = event.records.iter().filter(|record| record.kind == "PATH");
    let of = |record: &log::Record, name| record.field(name).unwrap_or("-").to_owned();
    paths
        .map(|path| {
            ["nametype", "inode", "mode"]
                .map(|name| of(path, name))
                .join(" ")
        })
        .collect()
}

/// The events of calls on one file and on one segment of shared memory; the inodes of the directory and the file.
fn changed(setup: &Setup, settings: &str) -> (Vec<Event>, u64, u64) {
    let calls = "unlink,rename,chmod,link,chdir,shmctl";
    let rule = format!("-a always,exit -F arch=b64 -S {calls} -F gid={GID} -k k\n");
    let run = setup.tarsier(&rule).format("raw");
    setup.configure(&format!(
        "flush = NONE\nmax_log_file_action = IGNORE\n{settings}"
    ));
    let daemon = run.start();
    let dir = setup.path("d");
    std::fs::create_dir(&dir).expect("a directory");
    std::fs::write(dir.join("f"), "text").expect("a file");
    let mode = |path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode")
    };
    mode(dir.join("f"), 0o644);
    mode(dir.clone(), 0o755);
    let ino = |path| std::fs::metadata(path).expect("it is there").ino();
    let inos = (ino(dir.clone()), ino(dir.join("f")));
    // SAFETY: no pointers.
    let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o640) };
    assert!(segment >= 0, "a segment");
    let calls: Vec<Call> = vec![
        call!(chdir, dir.as_path()),
        call!(rename, "f", "g"),
        call!(chmod, "g", 0o600),
        call!(link, "g", "h"),
        call!(unlink, "g"),
        call!(unlink, "h"),
        call!(shmctl, segment, libc::IPC_RMID, 0),
    ];
    let made = Caller {
        directory: Some(c"/".into()),
        ..Caller::gid(GID)
    }
    .make(&calls);
    assert_eq!(made.results, [0; 7]);
    let events = log::events(&daemon.stop().log);
    let events: Vec<Event> = log::events_of(&events, made.pid).cloned().collect();
    assert_eq!(events.len(), calls.len());
    (events, inos.0, inos.1)
}

#[test]
fn names_lead_to_what_they_led_to_when_the_calls_were_over() {
    machine::test("objects", |setup| {
        let (events, dir, file) = changed(setup, "");
        let parent = format!("PARENT {dir} 040755");
        let now = |role| format!("{role} {file} 0100644");
        let then = |role| format!("{role} {file} 0100600");
        let cwd = |event: &Event| {
            event
                .record("CWD")
                .and_then(|cwd| cwd.field("cwd").map(str::to_owned))
        };
        assert_eq!(cwd(&events[0]).as_deref(), Some("/"));
        assert_eq!(objects(&events[0]), [format!("NORMAL {dir} 040755")]);
        assert_eq!(
            objects(&events[1]),
            [parent.clone(), parent.clone(), now("DELETE"), now("CREATE")]
        );
        assert_eq!(objects(&events[2]), [then("NORMAL")]);
        assert_eq!(
            objects(&events[3]),
            [parent, then("NORMAL"), then("CREATE")]
        );
        assert_eq!(objects(&events[4])[1], "DELETE - -");
        let ipc = events[6].record("IPC").map(log::Record::body);
        assert!(
            ipc.is_some_and(|ipc| ipc.contains("ouid=0 ogid=0 mode=0640")),
            "{ipc:?}"
        );
    });
}

#[test]
fn with_objects_before_names_lead_to_what_the_calls_changed_and_removed() {
    machine::test("objects before", |setup| {
        let (events, dir, file) = changed(setup, "objects_before = yes\n");
        let removed = [
            format!("PARENT {dir} 040755"),
            format!("DELETE {file} 0100600"),
        ];
        assert_eq!(objects(&events[2]), [format!("NORMAL {file} 0100644")]);
        assert_eq!(objects(&events[4]), removed);
        assert_eq!(objects(&events[5]), removed);
    });
}
