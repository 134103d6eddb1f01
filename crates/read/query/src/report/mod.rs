//! Reports on audit logs, as aureport makes them: a line per event, or counts.
//!
//! [`Request`] says what is asked for. [`Summary`] counts, and two of them can be merged; [`List`] has a line
//! per event. [`top`] and [`news`] are reports that aureport does not have. [`Dialect`] says which program's
//! behaviour they follow.

mod callers;
mod counts;
mod list;
mod names;
pub mod news;
pub mod runs;
mod select;
mod summary;
mod table;
mod titles;
pub mod top;

pub use list::List;
pub use summary::Summary;

use crate::facts::Wanted;
use crate::filter::UserName;
use crate::{Dialect, Escape};

/// Subject of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the report of aureport's option of that name
pub enum Kind {
    /// Counts of everything.
    Main,
    /// First and last time of each file.
    Log,
    Avc,
    Mac,
    Config,
    Event,
    File,
    Host,
    Login,
    Mods,
    Pid,
    Syscall,
    Terminal,
    User,
    Exe,
    Anomaly,
    Response,
    Crypto,
    Auth,
    Key,
    Tty,
    Comm,
    Virt,
    Integrity,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 24] = [
        Kind::Main,
        Kind::Log,
        Kind::Avc,
        Kind::Mac,
        Kind::Config,
        Kind::Event,
        Kind::File,
        Kind::Host,
        Kind::Login,
        Kind::Mods,
        Kind::Pid,
        Kind::Syscall,
        Kind::Terminal,
        Kind::User,
        Kind::Exe,
        Kind::Anomaly,
        Kind::Response,
        Kind::Crypto,
        Kind::Auth,
        Kind::Key,
        Kind::Tty,
        Kind::Comm,
        Kind::Virt,
        Kind::Integrity,
    ];

    /// Whether a summary counts texts that stand in the log.
    pub(crate) fn is_of_texts(self) -> bool {
        use Kind::{Avc, Comm, Exe, File, Host, Key, Terminal};
        matches!(self, Avc | Comm | Exe | File | Host | Key | Terminal)
    }

    /// Whether this kind has no summary.
    pub fn has_no_summary(self) -> bool {
        matches!(self, Kind::Log | Kind::Tty)
    }
}

/// Changes of configuration that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Changes {
    /// All of them.
    #[default]
    All,
    /// All but those that delete.
    Additions,
    /// All but those that add.
    Deletions,
}

/// Options of a report.
#[derive(Debug, Clone)]
pub struct Request {
    /// Subject of the report.
    pub kind: Kind,
    /// Counts instead of a line per event.
    pub is_summary: bool,
    /// Only events that succeeded, or failed.
    pub success: Option<bool>,
    /// Only events of these nodes, if there are any.
    pub nodes: Vec<Vec<u8>>,
    /// Changes of configuration that count.
    pub changes: Changes,
    /// Leave out CONFIG_CHANGE.
    pub no_config: bool,
    /// Names instead of numbers.
    pub interpret: bool,
    /// Escapes of control characters.
    pub escape: Escape,
    /// Beginning of the time that the report is about, in seconds since 1970; 0 for any.
    pub start_s: i64,
    /// End of the time that the report is about, in seconds since 1970; 0 for any.
    pub end_s: i64,
    /// The program whose behaviour is followed.
    pub dialect: Dialect,
    /// Gives names to user ids that have none in the log.
    pub user_name: UserName,
    /// Whether the lines of a list end with the host, `?` where it is not known.
    pub has_hosts: bool,
}

impl Request {
    /// The title, which comes before everything. `None` if there is no such report.
    pub fn title(&self) -> Option<String> {
        titles::title(self)
    }

    /// The facts that aureport reads for this report. It drops an event only for facts that it reads.
    pub(crate) fn wanted(&self) -> Wanted {
        let mut wanted = Wanted {
            success: true,
            pid: true,
            arch: self.interpret,
            ..Wanted::default()
        };

        let which: &mut [&mut bool] = match self.kind {
            Kind::Virt | Kind::Response | Kind::Log => &mut [],
            Kind::Avc => &mut [&mut wanted.comm, &mut wanted.subject, &mut wanted.object],
            Kind::Auth => &mut [
                &mut wanted.exe,
                &mut wanted.host,
                &mut wanted.terminal,
                &mut wanted.uid,
            ],
            Kind::Mac | Kind::Integrity | Kind::Config | Kind::Crypto | Kind::Event => {
                &mut [&mut wanted.auid]
            }
            Kind::Login | Kind::Mods | Kind::Terminal | Kind::Exe => &mut [
                &mut wanted.exe,
                &mut wanted.host,
                &mut wanted.terminal,
                &mut wanted.auid,
            ],
            Kind::User => &mut [
                &mut wanted.exe,
                &mut wanted.host,
                &mut wanted.terminal,
                &mut wanted.auid,
                &mut wanted.uid,
            ],
            Kind::File => &mut [&mut wanted.files, &mut wanted.exe, &mut wanted.auid],
            Kind::Host => &mut [&mut wanted.host, &mut wanted.auid],
            Kind::Pid => &mut [&mut wanted.exe, &mut wanted.auid],
            Kind::Syscall => &mut [&mut wanted.comm, &mut wanted.auid],
            Kind::Comm => &mut [
                &mut wanted.comm,
                &mut wanted.host,
                &mut wanted.terminal,
                &mut wanted.auid,
            ],
            Kind::Anomaly => &mut [
                &mut wanted.exe,
                &mut wanted.comm,
                &mut wanted.host,
                &mut wanted.terminal,
                &mut wanted.auid,
            ],
            Kind::Key => &mut [&mut wanted.exe, &mut wanted.keys, &mut wanted.auid],
            Kind::Tty => &mut [
                &mut wanted.session,
                &mut wanted.auid,
                &mut wanted.terminal,
                &mut wanted.comm,
            ],
            Kind::Main => &mut [
                &mut wanted.files,
                &mut wanted.host,
                &mut wanted.terminal,
                &mut wanted.exe,
                &mut wanted.comm,
                &mut wanted.keys,
                &mut wanted.auid,
            ],
        };

        which.iter_mut().for_each(|field| **field = true);
        wanted
    }

    /// The facts that a summary reads without `--compat`: only those that it counts.
    pub(crate) fn wanted_to_count(&self) -> Wanted {
        let all = self.wanted();
        if self.dialect != Dialect::Own || self.kind == Kind::Main {
            return all;
        }

        let needs_user = matches!(self.kind, Kind::User | Kind::Auth | Kind::Login);
        Wanted {
            success: self.success.is_some() || matches!(self.kind, Kind::Auth | Kind::Avc),
            pid: self.kind == Kind::Pid,
            arch: self.interpret && self.kind == Kind::Syscall,
            auid: needs_user,
            files: self.kind == Kind::File,
            host: self.kind == Kind::Host,
            terminal: self.kind == Kind::Terminal,
            exe: self.kind == Kind::Exe,
            comm: self.kind == Kind::Comm,
            keys: self.kind == Kind::Key,
            object: self.kind == Kind::Avc,
            ..Wanted::default()
        }
    }
}

/// The text printed if there are no events.
pub const NONE_FOUND: &str = "<no events of interest were found>\n\n";
