//! Filters for events: ausearch's options, compiled once.

use crate::event::{Event, EventView};
use crate::facts::{
    enriched_name, Facts, Labels, Number, TextOf, Wanted, AUID, EUID, NO_ID, NO_LOGIN, UID,
};
use crate::literal::{is_host_name, part_of_file, Literal};
use crate::{Dialect, Machine};
use memchr::memmem::find;
use std::collections::HashMap;

/// Name of a user by id on this machine.
pub type UserName = fn(u32) -> Option<Vec<u8>>;

/// Conditions on an event. All that are set must hold; a default filter takes every event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Serial number.
    pub serial: Option<u32>,
    /// Process.
    pub pid: Option<i32>,
    /// Parent process.
    pub ppid: Option<i32>,
    /// User, effective user and login id.
    pub uid: Option<u32>,
    /// Effective user.
    pub euid: Option<u32>,
    /// Login id.
    pub auid: Option<u32>,
    /// Names of login id, user and effective user, compared instead of the numbers.
    pub names: [Option<Vec<u8>>; 3],
    /// One of user, effective user and login id is enough to match.
    pub is_any_user: bool,
    /// Group.
    pub gid: Option<u32>,
    /// Effective group.
    pub egid: Option<u32>,
    /// One of the groups is enough to match.
    pub is_any_group: bool,
    /// Architecture of the call.
    pub arch: Option<abi::Arch>,
    /// Number of the call.
    pub syscall: Option<i32>,
    /// Name of a call, whatever its number is on the machine of the log.
    pub call: Option<String>,
    /// Login session.
    pub session: Option<u32>,
    /// Result of the call.
    pub exit: Option<i64>,
    /// Success or failure.
    pub success: Option<bool>,
    /// Record types; the event must have a record of one of them.
    pub kinds: Vec<i32>,
    /// Nodes; the event must be from one of them.
    pub nodes: Vec<Vec<u8>>,
    /// File or working directory.
    pub file: Option<Vec<u8>>,
    /// Remote host.
    pub host: Option<Vec<u8>>,
    /// Terminal.
    pub terminal: Option<Vec<u8>>,
    /// Program.
    pub exe: Option<Vec<u8>>,
    /// Name of the task.
    pub comm: Option<Vec<u8>>,
    /// Key of a rule.
    pub key: Option<Vec<u8>>,
    /// Virtual machine.
    pub vm: Option<Vec<u8>>,
    /// UUID of a virtual machine.
    pub uuid: Option<Vec<u8>>,
    /// Label of the subject.
    pub subject: Option<Vec<u8>>,
    /// Label of the object.
    pub object: Option<Vec<u8>>,
    /// One of the labels is enough to match.
    pub is_any_label: bool,
    /// Texts must be equal to the wanted text; otherwise it is enough that they contain it.
    pub is_exact: bool,
    /// The architecture of calls will be printed. ausearch then finds no call without one.
    pub is_interpreted: bool,
}

/// A filter, prepared for many events.
#[derive(Clone)]
pub struct Matcher {
    filter: Filter,
    wanted: Wanted,
    /// Whether something is asked that only the fields of records answer. A dialect drops events that it cannot read.
    needs_facts: bool,
    dialect: Dialect,
    /// An event whose lines do not have it does not match.
    literal: Option<Literal>,
    user_name: UserName,
    known_names: HashMap<u32, Option<Vec<u8>>>,
}

impl Matcher {
    /// Compiles `filter`. `user_name` gives names to ids of logs that have none.
    pub fn new(filter: Filter, dialect: Dialect, user_name: UserName) -> Matcher {
        Matcher {
            wanted: wanted(&filter, dialect),
            needs_facts: dialect.is_compat() || asks_about_fields(&filter),
            literal: literal(&filter),
            filter,
            dialect,
            user_name,
            known_names: HashMap::new(),
        }
    }

    /// Like [`Matcher::new`], but judges every event by its fields alone. A literal must not change the result.
    pub fn without_literal(filter: Filter, dialect: Dialect, user_name: UserName) -> Matcher {
        Matcher {
            literal: None,
            ..Matcher::new(filter, dialect, user_name)
        }
    }

    /// Adds a text that lines of every event that is looked for have, as it is or in hex.
    pub fn require_text(&mut self, text: &[u8]) {
        let other = Literal::of_text(text);
        let is_better = |other: &Literal| {
            let own = self.literal.as_ref();
            own.is_none_or(|own| own.overlap_bytes() < other.overlap_bytes())
        };
        if let Some(other) = other.filter(is_better) {
            self.literal = Some(other);
        }
    }

    /// The filter, as it was given.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Whether names of users are compared, not their ids.
    pub fn is_by_name(&self) -> bool {
        self.filter.names.iter().any(Option::is_some)
    }

    /// Whether text of a log may hold an event that matches, because it has the literal of all such events.
    pub fn may_match(&self, text: &[u8]) -> bool {
        self.literal
            .as_ref()
            .is_none_or(|literal| literal.is_in(text))
    }

    /// Bytes that [`Matcher::may_match`] must see of a text before that it searches, so that nothing
    /// is missed between blocks; `None` if it excludes hardly anything.
    pub fn overlap_bytes(&self) -> Option<usize> {
        self.literal.as_ref().and_then(Literal::overlap_bytes)
    }

    /// Whether the event matches the filter.
    pub fn matches(&mut self, event: &Event) -> bool {
        self.matches_view(event.view())
    }

    /// Like [`Matcher::matches`], for a borrowed event.
    pub fn matches_view(&mut self, event: EventView<'_>) -> bool {
        // Cheap questions first: most events fail them, and their fields are never read.
        let serial = self.filter.serial;
        if serial.is_some_and(|serial| u64::from(serial) != event.serial)
            || !is_kind(&self.filter, event)
            || !self.may_match(event.lines())
        {
            return false;
        }

        if !self.needs_facts {
            return is_node(&self.filter, event);
        }

        let Some(facts) = Facts::read_view(event, &self.wanted, self.dialect) else {
            return false;
        };
        let names = event.names();
        let filter = &self.filter;
        let is_own = !self.dialect.is_compat();
        is_node(filter, event)
            && if is_own {
                self.is_any_of_users(&facts)
            } else {
                self.is_user(&facts, names)
            }
            && is_group(&self.filter, &facts)
            && is_call(&self.filter, &facts)
            && is_text(&self.filter, &facts)
            && is_label(&self.filter, &facts)
    }

    /// Whether a record has the users that are looked for.
    fn is_any_of_users(&mut self, facts: &Facts<'_>) -> bool {
        let conditions = [
            (AUID, self.filter.auid),
            (UID, self.filter.uid),
            (EUID, self.filter.euid),
        ];

        let is_by_name = self.filter.names.iter().any(Option::is_some);
        let mut results = [None; 3];
        for (which, id) in conditions {
            let users = facts.others.users.iter();
            let mut its = users.filter(|user| user.which == which);
            results[which] = match (is_by_name, self.filter.names[which].clone()) {
                (true, None) => None,
                (true, Some(wanted)) => Some(its.any(|user| match &user.name {
                    Some(name) => *name == wanted,
                    None => self.is_named(user.id, b"", None, &wanted),
                })),
                (false, _) => id.map(|id| its.any(|user| user.id == id)),
            };
        }

        let mut results = results.into_iter().flatten();
        if self.filter.is_any_user {
            results.any(|is_it| is_it)
        } else {
            results.all(|is_it| is_it)
        }
    }

    fn is_user(&mut self, facts: &Facts<'_>, names: Option<&[u8]>) -> bool {
        let ids = [
            (AUID, self.filter.auid, facts.ids.auid, &b"auid"[..]),
            (UID, self.filter.uid, facts.ids.uid, b"uid"),
            (EUID, self.filter.euid, facts.ids.euid, b"euid"),
        ];

        let is_by_name = if self.filter.is_any_user {
            self.filter.names[UID].is_some()
        } else {
            self.filter.names.iter().any(Option::is_some)
        };

        let mut results = [None; 3];
        for (which, wanted, found, field) in ids {
            results[which] = match (is_by_name, &self.filter.names[which]) {
                (true, Some(wanted)) => {
                    let wanted = wanted.clone();
                    let id = facts.ids.named[which];
                    Some(id.is_some_and(|id| self.is_named(id, field, names, &wanted)))
                }
                (true, None) => None,
                (false, _) => wanted.map(|wanted| wanted == found),
            };
        }

        let mut results = results.into_iter().flatten();
        if self.filter.is_any_user {
            results.any(|is_it| is_it)
        } else {
            results.all(|is_it| is_it)
        }
    }

    /// Whether the id of a field has this name, in the record or on this machine.
    fn is_named(&mut self, id: u32, field: &[u8], names: Option<&[u8]>, wanted: &[u8]) -> bool {
        if let Some(name) = names.and_then(|names| enriched_name(names, field, self.dialect)) {
            return name == wanted;
        }

        match id {
            0 => wanted == b"root",
            u32::MAX => wanted == b"unset",
            _ => {
                let ask = self.user_name;
                let name = self.known_names.entry(id).or_insert_with(|| ask(id));
                name.as_deref() == Some(wanted)
            }
        }
    }
}

/// Whether there is a condition besides those on types, nodes and the serial number.
fn asks_about_fields(filter: &Filter) -> bool {
    let rest = Filter {
        kinds: Vec::new(),
        nodes: Vec::new(),
        serial: None,
        is_exact: false,
        is_interpreted: false,
        ..filter.clone()
    };
    rest != Filter::default()
}

/// The facts that the filter is about.
fn wanted(filter: &Filter, dialect: Dialect) -> Wanted {
    // ausearch takes the number that stands for a missing id for no condition.
    let is_own = !dialect.is_compat();
    Wanted {
        pid: filter.pid.is_some(),
        ppid: filter.ppid.is_some(),
        auid: filter.auid.is_some_and(|id| is_own || id != NO_LOGIN),
        uid: filter.uid.is_some_and(|id| is_own || id != NO_ID),
        euid: filter.euid.is_some_and(|id| is_own || id != NO_ID),
        gid: filter.gid.is_some_and(|id| id != NO_ID),
        egid: filter.egid.is_some_and(|id| id != NO_ID),
        session: filter.session.is_some_and(|id| id != NO_LOGIN),
        arch: filter.arch.is_some() || filter.call.is_some() || filter.is_interpreted,
        success: filter.success.is_some(),
        exit: filter.exit.is_some(),
        terminal: filter.terminal.is_some(),
        comm: filter.comm.is_some(),
        exe: filter.exe.is_some(),
        keys: filter.key.is_some(),
        files: filter.file.is_some(),
        host: filter.host.is_some(),
        subject: filter.subject.is_some(),
        object: filter.object.is_some(),
        vm: filter.vm.is_some(),
        uuid: filter.uuid.is_some(),
        all: is_own,
    }
}

/// A text that lines of every matching event have. Values that are converted (addresses, numbers) are none.
fn literal(filter: &Filter) -> Option<Literal> {
    let in_hex = [&filter.key, &filter.exe, &filter.comm, &filter.vm];
    let in_hex = in_hex.into_iter().flatten().map(|text| &text[..]);
    let file = filter.file.as_deref().map(part_of_file);
    let as_it_is = [&filter.terminal, &filter.uuid];
    let as_it_is = as_it_is.into_iter().flatten().map(|text| &text[..]);
    let host = filter.host.as_deref().filter(|host| is_host_name(host));
    let node = match &filter.nodes[..] {
        [node] => Some(&node[..]),
        _ => None,
    };
    let in_hex = in_hex.chain(file).map(|text| (text, true));
    let as_it_is = as_it_is.chain(host).chain(node).map(|text| (text, false));
    Literal::longest(in_hex.chain(as_it_is))
}

fn is_node(filter: &Filter, event: EventView<'_>) -> bool {
    filter.nodes.is_empty()
        || event
            .node
            .is_some_and(|node| filter.nodes.iter().any(|each| each == node))
}

fn is_group(filter: &Filter, facts: &Facts<'_>) -> bool {
    let others = &facts.others;
    let ids = [
        (filter.gid, facts.ids.gid, Number::Gid),
        (filter.egid, facts.ids.egid, Number::Egid),
    ];
    let is = |id: u32, found: u32, which| id == found || others.has(which, id);

    if filter.is_any_group {
        ids.iter()
            .any(|(wanted, found, which)| wanted.is_some_and(|id| is(id, *found, *which)))
    } else {
        ids.iter().all(|(wanted, found, which)| {
            wanted.is_none_or(|id| id == NO_ID || is(id, *found, *which))
        })
    }
}

fn is_call(filter: &Filter, facts: &Facts<'_>) -> bool {
    let is = |wanted: Option<i32>, found: i32| wanted.is_none_or(|wanted| wanted == found);
    let others = &facts.others;
    let has = |wanted: Option<i32>, found: i32, which| {
        is(wanted, found) || wanted.is_some_and(|wanted| others.has(which, wanted as u32))
    };
    has(filter.ppid, facts.ids.ppid, Number::Ppid)
        && has(filter.pid, facts.ids.pid, Number::Pid)
        && filter
            .arch
            .is_none_or(|arch| abi::Arch::from_audit_arch(facts.call.arch) == Some(arch))
        && is(filter.syscall, facts.call.syscall)
        && filter
            .call
            .as_ref()
            .is_none_or(|call| is_of_name(call, facts))
        && filter.session.is_none_or(|id| {
            id == NO_LOGIN || id == facts.ids.session || others.has(Number::Session, id)
        })
        && filter.exit.is_none_or(|exit| Some(exit) == facts.call.exit)
        && is(filter.success.map(i32::from), facts.call.success)
}

/// Whether the event is about the call that has this name, or another name of the same call, on its machine.
fn is_of_name(name: &str, facts: &Facts<'_>) -> bool {
    let (machine, number) = (Machine::of_elf(facts.call.arch), facts.call.syscall);
    let numbered = match machine {
        Machine::Known(arch) => abi::syscall_number(arch, name),
        Machine::Other(arch) => abi::read_only_syscall_number(arch, name),
        Machine::Unset | Machine::Uring => None,
    };
    numbered.is_some_and(|numbered| i32::try_from(numbered) == Ok(number))
}

fn is_kind(filter: &Filter, event: EventView<'_>) -> bool {
    filter.kinds.is_empty() || filter.kinds.iter().any(|kind| event.has_kind(*kind, *kind))
}

fn is_text(filter: &Filter, facts: &Facts<'_>) -> bool {
    let is = |wanted: &Option<Vec<u8>>, found: Option<&[u8]>| match (wanted, found) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wanted), Some(found)) => is_like(filter, wanted, found),
    };

    let of_any = |wanted: &Option<Vec<u8>>, found: Option<&[u8]>, which| {
        let mut others = facts.others.texts(which);
        is(wanted, found) || others.any(|other| is(wanted, Some(other)))
    };
    is_file(filter, facts)
        && of_any(&filter.host, facts.host.as_deref(), TextOf::Host)
        && of_any(
            &filter.terminal,
            facts.terminal.as_deref(),
            TextOf::Terminal,
        )
        && of_any(&filter.exe, facts.exe.as_deref(), TextOf::Exe)
        && of_any(&filter.comm, facts.comm.as_deref(), TextOf::Comm)
        && filter.key.as_ref().is_none_or(|wanted| {
            let keys = facts.keys.as_deref().unwrap_or_default();
            keys.iter().any(|key| is_like(filter, wanted, key))
        })
        && is(&filter.vm, facts.guest.vm.as_deref())
        && is(&filter.uuid, facts.guest.uuid)
}

fn is_file(filter: &Filter, facts: &Facts<'_>) -> bool {
    filter.file.as_ref().is_none_or(|wanted| {
        let files = facts.files.names.as_deref().unwrap_or_default();
        files
            .iter()
            .chain(&facts.files.cwd)
            .any(|file| is_like(filter, wanted, file))
    })
}

fn is_like(filter: &Filter, wanted: &[u8], found: &[u8]) -> bool {
    if filter.is_exact {
        wanted == found
    } else {
        find(found, wanted).is_some()
    }
}

fn is_label(filter: &Filter, facts: &Facts<'_>) -> bool {
    let has = |wanted: &Option<Vec<u8>>, label: fn(&Labels<'_>) -> Option<Vec<u8>>| {
        wanted.as_ref().map(|wanted| {
            facts
                .labels
                .iter()
                .filter_map(label)
                .any(|found| is_like(filter, wanted, &found))
        })
    };

    let subject = has(&filter.subject, |labels| labels.subject.map(<[u8]>::to_vec));
    let object = has(&filter.object, |labels| labels.object.map(<[u8]>::to_vec));
    if filter.is_any_label {
        subject == Some(true) || object == Some(true)
    } else {
        subject != Some(false) && object != Some(false)
    }
}
