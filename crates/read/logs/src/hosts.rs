//! Hosts by the directories in which their logs are.

/// Where the logs of a host are below its root, as on a host and in a report of sos.
pub(crate) const BELOW: [&str; 3] = ["var/log/audit", "log/audit", "audit"];
/// Where sos puts the end of a long log.
const TAILED: &str = "sos_strings/logs";

/// The root of a host as names, by a directory with logs of it.
fn root(directory: &str) -> Vec<&str> {
    let names = directory.split('/');
    let mut root: Vec<&str> = names.filter(|name| !matches!(*name, "" | ".")).collect();
    for below in BELOW.into_iter().chain([TAILED]) {
        let below: Vec<&str> = below.split('/').collect();
        if root.ends_with(&below) {
            root.truncate(root.len() - below.len());
            break;
        }
    }
    root
}

/// The host of each directory: the first name in which its root differs from others. What all have in common, such as
/// `backup` in `backup/web1` and `backup/db1`, names none of them. Logs of one root are of the host that the root names,
/// if `names_one`.
pub(crate) fn hosts(directories: &[String], names_one: bool) -> Vec<Option<String>> {
    let roots: Vec<Vec<&str>> = directories.iter().map(|each| root(each)).collect();
    let Some((first, others)) = roots.split_first() else {
        return Vec::new();
    };
    let same = |root: &Vec<&str>| {
        let pairs = first.iter().zip(root);
        pairs.take_while(|(mine, its)| mine == its).count()
    };
    let common = others.iter().map(same).min().unwrap_or(first.len());

    let has_one = roots.iter().all(|root| root == first);
    let host = |root: &Vec<&str>| {
        let name = if has_one {
            names_one.then(|| root.last()).flatten()
        } else {
            root.get(common).or(root.last())
        };
        name.map(|name| (*name).to_owned())
    };
    roots.iter().map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_directories_have_in_common_names_no_host() {
        let of = |directories: &[&str]| -> Vec<Option<String>> {
            let directories: Vec<String> = directories.iter().map(|&each| each.into()).collect();
            hosts(&directories, true)
        };
        let named = |names: &[&str]| -> Vec<Option<String>> {
            names
                .iter()
                .map(|name| (!name.is_empty()).then(|| (*name).to_owned()))
                .collect()
        };
        for (directories, wanted) in [
            (&["web1", "db1"][..], &["web1", "db1"][..]),
            (&["./web1/var/log/audit", "./db1/audit"], &["web1", "db1"]),
            (
                &["b/c/web1", "b/c/db1", "b/c/web1"],
                &["web1", "db1", "web1"],
            ),
            (
                &["b/web1/2023", "b/web1/2024", "b/db1"],
                &["web1", "web1", "db1"],
            ),
            (
                &["sos-web1/var/log/audit", "sos-web1/sos_strings/logs"],
                &["sos-web1", "sos-web1"],
            ),
            (&["", "web1"], &["", "web1"]),
            (&["backup/web1"], &["web1"]),
            (&[""], &[""]),
        ] {
            assert_eq!(of(directories), named(wanted), "{directories:?}");
        }
        assert_eq!(hosts(&["sos-web1/var/log/audit".into()], false), [None]);
    }
}
