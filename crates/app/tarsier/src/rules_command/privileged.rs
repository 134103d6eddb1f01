//! Programs of this host that run with the rights of another user or group (set-user-ID, set-group-ID).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `S_ISUID` and `S_ISGID`
const SET_ID: u32 = 0o6000;

/// Paths of all such programs on file systems that can grant these rights, sorted. Scanners search the same ones: file
/// systems on devices, mounted without `noexec` and `nosuid`. Names that rules cannot hold as text are left out.
pub(super) fn programs() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let kinds = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let mut found = BTreeSet::new();
    for place in places(&mounts, &kinds) {
        search(Path::new(&place), &mut found);
    }
    found.into_iter().collect()
}

/// Mount points of the file systems to search (proc(5), mountinfo; `kinds` is /proc/filesystems).
fn places(mounts: &str, kinds: &str) -> Vec<String> {
    let without_device: BTreeSet<&str> = kinds
        .lines()
        .filter_map(|line| line.strip_prefix("nodev"))
        .map(str::trim)
        .collect();
    let lines = mounts.lines().filter_map(|line| {
        let (own, of_system) = line.split_once(" - ")?;
        let mut words = own.split(' ').skip(4);
        let (place, options) = (words.next()?, words.next()?);
        let kind = of_system.split(' ').next()?;
        let grants = !options
            .split(',')
            .any(|option| option == "noexec" || option == "nosuid");
        (grants && !without_device.contains(kind)).then(|| place.to_owned())
    });

    lines.collect()
}

/// Adds the programs below `place` on the same file system.
fn search(place: &Path, found: &mut BTreeSet<String>) {
    let Ok(device) = fs::symlink_metadata(place).map(|place| place.dev()) else {
        return;
    };

    let mut left: Vec<PathBuf> = vec![place.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(of_entry) = entry.metadata() else {
                continue;
            };
            let path = entry.path();
            if of_entry.dev() != device {
                continue;
            }
            if of_entry.is_dir() {
                left.push(path);
            } else if of_entry.is_file() && of_entry.mode() & SET_ID != 0 {
                let text = std::str::from_utf8(path.as_os_str().as_bytes()).ok();
                let text = text.filter(|text| !text.contains(char::is_whitespace));
                found.extend(text.map(str::to_owned));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn file_systems_that_grant_no_rights_are_not_searched() {
        let mounts = "1 0 8:1 / / rw,relatime - ext4 /dev/a rw\n\
                      2 1 8:2 / /home rw,nosuid - ext4 /dev/b rw\n\
                      3 1 0:5 / /proc rw - proc proc rw\n\
                      4 1 8:3 / /srv rw shared:1 - xfs /dev/c rw\n";
        assert_eq!(
            places(mounts, "nodev\tproc\n\text4\n\txfs\n"),
            ["/", "/srv"]
        );
    }

    #[test]
    fn programs_with_set_ids_are_found_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("bin");
        fs::create_dir(&below).unwrap();
        for (name, mode) in [("su", 0o4755), ("write", 0o2755), ("true", 0o755)] {
            let path = below.join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let mut found = BTreeSet::new();
        search(dir.path(), &mut found);
        let names = |path: &String| path.rsplit('/').next().map(str::to_owned);
        assert_eq!(
            found.iter().filter_map(names).collect::<Vec<_>>(),
            ["su", "write"]
        );
    }
}
