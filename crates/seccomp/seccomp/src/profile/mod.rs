//! Profiles as people write them: OCI and Docker JSON ([`oci`]), alone, in a container's `config.json`,
//! or as the SeccompProfile of the security-profiles-operator; systemd units ([`systemd`]); and plain
//! lists ([`list`]).

pub mod convert;
mod documents;
mod error;
mod extra;
mod foreign;
mod json;
pub mod learned;
pub mod list;
mod members;
pub mod oci;
mod sets;
pub mod systemd;
mod words;
mod yaml;

pub use error::ProfileError;
pub use json::line_of;
pub use yaml::named;

use crate::policy::{Abi, Policy};

/// Everything besides its text that a profile depends on.
#[derive(Clone, Debug)]
pub struct Context {
    /// The ABI of the programs that the filter is for.
    pub native: Abi,
    /// Capabilities in the bounding set (`CAP_…`), for `includes.caps` and `excludes.caps`.
    pub caps: Vec<String>,
    /// Kernel version, for `minKernel`.
    pub kernel: (u32, u32),
    /// Whether calls newer than the profile fail with ENOSYS, as under runc.
    pub enosys: bool,
}

/// The default capabilities of a Docker container (moby, oci/caps/defaults.go).
pub const DOCKER_CAPS: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// The default profile of Docker and containerd (moby/profiles v0.2.3).
pub const DOCKER_DEFAULT: &str = include_str!("../../data/docker-default.json");

impl Context {
    /// The context of a Docker container without extra capabilities, on `native` and kernel version
    /// `kernel`.
    pub fn docker(native: Abi, kernel: (u32, u32)) -> Context {
        Context {
            native,
            caps: DOCKER_CAPS.iter().map(|&cap| cap.to_owned()).collect(),
            kernel,
            enosys: true,
        }
    }
}

/// The supported forms of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON of the OCI runtime specification, with Docker's additions, or a document that has such
    /// a profile in it.
    Oci,
    /// A SeccompProfile of the security-profiles-operator, in YAML.
    Yaml,
    /// A systemd unit file, or only its directives.
    Systemd,
    /// A plain list: one rule per line.
    List,
}

/// What some editors of Windows write before a text. systemd skips it (config_parse).
const BYTE_ORDER_MARK: char = '\u{feff}';

impl Form {
    /// Detects the form of a text: JSON starts with a brace, YAML has a line for its `kind` or its
    /// `defaultAction`, systemd's form has a section of a unit or a directive that restricts calls,
    /// and everything else is a list.
    pub fn of(text: &str) -> Form {
        let is_yaml = |line: &str| {
            ["apiVersion:", "kind:", "defaultAction:", "ociVersion:"]
                .iter()
                .any(|key| line.starts_with(key))
        };
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        if text.trim_start().starts_with('{') {
            Form::Oci
        } else if text.lines().any(is_yaml) {
            Form::Yaml
        } else if systemd::looks_like(text) {
            Form::Systemd
        } else {
            Form::List
        }
    }
}

/// Parses a profile of any form.
///
/// # Errors
/// The first part that cannot be honoured, with its place.
pub fn parse(text: &str, context: &Context) -> Result<Policy, ProfileError> {
    let form = Form::of(text);
    // A text in the language of another program is refused by that name, not as a list of unknown words.
    if matches!(form, Form::Oci | Form::List) {
        if let Some(error) = foreign::refusal(text) {
            return Err(error);
        }
    }
    match form {
        Form::Oci => documents::policy(json::read(text)?, context),
        Form::Yaml => documents::policy(yaml::read(text)?, context),
        Form::Systemd => systemd::parse(text.trim_start_matches(BYTE_ORDER_MARK), context),
        Form::List => list::parse(text.trim_start_matches(BYTE_ORDER_MARK), context),
    }
}
