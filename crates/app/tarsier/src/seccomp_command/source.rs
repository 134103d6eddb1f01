//! Profiles from the command line.

use anyhow::{bail, Context as _, Result};
use cli::messages::report;
use cli::seccomp::ProfileArgs;
use seccomp::policy::{Abi, Policy};
use seccomp::profile::{self, Context, DOCKER_DEFAULT};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Every capability of linux/capability.h, by number.
const CAPS: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// Facts that a profile depends on, from the command line and this host.
pub(super) fn context(args: &ProfileArgs) -> Result<Context> {
    let native = match &args.arch {
        None => Abi::native(),
        Some(name) => Abi::from_name(name).with_context(|| {
            format!("--arch {name}: no such architecture; take x86-64, x32, x86, arm64 or arm")
        })?,
    };
    let kernel = match &args.kernel {
        Some(text) => version(text).with_context(|| {
            format!("--kernel {text}: not a version; write two numbers, such as 6.1")
        })?,
        None => {
            let release = rustix::system::uname();
            let release = release.release().to_string_lossy();
            version(&release).with_context(|| format!("kernel release {release}: no version"))?
        }
    };

    let mut context = Context::docker(native, kernel);
    context.enosys = !args.no_enosys;
    if let Some(caps) = &args.caps {
        context.caps = capabilities(caps)?;
    }

    Ok(context)
}

fn capabilities(text: &str) -> Result<Vec<String>> {
    let named = |name: &str| format!("CAP_{name}");
    match text {
        "all" => return Ok(CAPS.iter().map(|name| named(name)).collect()),
        "none" => return Ok(Vec::new()),
        _ => {}
    }

    let caps = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    caps.map(|cap| {
        let upper = cap.to_ascii_uppercase();
        let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
        if !CAPS.contains(&name) {
            bail!("--caps {cap}: no such capability; see capabilities(7)");
        }
        Ok(named(name))
    })
    .collect()
}

/// `X.Y` at the start of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Reads a profile and prints its notes on standard error.
pub(super) fn policy(path: &Path, context: &Context) -> Result<Policy> {
    let text = text(path)?;
    let policy = quiet_policy(path, &text, context)?;
    report_notes(&path.display().to_string(), &policy.notes);
    Ok(policy)
}

/// Prints notes on standard error: the first ones, and how many more there are.
pub(super) fn report_notes(place: &str, notes: &[String]) {
    const MOST: usize = 20;

    for note in notes.iter().take(MOST) {
        report!("tarsier: {place}: note: {note}");
    }
    if let Some(more @ 1..) = notes.len().checked_sub(MOST) {
        report!("tarsier: {place}: note: {more} more notes");
    }
}

/// The policy of a profile with this text, without notes.
pub(super) fn quiet_policy(path: &Path, text: &str, context: &Context) -> Result<Policy> {
    profile::parse(text, context).with_context(|| path.display().to_string())
}

/// Whether a text is certainly a profile and no filter.
pub(super) fn is_profile(text: &str) -> bool {
    profile::Form::of(text) != profile::Form::List
}

/// Whether `docker` stands for Docker's default profile.
pub(super) fn is_builtin(path: &Path) -> bool {
    path.as_os_str() == "docker" && !path.exists()
}

/// A file, standard input (`-`), or Docker's default profile (`docker`, unless there is such a file).
pub(super) fn text(path: &Path) -> Result<String> {
    if is_builtin(path) {
        return Ok(DOCKER_DEFAULT.to_owned());
    }

    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| anyhow::anyhow!("cannot read standard input: {error}"))?;
        return Ok(text);
    }

    let (file, name) = file_and_name(path);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        anyhow::anyhow!(
            "cannot read {}: {error}; give a file, - or docker",
            file.display()
        )
    })?;
    match name {
        Some(name) => profile::named(&text, &name).with_context(|| file.display().to_string()),
        None => Ok(text),
    }
}

/// File and name of `FILE#NAME`, which stands for one of several SeccompProfiles.
pub(super) fn file_and_name(path: &Path) -> (PathBuf, Option<String>) {
    let split = path.to_str().and_then(|text| text.rsplit_once('#'));
    match split {
        Some((file, name)) if !path.exists() => (file.into(), Some(name.to_owned())),
        _ => (path.to_path_buf(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_taken_with_and_without_prefix() {
        let caps = capabilities("sys_admin,CAP_BPF").expect("known");
        assert_eq!(caps, ["CAP_SYS_ADMIN", "CAP_BPF"]);
        assert!(capabilities("sys_admn").is_err());
        assert_eq!(version("6.18.44-1-amd64"), Some((6, 18)));
    }
}
