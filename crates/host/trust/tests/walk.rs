//! Files, directories and links that somebody other than root could change.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{chown, lchown, symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use trust::{open, Directory, Fault, Links, Program, TrustError};

const OTHER: u32 = 1234;

/// `upper/lower/file`, all owned by the user who runs the test.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("upper/lower")).expect("directories");
        let place = Place { dir };
        fs::write(place.file(), "text").expect("a file");
        for path in [place.at("upper"), place.at("upper/lower")] {
            mode(&path, 0o755);
        }
        mode(&place.file(), 0o644);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.at("upper/lower/file")
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
}

/// Fault found by opening `path`, and the file that has it.
fn fault(path: &Path) -> (PathBuf, Fault) {
    match open(path, Links::Follow) {
        Err(TrustError::Untrusted { at, fault, .. }) => (at, fault),
        other => panic!("{}: {other:?}", path.display()),
    }
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: files of others: needs root, who can give files away");
    }
    is_root
}

#[test]
fn what_somebody_else_can_write_is_refused_wherever_it_is_on_the_way() {
    let place = Place::new();
    let file = place.file();
    let mut text = String::new();
    let mut opened = open(&file, Links::Refuse).expect("trusted");
    opened.read_to_string(&mut text).expect("read");
    assert_eq!(text, "text");
    for (name, good) in [
        ("upper", 0o755),
        ("upper/lower", 0o755),
        ("upper/lower/file", 0o644),
    ] {
        for bits in [0o020, 0o002] {
            mode(&place.at(name), good | bits);
            assert_eq!(fault(&file), (place.at(name), Fault::Mode(good | bits)));
        }
        mode(&place.at(name), good);
    }
    let error = {
        mode(&place.at("upper"), 0o777);
        open(&file, Links::Follow).expect_err("refused").to_string()
    };
    let upper = place.at("upper");
    let upper = upper.display();
    let expected = format!(
        "{}: {upper} on the way to it is writable by group or others (mode 0777); it must be \
         writable by root only: run: chmod go-w {upper}",
        file.display()
    );
    assert_eq!(error, expected);
}

#[test]
fn what_somebody_else_owns_is_refused_wherever_it_is_on_the_way() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    for name in ["upper", "upper/lower", "upper/lower/file"] {
        chown(place.at(name), Some(OTHER), None).expect("chown");
        assert_eq!(fault(&place.file()), (place.at(name), Fault::Owner(OTHER)));
        chown(place.at(name), Some(0), None).expect("chown");
    }
    open(&place.file(), Links::Refuse).expect("trusted");
}

#[test]
fn a_sticky_directory_may_be_above_a_file_but_its_names_are_not_trusted() {
    let place = Place::new();
    mode(&place.at("upper/lower"), 0o1777);
    open(&place.file(), Links::Refuse).expect("nobody else can replace it");
    let listed = Directory::open(&place.at("upper/lower"), Links::Follow);
    assert!(matches!(
        listed.err(),
        Some(TrustError::Untrusted {
            fault: Fault::Mode(0o1777),
            ..
        })
    ));
    if is_root() {
        // The owner of a sticky directory can remove what others made there.
        chown(place.at("upper/lower"), Some(OTHER), None).expect("chown");
        assert_eq!(fault(&place.file()).1, Fault::Owner(OTHER));
    }
}

#[test]
fn links_are_followed_if_they_and_what_they_lead_through_are_roots() {
    let place = Place::new();
    let link = place.at("link");
    symlink("upper/../upper/lower/file", &link).expect("a link");
    open(&link, Links::Follow).expect("trusted");
    let refused = open(&link, Links::Refuse).expect_err("a link");
    assert!(matches!(refused, TrustError::Io { source, .. }
        if source.raw_os_error() == Some(libc::ELOOP)));
    mode(&place.at("upper"), 0o775);
    assert_eq!(fault(&link), (place.at("upper"), Fault::Mode(0o775)));
    mode(&place.at("upper"), 0o755);
    let absolute = place.at("upper/absolute");
    symlink(place.at("upper/lower"), &absolute).expect("a link");
    open(&absolute.join("file"), Links::Refuse).expect("only the last name must not be a link");
    let endless = place.at("endless");
    symlink("endless", &endless).expect("a link");
    assert!(matches!(
        open(&endless, Links::Follow),
        Err(TrustError::Io { .. })
    ));
    if is_root() {
        lchown(&link, Some(OTHER), None).expect("lchown");
        assert_eq!(fault(&link), (link.clone(), Fault::Owner(OTHER)));
    }
}

#[test]
fn only_regular_files_are_opened_and_what_is_missing_is_said_to_be() {
    let place = Place::new();
    assert_eq!(fault(&place.at("upper")).1, Fault::Irregular);
    assert_eq!(fault(Path::new("/dev/null")).1, Fault::Irregular);
    assert_eq!(fault(Path::new("/")).1, Fault::Irregular);
    for missing in ["none", "none/file", "upper/../none"] {
        let error = open(&place.at(missing), Links::Follow).expect_err("nothing there");
        assert!(error.is_missing(), "{error}");
    }
    let below = place.file().join("below");
    let error = open(&below, Links::Follow).expect_err("no directory");
    assert!(
        !error.is_missing() && error.to_string().contains("Not a directory"),
        "{error}"
    );
}

#[test]
fn the_program_that_was_checked_is_the_one_that_runs() {
    let place = Place::new();
    let path = place.at("upper/lower/program");
    fs::copy("/bin/cat", &path).expect("a binary");
    mode(&path, 0o750);
    let found = Program::find(&path).expect("trusted");
    // Only its directory is held: the path leads to another by now.
    fs::rename(place.at("upper/lower"), place.at("upper/held")).expect("rename");
    fs::create_dir(place.at("upper/lower")).expect("a directory");
    fs::write(&path, "#!/bin/sh\necho wrong\n").expect("a script");
    mode(&path, 0o750);
    let args = [
        "/proc/self/comm".to_owned(),
        "/proc/self/environ".to_owned(),
    ];
    let command = found.command(&args, |command| {
        command.stdout(Stdio::piped());
    });
    let child = command.expect("a command").spawn().expect("started");
    let output = child.wait_with_output().expect("its end");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "program\n");
}

#[test]
fn a_script_runs_with_its_path_its_arguments_and_no_environment() {
    let place = Place::new();
    let path = place.at("upper/lower/script");
    for first in ["#!/bin/sh\n", ""] {
        fs::write(&path, format!("{first}echo \"$0\" \"$@\" \"$HOME\"\n")).expect("a script");
        mode(&path, 0o755);
        let found = Program::find(&path).expect("trusted");
        let command = found.command(&["a b".to_owned()], |command| {
            command.stdout(Stdio::piped());
        });
        let child = command.expect("a command").spawn().expect("started");
        let output = child.wait_with_output().expect("its end");
        let expected = format!("{} a b \n", path.display());
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
    mode(&path, 0o644);
    let error = Program::find(&path)
        .err()
        .expect("not executable")
        .to_string();
    assert!(error.contains("not executable (mode 0644)"), "{error}");
    mode(&path, 0o775);
    assert!(Program::find(&path).is_err());
}
