//! The account that an event is about: who logs in or is changed, never who acts.
//!
//! Programs name it inside of `msg='…'` by `acct=`, `id=` or, as PAM modules and display managers do, `uid=` or `suid=`.
//! The `uid=` outside, which the kernel adds, is that of the program.

use super::act::Act;
use super::parsed::{text_of, Object, Parsed};
use super::value::Value;

/// Account and group of an event, each with `id` and `name` as far as they are known.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) account: Option<Object>,
    pub(crate) group: Option<Object>,
}

/// The account and the group that the event names.
pub(crate) fn choose(parsed: &Parsed, act: Act) -> Named {
    let from = Source { parsed };
    match act {
        Act::LoginId => {
            let id = parsed.record("LOGIN").and_then(|record| record.get("auid"));
            Named {
                account: named(id.cloned(), from.name("AUID")),
                group: None,
            }
        }
        Act::AddMember | Act::RemoveMember => Named {
            account: from.member(),
            group: from.group(from.field("grp").is_none() && from.field("gid").is_none()),
        },
        _ if act.is_of_group() => Named {
            account: None,
            group: from.group(true),
        },
        Act::ChangeGroup => Named {
            account: None,
            group: from.group(false),
        },
        Act::ChangeUser => Named {
            account: from.account(),
            group: None,
        },
        _ if act.is_login() || act.is_of_account() => Named {
            account: from.account(),
            group: from.group(false),
        },
        _ => Named::default(),
    }
}

/// The text of the program, and the names that ENRICHED gives for it.
struct Source<'a> {
    parsed: &'a Parsed,
}

impl Source<'_> {
    fn field(&self, name: &str) -> Option<Value> {
        let inner = |record: &Object| record.get("msg_fields")?.get(name).cloned();
        self.parsed.records.iter().find_map(inner)
    }

    fn name(&self, name: &str) -> Option<Value> {
        self.parsed.names.get(name).cloned()
    }

    /// `acct=`, unless it says that nobody is meant.
    fn acct(&self) -> Option<Value> {
        self.field("acct").filter(|acct| is_name(&text_of(acct)))
    }

    fn account(&self) -> Option<Object> {
        let (id, name) = match (self.field("id"), self.field("uid")) {
            (Some(id), _) => (Some(id), self.name("ID")),
            // Older audit adds no kernel field before it; then its name is no second one.
            (None, Some(uid)) => (Some(uid), self.name("MSG_UID")),
            // pam_faillock.
            (None, None) => (self.field("suid"), self.name("SUID")),
        };
        // login(1) writes UNKNOWN for a name that it does not know, and no id.
        let acct = self
            .acct()
            .filter(|acct| id.is_some() || text_of(acct) != "UNKNOWN");
        named(id, acct.or(name))
    }

    /// The member that a group gets or loses: `id=` beside `grp=` is the user's.
    fn member(&self) -> Option<Object> {
        if let Some(name) = self.named_member() {
            return named(None, Some(name.into()));
        }

        let is_of_user = self.field("grp").is_some() || self.field("gid").is_some();
        let id = is_of_user.then(|| self.field("id")).flatten();
        let name = id.as_ref().and_then(|_| self.name("ID"));
        named(id, self.acct().or(name))
    }

    /// The group. `by_id`: `id=` and `acct=` are the group's, as shadow writes it.
    fn group(&self, by_id: bool) -> Option<Object> {
        let is_member = self.parsed_member();
        let own = |name: &str| (by_id && !is_member).then(|| self.field(name)).flatten();
        let id = self
            .field("gid")
            .or_else(|| self.field("new_gid"))
            .or_else(|| own("id"));
        let name = self
            .field("grp")
            .or_else(|| self.field("new-group"))
            .or_else(|| {
                let acct = (by_id && !is_member).then(|| self.acct()).flatten();
                acct.or_else(|| {
                    id.as_ref()
                        .and_then(|_| self.name("ID").or_else(|| self.name("GID")))
                })
            });

        named(id, name)
    }

    /// Whether `acct=` is a user that a group gets or loses.
    fn parsed_member(&self) -> bool {
        let op = self.field("op").map(|op| text_of(&op).replace('-', " "));
        op.is_some_and(|op| {
            let is_of_group = op.starts_with("members of group");
            op.contains("user to")
                || op.contains("user from")
                || op.contains("member") && !is_of_group
        })
    }

    /// The member that gpasswd names in its sentence: `user bob added by root to group wheel`. `acct=` is the group then.
    fn named_member(&self) -> Option<String> {
        let op = self.field("op").map(|op| text_of(&op))?;
        let mut words = op.split(' ');
        let (what, name, done) = (words.next()?, words.next()?, words.next()?);
        (what == "user" && matches!(done, "added" | "removed")).then(|| name.to_owned())
    }
}

/// Whether programs write this for an account; `?`, `(unknown)` and `(invalid user)` are none.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('(') && text != "?"
}

fn named(id: Option<Value>, name: Option<Value>) -> Option<Object> {
    let mut object = Object::new();
    for (place, value) in [("id", id), ("name", name)] {
        if let Some(value) = value {
            object.insert(place.into(), value);
        }
    }
    (!object.is_empty()).then_some(object)
}
