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
    /// Number of requests so far that could not be answered then, so that a later one may be.
    fn unanswered(&self) -> u64 {
        0
    }
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

/// The answer to a request for the name of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameAnswer {
    /// The id has this name.
    Name(String),
    /// The id has no name.
    Nameless,
    /// The name could not be found out now; a later request may succeed.
    NotNow,
}

/// Looks up each id once and caches the answer, even that it has no name. It holds at most twice
/// [`NameCache::ENTRIES_MAX`] ids; those that were not asked for lately are dropped.
pub struct NameCache<U, G> {
    users: Known,
    groups: Known,
    ask_user: U,
    ask_group: G,
    unanswered: u64,
}

impl<U, G> NameCache<U, G>
where
    U: FnMut(u32) -> NameAnswer,
    G: FnMut(u32) -> NameAnswer,
{
    /// Number of users, and of groups, in one generation of the cache. When it is full, the generation before it is
    /// dropped.
    pub const ENTRIES_MAX: usize = 4096;

    /// A cache in front of two functions that look up a user and a group, such as getpwuid_r(3) and getgrgid_r(3).
    pub fn new(ask_user: U, ask_group: G) -> Self {
        NameCache {
            users: Known::default(),
            groups: Known::default(),
            ask_user,
            ask_group,
            unanswered: 0,
        }
    }
}

/// Names of ids in two generations, so that ids that are asked for often stay when there are too many.
#[derive(Default)]
struct Known {
    recent: HashMap<u32, Option<Box<str>>>,
    older: HashMap<u32, Option<Box<str>>>,
}

impl Known {
    fn find(&mut self, id: u32, most: usize, ask: impl FnOnce(u32) -> NameAnswer) -> Option<&str> {
        if !self.recent.contains_key(&id) {
            let name = match self.older.remove(&id) {
                Some(name) => name,
                None => match ask(id) {
                    NameAnswer::Name(name) => Some(name.into_boxed_str()),
                    NameAnswer::Nameless => None,
                    NameAnswer::NotNow => return None,
                },
            };
            if self.recent.len() >= most {
                self.older = std::mem::take(&mut self.recent);
            }
            self.recent.insert(id, name);
        }

        self.recent.get(&id)?.as_deref()
    }
}

impl<U, G> Names for NameCache<U, G>
where
    U: FnMut(u32) -> NameAnswer,
    G: FnMut(u32) -> NameAnswer,
{
    fn user(&mut self, uid: u32) -> Option<&str> {
        let (ask, unanswered) = (&mut self.ask_user, &mut self.unanswered);
        self.users
            .find(uid, Self::ENTRIES_MAX, |uid| counted(ask(uid), unanswered))
    }

    fn group(&mut self, gid: u32) -> Option<&str> {
        let (ask, unanswered) = (&mut self.ask_group, &mut self.unanswered);
        self.groups
            .find(gid, Self::ENTRIES_MAX, |gid| counted(ask(gid), unanswered))
    }

    fn unanswered(&self) -> u64 {
        self.unanswered
    }

    fn forget(&mut self) {
        self.users = Known::default();
        self.groups = Known::default();
    }
}

/// The answer, which is counted if there is none now.
fn counted(answer: NameAnswer, unanswered: &mut u64) -> NameAnswer {
    *unanswered += u64::from(answer == NameAnswer::NotNow);
    answer
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
                match uid {
                    7 => NameAnswer::Name("seven".to_owned()),
                    _ => NameAnswer::Nameless,
                }
            },
            |_| NameAnswer::Nameless,
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

    #[test]
    fn what_could_not_be_found_out_is_asked_again() {
        let mut answers = [NameAnswer::NotNow, NameAnswer::Name("late".to_owned())].into_iter();
        let mut cache = NameCache::new(
            move |_| answers.next().expect("asked twice"),
            |_| NameAnswer::Nameless,
        );
        assert_eq!(cache.user(7), None);
        assert_eq!(cache.user(7), Some("late"));
        assert_eq!(cache.user(7), Some("late"));
    }

    #[test]
    fn ids_that_are_asked_for_often_stay_and_memory_is_bounded() {
        let mut asked_for_7 = 0;
        let mut cache = NameCache::new(
            |uid| {
                asked_for_7 += u32::from(uid == 7);
                NameAnswer::Nameless
            },
            |_| NameAnswer::Nameless,
        );
        for uid in 100_000..130_000 {
            cache.user(uid);
            if uid % 1000 == 0 {
                cache.user(7);
            }
        }
        assert!(cache.users.recent.len() + cache.users.older.len() <= 2 * 4096);
        drop(cache);
        assert_eq!(asked_for_7, 1);
    }
}
