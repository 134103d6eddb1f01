//! Facts that can be asked of an event. Only wanted ones are read.

use crate::interpret::escaped;
use crate::walk::{find_from, Malformed, Text, Walk};
use crate::Dialect;
use std::borrow::Cow;

/// Value of an id that was not found; login id and session have [`NO_LOGIN`].
pub const NO_ID: u32 = u32::MAX;
/// Value of a login id or session that was not found; 4294967295 is a value that records have.
pub const NO_LOGIN: u32 = u32::MAX - 1;

/// The facts that a question needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each is the fact of `Facts` with this name
pub struct Wanted {
    pub pid: bool,
    pub ppid: bool,
    pub auid: bool,
    pub uid: bool,
    pub euid: bool,
    pub gid: bool,
    pub egid: bool,
    pub session: bool,
    pub arch: bool,
    pub success: bool,
    pub exit: bool,
    pub terminal: bool,
    pub comm: bool,
    pub exe: bool,
    pub keys: bool,
    pub files: bool,
    pub host: bool,
    pub subject: bool,
    pub object: bool,
    pub vm: bool,
    pub uuid: bool,
    /// [`Facts::others`]: the values of all records, for conditions.
    pub all: bool,
}

/// Security labels of one record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels<'e> {
    /// Label of the subject.
    pub subject: Option<&'e [u8]>,
    /// Label of the object.
    pub object: Option<&'e [u8]>,
    /// Whether AVC says that access was granted.
    pub granted: Option<bool>,
    /// Whether SELinux only reports what its policy would refuse. ausearch's dialects do not read it.
    pub is_permissive: bool,
    /// Permissions that AVC names.
    pub permissions: Option<&'e [u8]>,
    /// Class of the object that AVC names.
    pub class: Option<&'e [u8]>,
    /// Whether AppArmor wrote the record.
    pub is_of_apparmor: bool,
}

/// Process, users, groups and session of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    /// Process, or -1.
    pub pid: i32,
    /// Parent process, or -1.
    pub ppid: i32,
    /// Login id, or [`NO_LOGIN`].
    pub auid: u32,
    /// User, or [`NO_ID`].
    pub uid: u32,
    /// Effective user, or [`NO_ID`].
    pub euid: u32,
    /// Group, or [`NO_ID`].
    pub gid: u32,
    /// Effective group, or [`NO_ID`].
    pub egid: u32,
    /// The ids of which ausearch knows a name: login id, user, effective user.
    pub named: [Option<u32>; 3],
    /// Login session, or [`NO_LOGIN`].
    pub session: u32,
}

/// The system call of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// AUDIT_ARCH of the call, or 0.
    pub arch: u32,
    /// Number of the call. Without one -1, and with `--compat` 0.
    pub syscall: i32,
    /// 1: success, 0: failure, -1: unknown. Records may hold other numbers.
    pub success: i32,
    /// Result of the call.
    pub exit: Option<i64>,
}

/// The files of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files<'e> {
    /// Names of files; `None` if no record has a field for them.
    pub names: Option<Vec<Text<'e>>>,
    /// Working directory.
    pub cwd: Option<Text<'e>>,
    /// Index of the file that the event is about, if a record says so: no directory that only contains it.
    main: Option<usize>,
}

/// The virtual machine that an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guest<'e> {
    /// Name of the machine.
    pub vm: Option<Text<'e>>,
    /// UUID of the machine.
    pub uuid: Option<&'e [u8]>,
}

/// Facts about an event, borrowed from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts<'e> {
    /// Process, users, groups and session.
    pub ids: Ids,
    /// The system call.
    pub call: Call,
    /// Terminal.
    pub terminal: Option<Text<'e>>,
    /// Name of the task.
    pub comm: Option<Text<'e>>,
    /// Program.
    pub exe: Option<Text<'e>>,
    /// Account of a user-space message.
    pub acct: Option<Text<'e>>,
    /// Keys of the rules; `None` if no record has a field for them.
    pub keys: Option<Vec<Text<'e>>>,
    /// Files and working directory.
    pub files: Files<'e>,
    /// Remote host: its name, or else its address.
    pub host: Option<Text<'e>>,
    /// Address of the remote host. A dialect has none.
    pub address: Option<Text<'e>>,
    /// Labels, by record.
    pub labels: Vec<Labels<'e>>,
    /// Virtual machine.
    pub guest: Guest<'e>,
    /// What other records say, if it is wanted. A dialect has none.
    pub others: Others<'e>,
}

/// Field with a number of which an event may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Pid,
    Ppid,
    Gid,
    Egid,
    Session,
}

/// Field with a text of which an event may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextOf {
    Terminal,
    Comm,
    Exe,
    Host,
}

/// A user in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// Index into [`Ids::named`].
    pub(crate) which: usize,
    pub(crate) id: u32,
    /// The name that ENRICHED has beside this field.
    pub(crate) name: Option<Vec<u8>>,
}

/// Values of all records of an event, which conditions are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others<'e> {
    /// All numbers.
    pub(crate) numbers: Vec<(Number, u32)>,
    /// Texts besides those of who acted.
    pub(crate) texts: Vec<(TextOf, Text<'e>)>,
    /// All users.
    pub(crate) users: Vec<User>,
}

impl Others<'_> {
    /// Whether a record has this number.
    pub(crate) fn has(&self, which: Number, number: u32) -> bool {
        self.numbers.contains(&(which, number))
    }

    /// The further texts of a field.
    pub(crate) fn texts(&self, which: TextOf) -> impl Iterator<Item = &[u8]> {
        let texts = self.texts.iter();
        texts
            .filter(move |text| text.0 == which)
            .map(|text| &*text.1)
    }
}

/// Index into [`Ids::named`].
pub(crate) const AUID: usize = 0;
/// Index into [`Ids::named`].
pub(crate) const UID: usize = 1;
/// Index into [`Ids::named`].
pub(crate) const EUID: usize = 2;

impl Default for Ids {
    /// Nothing is known.
    fn default() -> Ids {
        Ids {
            pid: -1,
            ppid: -1,
            auid: NO_LOGIN,
            uid: NO_ID,
            euid: NO_ID,
            gid: NO_ID,
            egid: NO_ID,
            named: [None; 3],
            session: NO_LOGIN,
        }
    }
}

impl Default for Call {
    /// Nothing is known.
    fn default() -> Call {
        Call {
            arch: 0,
            syscall: 0,
            success: -1,
            exit: None,
        }
    }
}

impl Ids {
    /// Sets an id whose name may be asked for.
    pub(crate) fn set_named(&mut self, which: usize, id: u32) {
        match which {
            AUID => self.auid = id,
            UID => self.uid = id,
            _ => self.euid = id,
        }
        self.named[which] = Some(id);
    }

    /// Sets a number that no record has given yet.
    pub(crate) fn set_if_missing(&mut self, which: Number, number: u32) {
        match which {
            Number::Pid if self.pid == -1 => self.pid = number as i32,
            Number::Ppid if self.ppid == -1 => self.ppid = number as i32,
            Number::Gid if self.gid == NO_ID => self.gid = number,
            Number::Egid if self.egid == NO_ID => self.egid = number,
            Number::Session if self.session == NO_LOGIN => self.session = number,
            _ => {}
        }
    }
}

impl<'e> Labels<'e> {
    /// The label of a subject alone.
    pub(crate) fn of_subject(label: &'e [u8]) -> Labels<'e> {
        Labels {
            subject: Some(label),
            ..Labels::default()
        }
    }

    /// The label of an object alone.
    pub(crate) fn of_object(label: &'e [u8]) -> Labels<'e> {
        Labels {
            object: Some(label),
            ..Labels::default()
        }
    }
}

impl<'e> Files<'e> {
    /// Adds the name of a file that begins at `from` as ausearch does, joined to the working directory if it begins
    /// with `..` or `./`.
    pub(crate) fn add(&mut self, walk: Walk<'e>, from: usize) -> Result<(), Malformed> {
        let rest = &walk.text[from..];
        self.names.get_or_insert_default();
        let name = match rest {
            [b'"', quoted @ ..] => {
                let end = memchr::memchr(b'"', quoted).ok_or(Malformed)?;
                Cow::Borrowed(&quoted[..end])
            }
            _ if rest.starts_with(b"(null)") => {
                self.names
                    .get_or_insert_default()
                    .push(Cow::Borrowed(b"(null)"));
                self.note_main();
                return Ok(());
            }
            [first, ..] if !first.is_ascii_hexdigit() => return Err(Malformed),
            [] => return Err(Malformed),
            [b'0', b'0', abstract_name @ ..] => unescaped(abstract_name)?,
            _ => {
                memchr::memchr(b' ', rest).ok_or(Malformed)?;
                unescaped(rest)?
            }
        };

        self.push(name);
        self.note_main();
        Ok(())
    }

    /// [`Files::add`] for PATH. `key` is what aureport takes for its type: it passes over directories whose type ends the
    /// record, as in old kernels.
    pub(crate) fn add_path(
        &mut self,
        walk: Walk<'e>,
        from: usize,
        key: &[u8],
    ) -> Result<(), Malformed> {
        let before = self.main;
        self.add(walk, from)?;
        if key == b"PARENT" {
            self.main = before;
        }
        Ok(())
    }

    /// Adds the name of a file, joined to the working directory if it begins with `..` or `./`.
    pub(crate) fn push(&mut self, name: Text<'e>) {
        let name = Files::joined(self.cwd.as_deref(), name);
        self.names.get_or_insert_default().push(name);
    }

    /// Whether a name is joined to the working directory.
    pub(crate) fn is_joined(name: &[u8]) -> bool {
        matches!(name, [b'.', b'.' | b'/', ..])
    }

    /// `name`, joined to the working directory if it begins with `..` or `./`.
    pub(crate) fn joined(cwd: Option<&[u8]>, name: Text<'e>) -> Text<'e> {
        let (true, Some(cwd)) = (Files::is_joined(&name), cwd) else {
            return name;
        };
        let mut whole = [cwd, &b"/"[..], &name].concat();
        // PATH_MAX of Linux, which counts a zero.
        whole.truncate(4095);
        Cow::Owned(whole)
    }

    /// Notes that the event is about the file that was added last, unless it is about one before.
    pub(crate) fn note_main(&mut self) {
        let last = self
            .names
            .as_ref()
            .and_then(|names| names.len().checked_sub(1));
        self.main = self.main.or(last);
    }

    /// The file that the event is about. aureport finds none among directories alone.
    pub fn main(&self, dialect: Dialect) -> Option<&[u8]> {
        let names = self.names.as_ref()?;
        let is_alone = names.len() == 1 || !dialect.is_compat();
        let at = self.main.or(is_alone.then_some(0))?;
        names.get(at).map(|name| &**name)
    }
}

/// Adds the keys at `from`: one in quotes, or several in hex, which byte 1 separates.
pub(crate) fn add_keys<'e>(
    keys: &mut Option<Vec<Text<'e>>>,
    mut walk: Walk<'e>,
    from: usize,
) -> Result<(), Malformed> {
    let keys = keys.get_or_insert_with(Vec::new);
    if walk.text.get(from) == Some(&b'"') {
        keys.push(Cow::Borrowed(walk.until(from + 1, b'"')?));
        return Ok(());
    }
    let all = crate::number::unescape(&walk.text[from..]).ok_or(Malformed)?;
    let each = all.split(|byte| *byte == 1).filter(|key| !key.is_empty());
    keys.extend(each.map(|key| Cow::Owned(key.to_vec())));
    Ok(())
}

fn unescaped<'e>(text: &[u8]) -> Result<Text<'e>, Malformed> {
    crate::number::unescape(text)
        .map(Cow::Owned)
        .ok_or(Malformed)
}

/// The name that the interpretations of ENRICHED give to the id of a field, which is in lower case.
pub(crate) fn enriched_name(names: &[u8], field: &[u8], dialect: Dialect) -> Option<Vec<u8>> {
    for word in names.split(|byte| *byte == b' ') {
        let Some(end) = find_from(word, 0, b"=") else {
            continue;
        };
        if word[..end - 1].eq_ignore_ascii_case(field) {
            return Some(escaped(&word[end..], dialect));
        }
    }
    None
}

/// The value that the interpretations of ENRICHED have for a field in lower case, of which `nth` others of that name
/// come before.
pub(crate) fn nth_value<'e>(names: &'e [u8], field: &[u8], nth: usize) -> Option<&'e [u8]> {
    let words = names.split(|byte| *byte == b' ').filter_map(|word| {
        let end = memchr::memchr(b'=', word)?;
        Some((&word[..end], &word[end + 1..]))
    });
    let mut its = words.filter(|word| word.0.eq_ignore_ascii_case(field));
    its.nth(nth).map(|word| word.1)
}

/// [`nth_value`] without quotes, or decoded.
pub(crate) fn nth_name(names: &[u8], field: &[u8], nth: usize) -> Option<Vec<u8>> {
    nth_value(names, field, nth).map(|value| escaped(value, Dialect::Own))
}
