//! Rules on files select every call that reaches the file, by whatever name.

use crate::calls::{call, Arg, Call, Caller};
use crate::selection::{make, row, rows_select, Make, Row};
use std::path::Path;

const NO: &[&str] = &[];
const HERE: i32 = libc::AT_FDCWD;

fn open(path: &Path, flags: i32) -> Call {
    call!(openat, HERE, path, flags, 0o600)
}

fn write(path: &Path) -> Call {
    open(path, libc::O_WRONLY)
}

fn create(path: &Path) -> Call {
    open(path, libc::O_WRONLY | libc::O_CREAT)
}

/// Makes calls in a process of its own, so that its events are examined separately.
fn by_root(calls: &[Call], logged: &[&'static str]) -> Make {
    make(Caller::default(), calls, logged)
}

#[test]
fn a_watch_follows_its_name_from_before_the_file_is_there_until_after_it_is_replaced() {
    rows_select("watch", |setup| {
        let dir = setup.path("d");
        std::fs::create_dir(&dir).expect("a directory");
        let (new, other) = (dir.join("new"), dir.join("other"));
        let (link, hard) = (dir.join("link"), dir.join("hard"));
        let opened: &[&str] = &["openat w"];
        vec![row(
            format!("-w {} -p wa -k w", new.display()),
            vec![
                by_root(&[create(&new)], opened),
                by_root(&[write(&new)], opened),
                by_root(&[open(&new, libc::O_RDONLY)], NO),
                by_root(&[create(&other)], NO),
                by_root(
                    &[call!(rename, other.as_path(), new.as_path())],
                    &["rename w"],
                ),
                by_root(&[write(&new)], opened),
                by_root(&[call!(chmod, new.as_path(), 0o640)], &["chmod w"]),
                by_root(&[call!(stat, new.as_path(), vec![0u8; 256])], NO),
                by_root(&[call!(link, new.as_path(), hard.as_path())], &["link w"]),
                by_root(&[write(&hard)], opened).after_refresh(),
                by_root(&[call!(symlink, "new", link.as_path())], NO),
                by_root(&[write(&link)], opened),
                by_root(&[call!(unlink, new.as_path())], &["unlink w"]),
                by_root(&[create(&new)], opened),
                by_root(
                    &[call!(rename, new.as_path(), other.as_path())],
                    &["rename w"],
                ),
                by_root(&[write(&other)], NO).after_refresh(),
            ],
        )]
    });
}

#[test]
fn an_open_of_a_missing_file_is_not_recorded_although_the_file_is_made_afterwards() {
    rows_select("watched file that comes", |setup| {
        let (file, other) = (setup.path("file"), setup.path("other"));
        std::fs::write(&other, "text").expect("a file");
        let calls = [
            write(&file),
            call!(chmod, file.as_path(), 0o640),
            call!(rename, other.as_path(), file.as_path()),
        ];
        vec![row(
            format!("-w {} -p wa -k w", file.display()),
            vec![by_root(&calls, &["rename w"])],
        )]
    });
}

#[test]
fn a_call_by_the_watched_name_is_recorded_although_the_file_has_gone_since() {
    rows_select("watched file that goes", |setup| {
        let (file, other) = (setup.path("file"), setup.path("other"));
        std::fs::write(&file, "text").expect("a file");
        let calls = [
            call!(truncate, file.as_path(), 0),
            call!(chmod, file.as_path(), 0o640),
            call!(rename, file.as_path(), other.as_path()),
        ];
        let logged = &["truncate w", "chmod w", "rename w"];
        vec![row(
            format!("-w {} -p wa -k w", file.display()),
            vec![by_root(&calls, logged)],
        )]
    });
}

#[test]
fn a_watched_file_is_found_by_relative_names_descriptors_and_linked_directories() {
    rows_select("names of a watched file", |setup| {
        let dir = setup.path("d");
        std::fs::create_dir_all(dir.join("sub")).expect("directories");
        std::fs::write(dir.join("file"), "text").expect("a file");
        std::os::unix::fs::symlink(&dir, setup.path("alias")).expect("a link");
        let file = dir.join("file");
        let relative = |from: &Path, name: &str| {
            let calls = [call!(openat, HERE, name, libc::O_WRONLY)];
            make(Caller::within(from), &calls, &["openat w"])
        };
        let below_descriptor = [
            call!(openat, HERE, dir.as_path(), libc::O_DIRECTORY),
            Call::named(
                "openat",
                vec![Arg::Result(0), "file".into(), libc::O_WRONLY.into()],
            ),
            Call::named(
                "fchmodat",
                vec![Arg::Result(0), "file".into(), 0o600.into()],
            ),
        ];
        let through_alias = setup.path("alias").join("file");
        vec![row(
            format!("-w {} -p wa -k w", file.display()),
            vec![
                relative(&dir, "file"),
                relative(&dir, "./file"),
                relative(&dir.join("sub"), "../file"),
                relative(&dir, "sub//.././file"),
                by_root(&below_descriptor, &["openat w", "fchmodat w"]),
                by_root(&[write(&through_alias)], &["openat w"]),
                by_root(
                    &[call!(chmod, through_alias.as_path(), 0o600)],
                    &["chmod w"],
                ),
                make(
                    Caller::within(&dir),
                    &[call!(unlink, "sub/../file")],
                    &["unlink w"],
                ),
            ],
        )]
    });
}

#[test]
fn perm_selects_by_what_a_call_does_to_the_file() {
    rows_select("perm", |setup| {
        let file = setup.path("file");
        std::fs::write(&file, "text").expect("a file");
        let name = file.as_path();
        let calls = [
            open(name, libc::O_RDONLY),
            write(name),
            open(name, libc::O_RDWR),
            call!(chmod, name, 0o600),
            call!(truncate, name, 0),
            call!(readlink, name, vec![0u8; 8], 8),
            call!(stat, name, vec![0u8; 256]),
        ];
        let on = |perm: &str, logged: &[&'static str]| -> Row {
            let rule = format!("-w {} -p {perm} -k k", name.display());
            row(rule, vec![by_root(&calls, logged)])
        };
        vec![
            on("r", &["openat k", "openat k", "readlink k"]),
            on("w", &["openat k", "openat k", "truncate k"]),
            on("a", &["chmod k"]),
            on("x", NO),
            row(
                format!(
                    "-a always,exit -F arch=b64 -S openat -F path={} -k k",
                    name.display()
                ),
                vec![by_root(&calls, &["openat k", "openat k", "openat k"])],
            ),
            row(
                format!(
                    "-a always,exit -F arch=b64 -S stat,chmod -F path={} -F uid=61101 -k k",
                    name.display()
                ),
                vec![by_root(&calls, NO)],
            ),
        ]
    });
}

#[test]
fn a_watched_tree_holds_what_is_made_in_and_moved_into_it() {
    rows_select("dir", |setup| {
        let (tree, out) = (setup.path("tree"), setup.path("out"));
        std::fs::create_dir_all(tree.join("sub")).expect("directories");
        std::fs::create_dir(&out).expect("a directory");
        for file in [tree.join("sub/f"), out.join("f"), out.join("g")] {
            std::fs::write(file, "text").expect("a file");
        }
        let path = |name: &str| setup.path(name);
        let opened: &[&str] = &["openat t"];
        let rename = |from: &str, to: &str| call!(rename, path(from).as_path(), path(to).as_path());
        vec![row(
            format!("-w {} -p wa -k t", tree.display()),
            vec![
                by_root(&[write(&path("tree/sub/f"))], opened),
                by_root(&[write(&path("out/f"))], NO),
                by_root(&[write(&path("tree/../out/f"))], NO),
                make(
                    Caller::within(&out),
                    &[call!(openat, HERE, "../tree/sub/f", libc::O_WRONLY)],
                    opened,
                ),
                by_root(&[create(&path("tree/sub/new"))], opened),
                by_root(
                    &[call!(mkdir, path("tree/sub2").as_path(), 0o700)],
                    &["mkdir t"],
                ),
                by_root(&[create(&path("tree/sub2/new"))], opened),
                by_root(&[rename("out/g", "tree/sub2/g")], &["rename t"]),
                by_root(&[write(&path("tree/sub2/g"))], opened),
                by_root(&[rename("tree/sub2", "tree/sub3")], &["rename t"]),
                by_root(&[write(&path("tree/sub3/g"))], opened),
                by_root(&[rename("tree/sub3/g", "out/g")], &["rename t"]),
                by_root(&[write(&path("out/g"))], NO),
                by_root(&[rename("out/f", "out/h")], NO),
                by_root(&[write(&path("tree/none"))], NO),
                by_root(
                    &[call!(mkdir, path("tree/sub").as_path(), 0o700)],
                    &["mkdir t"],
                ),
                by_root(&[call!(unlink, path("tree/none").as_path())], &["unlink t"]),
                by_root(
                    &[call!(unlink, path("tree/sub/f").as_path())],
                    &["unlink t"],
                ),
            ],
        )]
    });
}
