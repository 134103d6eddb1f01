//! The user that helpers become. Whoever has the ids of a process may stop it, slow it down and kill it, and a helper
//! that does not answer costs records. So these are ids that no other process has.
//!
//! Packages make the account [`ACCOUNT`]. Where it is missing, [`UNUSED`] are tried: ids in none of the ranges from which
//! ids are given to processes (systemd's "Users, Groups, UIDs and GIDs on systemd Systems"): accounts, `DynamicUser=`
//! (61184-65519), `nobody` (65534), containers (524288-1879048191), `/etc/subuid` (from 100000), sssd's and winbind's
//! (200000-2000200000), systemd's foreign ids (2147352576-2147418111).

/// The account of the helpers.
const ACCOUNT: &str = "tarsier-lookup";
/// Ids that nobody else has: one above the ranges of directory services, and one for a container whose ids end at 65535.
const UNUSED: [u32; 2] = [2_130_706_433, 65_529];
/// `nobody` and `nogroup`: the kernel's overflow ids.
const NOBODY: u32 = 65_534;

/// User and group.
pub(crate) type Ids = (u32, u32);

/// The files of accounts and of ids that users may give to their processes.
#[derive(Clone, Debug, Default)]
struct Files {
    passwd: String,
    group: String,
    /// `/etc/subuid` and `/etc/subgid`.
    subordinate: [String; 2],
}

/// The ids that a helper may have, the best first. Only files are read: a directory service may not answer.
pub(crate) fn candidates() -> Vec<Ids> {
    let read = |path: &str| {
        let bytes = std::fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    chosen(&Files {
        passwd: read("/etc/passwd"),
        group: read("/etc/group"),
        subordinate: ["/etc/subuid", "/etc/subgid"].map(read),
    })
}

fn chosen(files: &Files) -> Vec<Ids> {
    let account = account(files).filter(|ids| {
        let others = of_accounts(&files.passwd).filter(|&uid| uid == ids.0);
        others.count() == 1 && !is_subordinate(files, *ids)
    });
    let unused = UNUSED.iter().map(|&id| (id, id)).filter(|ids| {
        let mut known = of_accounts(&files.passwd).chain(of_accounts(&files.group));
        !known.any(|id| id == ids.0) && !is_subordinate(files, *ids)
    });
    account.into_iter().chain(unused).collect()
}

/// The ids of [`ACCOUNT`] (passwd(5)).
fn account(files: &Files) -> Option<Ids> {
    let line = files.passwd.lines().find_map(|line| {
        let rest = line.strip_prefix(ACCOUNT)?;
        rest.strip_prefix(':')
    });
    let mut fields = line?.split(':').skip(1);
    let mut id = || fields.next()?.parse::<u32>().ok();
    let ids = (id()?, id()?);
    let is_own = |id| id != 0 && id != NOBODY && id != u32::MAX;
    (is_own(ids.0) && is_own(ids.1)).then_some(ids)
}

/// The ids in the third field of each line, as in passwd(5) and group(5).
fn of_accounts(file: &str) -> impl Iterator<Item = u32> + '_ {
    let id = |line: &str| line.split(':').nth(2)?.parse().ok();
    file.lines().filter_map(id)
}

/// Whether a user may give one of the ids to a process: subuid(5), subgid(5).
fn is_subordinate(files: &Files, ids: Ids) -> bool {
    let is_in = |line: &str| {
        let mut fields = line.split(':').skip(1).map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(count))) = (fields.next(), fields.next()) else {
            return false;
        };
        let range = first..first.saturating_add(count);
        range.contains(&ids.0.into()) || range.contains(&ids.1.into())
    };
    files.subordinate.iter().any(|file| file.lines().any(is_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(passwd: &str, subuid: &str) -> Files {
        Files {
            passwd: format!(
                "root:x:0:0::/root:/bin/sh\n{passwd}nobody:x:65534:65534::/:/bin/false\n"
            ),
            group: "root:x:0:\n".to_owned(),
            subordinate: [subuid.to_owned(), String::new()],
        }
    }

    const BOTH: [Ids; 2] = [(UNUSED[0], UNUSED[0]), (UNUSED[1], UNUSED[1])];

    #[test]
    fn the_account_of_the_package_comes_first() {
        let found = chosen(&files(
            "tarsier-lookup:!:997:996::/:/usr/sbin/nologin\n",
            "",
        ));
        assert_eq!(found, [&[(997, 996)], &BOTH[..]].concat());
        assert_eq!(chosen(&files("", "user:100000:65536\n")), BOTH);
        for wrong in [
            "tarsier-lookup:x:0:0:",
            "tarsier-lookup:x:65534:1:",
            "tarsier-lookup:x::",
            "tarsier-lookup2:x:5:5:",
        ] {
            assert_eq!(chosen(&files(&format!("{wrong}\n"), "")), BOTH, "{wrong}");
        }
    }

    #[test]
    fn ids_that_somebody_has_or_may_give_to_processes_are_not_taken() {
        let shared = "tarsier-lookup:x:997:997::/:\nother:x:997:5::/:\n";
        assert_eq!(chosen(&files(shared, "")), BOTH);
        let used = format!("other:x:{}:5::/:\n", UNUSED[0]);
        assert_eq!(chosen(&files(&used, "")), BOTH[1..]);
        assert_eq!(chosen(&files("", "user:2000000000:200000000\n")), BOTH[1..]);
        let own = "tarsier-lookup:x:997:997::/:\n";
        assert_eq!(chosen(&files(own, "user:900:100\nuser:broken\n")), BOTH);
    }
}
