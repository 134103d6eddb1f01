//! Relative names of files, where the records tell which directory they are in and where they do not.

use super::events::Sample;

/// Path that ECS has for the file of an event: its records, in which `@` stands for the stamp.
fn path(records: &str) -> String {
    let records = records.replace('@', "msg=audit(1795229652.245:407):");
    let document = Sample::new(records.into_bytes()).map("ecs");
    document["file"]["path"]
        .as_str()
        .expect("a path")
        .to_owned()
}

const ENTER: &str =
    "type=SYSCALL @ arch=c000003e syscall=426 success=yes exit=1 a0=3 a1=1 a2=1 a3=1 items=1 \
     ppid=1 pid=7 auid=1000 uid=0 comm=\"a\" exe=\"/bin/a\"\n";
const FILE: &str = "type=CWD @ cwd=\"/srv\"\n\
     type=PATH @ item=0 name=\"a.txt\" inode=7 dev=08:01 mode=0100644 nametype=NORMAL\n";

#[test]
fn the_name_of_an_io_uring_operation_is_relative_to_a_directory_that_no_record_has() {
    // openat and unlinkat have a descriptor, which no record has: AT_FDCWD or another.
    for op in [18, 28, 36, 999] {
        let record =
            format!("type=URINGOP @ uring_op={op} success=yes exit=3 items=1 ppid=1 pid=7 uid=0\n");
        for records in [
            format!("{record}{FILE}"),
            format!("{record}{ENTER}{FILE}"),
            format!("{ENTER}{record}{FILE}"),
        ] {
            assert_eq!(path(&records), "a.txt", "{records}");
        }
    }

    // The PARENT record names the directory.
    let parent = "type=URINGOP @ uring_op=36 success=yes exit=0 items=2 ppid=1 pid=7 uid=0\n\
         type=CWD @ cwd=\"/srv\"\n\
         type=PATH @ item=0 name=\"/data\" inode=1 dev=08:01 mode=040755 nametype=PARENT\n\
         type=PATH @ item=1 name=\"a.txt\" inode=7 dev=08:01 mode=0100644 nametype=DELETE\n";
    assert_eq!(path(parent), "/data/a.txt");

    // setxattr has no descriptor.
    let op = "type=URINGOP @ uring_op=42 success=yes exit=0 items=1 ppid=1 pid=7 uid=0\n";
    assert_eq!(path(&format!("{op}{FILE}")), "/srv/a.txt");
}

#[test]
fn the_name_of_a_call_is_relative_to_its_working_directory_only_if_it_says_so() {
    let call = |nr: u32, a0: &str| {
        path(&format!(
            "type=SYSCALL @ arch=c000003e syscall={nr} success=yes exit=3 a0={a0} a1=0 a2=0 a3=0 items=1 ppid=1 pid=7 \
             uid=0\n{FILE}"
        ))
    };
    assert_eq!(call(257, "ffffff9c"), "/srv/a.txt");
    assert_eq!(call(257, "ffffffffffffff9c"), "/srv/a.txt");
    assert_eq!(call(257, "7"), "a.txt");
    assert_eq!(call(2, "7"), "/srv/a.txt");
}
