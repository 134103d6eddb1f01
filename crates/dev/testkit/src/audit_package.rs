//! Debian's audit package of version 4.0.2, whose ausearch and aureport are imitated.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The audit package.
#[derive(Debug)]
pub struct AuditPackage {
    root: PathBuf,
}

impl AuditPackage {
    /// The package. If it is missing, prints that `what` is skipped.
    pub fn find(what: &str) -> Option<AuditPackage> {
        let root = std::env::var_os("TARSIER_PEERS4").map(PathBuf::from);
        if root.is_none() {
            println!("skipped: {what}: TARSIER_PEERS4 is not set");
        }
        root.map(|root| AuditPackage { root })
    }

    /// A command that runs one of its programs with the package's libraries: it needs a newer C library than Debian 12
    /// has.
    ///
    /// # Panics
    /// The package has no C library.
    pub fn command(&self, program: &str) -> Command {
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let libraries = self.root.join("usr/lib").join(&triplet);
        let loader = fs::read_dir(&libraries)
            .expect("libraries")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.to_string_lossy().contains("/ld-linux"))
            .expect("a loader");

        let mut command = Command::new(loader);
        command.arg("--library-path").arg(libraries);
        command.arg(self.root.join("usr/sbin").join(program));
        command
    }
}
