//! Looks up what rules name on the machine that this program runs on.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use abi::Arch;

use crate::{Host, PathKind};

/// The running host: its user and group databases, file system, and kernel architecture.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemHost;

impl Host for SystemHost {
    fn arch(&self) -> Arch {
        let uname = rustix::system::uname();
        let machine = uname.machine().to_str().unwrap_or_default();
        Arch::from_name(machine).unwrap_or(Arch::native())
    }

    fn uid(&self, name: &str) -> Option<u32> {
        nix::unistd::User::from_name(name)
            .ok()
            .flatten()
            .map(|user| user.uid.as_raw())
    }

    fn gid(&self, name: &str) -> Option<u32> {
        nix::unistd::Group::from_name(name)
            .ok()
            .flatten()
            .map(|group| group.gid.as_raw())
    }

    fn path_kind(&self, path: &[u8]) -> PathKind {
        match std::fs::metadata(Path::new(OsStr::from_bytes(path))) {
            Ok(metadata) if metadata.is_dir() => PathKind::Dir,
            Ok(_) => PathKind::Other,
            Err(_) => PathKind::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_root_directory_are_found() {
        assert_eq!(SystemHost.uid("root"), Some(0));
        assert_eq!(SystemHost.gid("root"), Some(0));
        assert_eq!(SystemHost.uid("no such user"), None);
        assert_eq!(SystemHost.path_kind(b"/"), PathKind::Dir);
        assert_eq!(SystemHost.path_kind(b"/proc/self/status"), PathKind::Other);
        assert_eq!(SystemHost.path_kind(b"/no such path"), PathKind::Missing);
    }
}
