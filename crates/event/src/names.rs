//! Names of users and groups for ENRICHED. The caller provides their source, since this crate does no I/O.

use std::collections::HashMap;

/// A source of names for ids. It is never asked for 0 and 4294967295, which are `root` and `unset`.
pub trait Names {
    /// Name of a user.
    fn user(&mut self, uid: u32) -> Option<&str>;
    /// Name of a group.
    fn group(&mut self, gid: u32) -> Option<&str>;
    /// Drops cached names, since they may have changed. The encoder calls this at each ADD_USER and ADD_GROUP record,
    /// as auditd does.
    fn forget(&mut self) {}
}

/// A source without names: every id is `unknown(N)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn user(&mut self, _uid: u32) -> Option<&str> {
        None
    }

    fn group(&mut self, _gid: u32) -> Option<&str> {
        None
    }
}

/// Names from the text of passwd(5) and group(5).
#[derive(Debug, Clone, Default)]
pub struct NameTable {
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl NameTable {
    /// Reads the text of both files; lines that are not entries are skipped. As in getpwuid(3), the first line with an
    /// id decides its name.
    pub fn parse(passwd: &str, group: &str) -> NameTable {
        NameTable {
            users: entries(passwd),
            groups: entries(group),
        }
    }
}

fn entries(text: &str) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in text.lines() {
        let mut columns = line.split(':');
        let (name, id) = (
            columns.next(),
            columns.nth(1).and_then(|id| id.parse().ok()),
        );
        if let (Some(name), Some(id)) = (name, id) {
            names.entry(id).or_insert_with(|| name.to_owned());
        }
    }
    names
}

impl Names for NameTable {
    fn user(&mut self, uid: u32) -> Option<&str> {
        self.users.get(&uid).map(String::as_str)
    }

    fn group(&mut self, gid: u32) -> Option<&str> {
        self.groups.get(&gid).map(String::as_str)
    }
}

/// Looks up each id once and caches the answer, even that it has no name. When it holds [`NameCache::ENTRIES_MAX`] ids,
/// it drops them all.
pub struct NameCache<U, G> {
    users: HashMap<u32, Option<Box<str>>>,
    groups: HashMap<u32, Option<Box<str>>>,
    ask_user: U,
    ask_group: G,
}

impl<U, G> NameCache<U, G>
where
    U: FnMut(u32) -> Option<String>,
    G: FnMut(u32) -> Option<String>,
{
    /// The most users, and the most groups, that are cached.
    pub const ENTRIES_MAX: usize = 4096;

    /// A cache in front of two functions that look up a user and a group, such as getpwuid_r(3) and getgrgid_r(3).
    pub fn new(ask_user: U, ask_group: G) -> Self {
        NameCache {
            users: HashMap::new(),
            groups: HashMap::new(),
            ask_user,
            ask_group,
        }
    }
}

fn remember(
    known: &mut HashMap<u32, Option<Box<str>>>,
    id: u32,
    most: usize,
    ask: impl FnOnce(u32) -> Option<String>,
) -> Option<&str> {
    if known.len() >= most && !known.contains_key(&id) {
        known.clear();
    }
    known
        .entry(id)
        .or_insert_with(|| ask(id).map(String::into_boxed_str))
        .as_deref()
}

impl<U, G> Names for NameCache<U, G>
where
    U: FnMut(u32) -> Option<String>,
    G: FnMut(u32) -> Option<String>,
{
    fn user(&mut self, uid: u32) -> Option<&str> {
        remember(&mut self.users, uid, Self::ENTRIES_MAX, &mut self.ask_user)
    }

    fn group(&mut self, gid: u32) -> Option<&str> {
        remember(
            &mut self.groups,
            gid,
            Self::ENTRIES_MAX,
            &mut self.ask_group,
        )
    }

    fn forget(&mut self) {
        self.users.clear();
        self.groups.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_of_an_id_gives_its_name() {
        let mut names = NameTable::parse(
            "root:x:0:0::/:\nalice:x:1000:\nbob:x:1000:\n#\nbad:x:y:",
            "adm:x:4:alice\n",
        );
        assert_eq!(names.user(1000), Some("alice"));
        assert_eq!(names.group(4), Some("adm"));
        assert_eq!(names.group(5), None);
    }

    #[test]
    fn the_cache_asks_once_for_each_id() {
        let mut asked = Vec::new();
        let mut cache = NameCache::new(
            |uid| {
                asked.push(uid);
                (uid == 7).then(|| "seven".to_owned())
            },
            |_| None,
        );
        for _ in 0..3 {
            assert_eq!(cache.user(7), Some("seven"));
            assert_eq!(cache.user(8), None);
        }
        cache.forget();
        assert_eq!(cache.user(7), Some("seven"));
        drop(cache);
        assert_eq!(asked, [7, 8, 7]);
    }
}
