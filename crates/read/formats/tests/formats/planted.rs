//! The comparison with the schemas finds errors that are planted in documents without any.

use super::ecs_facts::EcsFacts;
use super::events::Sample;
use super::ocsf_facts::OcsfFacts;
use serde_json::{json, Value};

const OPEN: &str = "type=SYSCALL msg=audit(1795229630.644:45): arch=c000003e syscall=257 success=yes exit=3 \
     a0=ffffff9c a1=0 a2=0 a3=0 items=1 ppid=1 pid=42 auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 \
     fsgid=0 tty=pts0 ses=3 comm=\"cat\" exe=\"/usr/bin/cat\" key=\"files\"\n\
     type=CWD msg=audit(1795229630.644:45): cwd=\"/srv\"\n\
     type=PATH msg=audit(1795229630.644:45): item=0 name=\"a.txt\" inode=7 dev=08:01 mode=0100644 ouid=0 ogid=0 \
     rdev=00:00 nametype=NORMAL\n";

/// Changes the value at a JSON pointer; `None` removes it.
fn planted(document: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut document = document.clone();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = document.pointer_mut(parent).expect("the parent");
    let parent = parent.as_object_mut().expect("an object");
    match value {
        Some(value) => {
            parent.insert(name.to_owned(), value);
        }
        None => {
            parent.remove(name).expect("it was there");
        }
    }
    document
}

#[test]
fn planted_errors_in_ecs_are_found() {
    let facts = EcsFacts::read();
    let document = Sample::new(OPEN.into()).map("ecs");
    assert_eq!(facts.errors(&document), Vec::<String>::new());
    let plants = [
        ("/@timestamp", Some(json!(1_795_229_630_644_u64))),
        ("/@timestamp", Some(json!("yesterday"))),
        ("/ecs", None),
        ("/event/original", None),
        ("/event/kind", Some(json!("thing"))),
        ("/event/category", Some(json!("file"))),
        ("/event/category", Some(json!(["files"]))),
        ("/event/type", Some(json!(["deletion", "connection"]))),
        ("/event/outcome", Some(json!("maybe"))),
        ("/process/pid", Some(json!("42"))),
        ("/process/nickname", Some(json!("cat"))),
        ("/user/id", Some(json!(0))),
        ("/source", Some(json!({"ip": "host1"}))),
        ("/file/path", Some(json!(["/srv/a.txt"]))),
        ("/file", Some(json!("/srv/a.txt"))),
    ];
    for (pointer, value) in plants {
        let changed = planted(&document, pointer, value.clone());
        assert_ne!(
            facts.errors(&changed),
            Vec::<String>::new(),
            "{pointer} {value:?}"
        );
    }
}

#[test]
fn planted_errors_in_ocsf_are_found() {
    let facts = OcsfFacts::read();
    let document = Sample::new(OPEN.into()).map("ocsf");
    assert_eq!(document["class_uid"], 1001);
    assert_eq!(facts.errors(&document), Vec::<String>::new());
    let plants = [
        ("/activity_id", Some(json!(77))),
        ("/activity_id", Some(json!(13))),
        ("/category_uid", Some(json!(3))),
        ("/class_uid", Some(json!(1002))),
        ("/class_uid", Some(json!(1007))),
        ("/type_uid", Some(json!(100_115))),
        ("/severity_id", None),
        ("/time", Some(json!("2026-11-24T00:00:00Z"))),
        ("/time", None),
        ("/metadata/version", None),
        ("/metadata/product", Some(json!({}))),
        ("/metadata/profiles", Some(json!([]))),
        ("/device/type_id", None),
        ("/device/hostname", None),
        ("/actor", None),
        ("/actor", Some(json!({}))),
        ("/actor/process/pid", None),
        ("/actor/process/pid", Some(json!("42"))),
        ("/file/name", None),
        ("/file/type_id", Some(json!(42))),
        ("/file/colour", Some(json!("red"))),
        ("/src_endpoint", Some(json!({"ip": "1.2.3.4"}))),
        ("/raw_data", Some(json!(7))),
    ];
    for (pointer, value) in plants {
        let changed = planted(&document, pointer, value.clone());
        assert_ne!(
            facts.errors(&changed),
            Vec::<String>::new(),
            "{pointer} {value:?}"
        );
    }
}
