//! Programs that tests run beside the daemon.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The checkout.
pub(crate) fn checkout() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// The program under test.
pub(crate) fn tarsier() -> PathBuf {
    let built = env!("CARGO_BIN_EXE_tarsier");
    std::env::var_os("TARSIER_BIN").map_or_else(|| PathBuf::from(built), PathBuf::from)
}

/// `tarsier-forward`, which a build of the workspace's tests puts beside this one.
pub(crate) fn forward() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_tarsier")).with_file_name("tarsier-forward");
    std::env::var_os("TARSIER_FORWARD_BIN").map_or(beside, PathBuf::from)
}

/// The program of tests/workload.
pub(crate) fn workload() -> PathBuf {
    if let Some(path) = std::env::var_os("TARSIER_WORKLOAD") {
        return path.into();
    }
    let output = Command::new(checkout().join("scripts/build-workload"))
        .stderr(Stdio::inherit())
        .output()
        .expect("scripts/build-workload runs");
    assert!(output.status.success(), "scripts/build-workload failed");
    let path = String::from_utf8(output.stdout).expect("a path");
    path.trim().into()
}

/// The program of tests/evade.
pub(crate) fn evade() -> PathBuf {
    let mut build = Command::new(checkout().join("scripts/build-evade"));
    let (path, _) = output_of(&mut build);
    path.trim().into()
}

/// One of the distribution's audit programs.
pub(crate) fn peer(program: &str) -> Command {
    let mut command = Command::new(checkout().join("scripts/peer"));
    command.arg(program).stdin(Stdio::null());
    command
}

/// Output of a command that has to succeed: standard output and standard error.
pub(crate) fn output_of(command: &mut Command) -> (String, String) {
    let output = command.output().expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{command:?}: {}: {err}{}",
        output.status,
        out.chars().take(4000).collect::<String>()
    );
    (out, err)
}
