//! Records from other sources (logins, SELinux, seccomp, configuration), which arrive over the
//! audit socket.

use crate::account::kernel_costs::{logged, KernelCosts};
use crate::clock::monotonic_ns;
use crate::pipeline::grouped::GroupedSink;
use crate::pipeline::incoming::Incoming;
use crate::pipeline::list_notices::ListNotices;
use crate::start::rule_place::refused_rule;
use crate::stderr::say;
use anyhow::{anyhow, Context, Result};
use capture::AuditContexts;
use compose::{Generation, System};
use netlink::{Change, KernelRecord, NetlinkError, Ownership, TakeOverError};
use record::{Encoder, RecordType};
use rules::{Rule, Settings};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// The audit socket, while Tarsier owns it.
pub(crate) struct KernelRecords {
    pub(super) ownership: Ownership,
    /// Changes of the kernel's list by others, if it shows our rules.
    pub(super) notices: ListNotices,
    /// Number of rules that it does not show.
    pub(super) hidden: usize,
    buffer: Vec<u8>,
    incoming: Incoming,
    pub(crate) received: u64,
    pub(crate) overruns: u64,
    /// Beginnings of the CONFIG_CHANGE records that the kernel makes for changes by Tarsier on
    /// behalf of a client. Tarsier logs its own record of these, which names the client.
    own_changes: Vec<Vec<u8>>,
    /// Beginnings, up to the end of the stamp, of the events that contain such records.
    own_events: VecDeque<Vec<u8>>,
    /// Costs of the rules that the kernel matches, by key.
    pub(crate) costs: KernelCosts,
    /// Records that the kernel has lost since the daemon started.
    pub(crate) lost: u64,
    lost_before: u32,
    has_more: bool,
}

/// Bytes of lines that are made in one pass, before the journal gets its turn.
const PASS_BYTES_MAX: usize = 1 << 20;
/// Limit of own events whose further records are still expected.
const OWN_EVENTS_MAX: usize = 4096;

/// The text where a rule stays loaded.
pub const KEPT_RULE: &str = "the rule never,task stays loaded, so that processes do not pay for the kernel's audit, \
                             which was never enabled before; `auditctl -d never,task` removes it, and `auditctl -D` \
                             before other rules are loaded";

const CONFIG_CHANGE: u16 = RecordType::CONFIG_CHANGE.netlink();

impl KernelRecords {
    /// Takes over the audit socket. `Ok(None)` if another process owns it or it is locked: this is
    /// printed, and recording goes on without its records.
    pub(crate) fn start(run_dir: &Path, contexts: &AuditContexts) -> Result<Option<KernelRecords>> {
        match netlink::take_over(&run_dir.join("audit-state"), was_never_enabled(contexts)) {
            Ok(ownership) => {
                if let Some(pid) = ownership.predecessor() {
                    say!("tarsier: process {pid} ended without restoring audit: taken over");
                }
                Ok(Some(KernelRecords::of(ownership)))
            }
            Err(error @ (TakeOverError::AnotherDaemon { .. } | TakeOverError::Immutable)) => {
                say!("tarsier: {error}");
                Ok(None)
            }
            Err(TakeOverError::Netlink(error)) => {
                say!(
                    "tarsier: records of the kernel and other programs are not available: {error}"
                );
                Ok(None)
            }
            Err(error) => Err(error).context("cannot take over the audit socket"),
        }
    }

    /// Takes over the audit socket and loads rules and settings into the kernel.
    ///
    /// # Errors
    /// The kernel cannot record for Tarsier: unlike in [`start`](Self::start), recording cannot go
    /// on.
    pub(crate) fn start_engine(
        run_dir: &Path,
        rules: &[Rule],
        settings: &Settings,
        contexts: &AuditContexts,
    ) -> Result<KernelRecords> {
        let bytes = rules.iter().map(rules::to_kernel).collect();
        let never_enabled = was_never_enabled(contexts);
        let state_file = run_dir.join("audit-state");
        let taken = netlink::take_over_with_rules(&state_file, bytes, never_enabled);
        let ownership = taken.map_err(|error| refusal(error, rules))?;
        if let Some(pid) = ownership.predecessor() {
            say!("tarsier: process {pid} ended without restoring audit: taken over");
        }

        let mut kernel = KernelRecords::of(ownership);
        let status = kernel.socket().status()?;
        kernel.lost_before = status.lost;
        if status.enabled != netlink::LOCKED {
            kernel.apply_settings(settings)?;
        }

        Ok(kernel)
    }

    fn of(ownership: Ownership) -> KernelRecords {
        KernelRecords {
            ownership,
            notices: ListNotices::default(),
            hidden: 0,
            buffer: vec![0; netlink::RECORD_BYTES_MAX],
            incoming: Incoming::default(),
            received: 0,
            overruns: 0,
            own_changes: Vec::new(),
            own_events: VecDeque::new(),
            costs: KernelCosts::default(),
            lost: 0,
            lost_before: 0,
            has_more: false,
        }
    }

    /// Applies the settings of rules files. All are restored at the end except
    /// `--loginuid-immutable`, which cannot be undone before the next boot.
    pub(crate) fn apply_settings(&mut self, settings: &Settings) -> Result<()> {
        let socket = self.ownership.socket();
        if let Some(failure) = settings.failure {
            socket.set_failure(failure)?;
        }
        if let Some(backlog) = settings.backlog {
            socket.set_backlog_limit(backlog)?;
        }
        if let Some(rate) = settings.rate {
            socket.set_rate_limit(rate)?;
        }
        if let Some(wait) = settings.backlog_wait_time {
            socket.set_backlog_wait_time(wait)?;
        }

        // What cannot be taken back comes last.
        if settings.loginuid_immutable {
            socket.set_loginuid_immutable()?;
        }
        for (mount, subtree) in &settings.equivalents {
            socket.make_equivalent(mount, subtree)?;
        }
        Ok(())
    }

    /// Locks the kernel's audit until the next boot (`-e 2`). A `digest` of rules that the kernel does not have is put
    /// into its list. The caller logs who wanted it.
    pub(crate) fn lock(&mut self, digest: Option<&str>) -> Result<(), NetlinkError> {
        self.expect_change(format!("op=set audit_enabled={} old=1 ", netlink::LOCKED));
        self.ownership.lock(digest)
    }

    /// Makes the kernel match these rules from now on. Records that the kernel makes about this are
    /// not written: the caller logs who wanted the change.
    pub(crate) fn replace_rules(&mut self, rules: &[Rule]) -> Result<()> {
        // While audit is off, the kernel logs no changes, and the announcements would stay.
        let is_logged = self.socket().status()?.enabled != 0;
        let is_rule = |change: &Vec<u8>| {
            change.starts_with(b"op=add_rule ") || change.starts_with(b"op=remove_rule ")
        };
        // Left from earlier changes whose records an exclude rule dropped.
        self.own_changes.retain(|change| !is_rule(change));

        let bytes = rules.iter().map(rules::to_kernel).collect();
        let changes = self.ownership.replace_rules(bytes);
        let changes = changes.map_err(|error| explained(error, rules))?;

        if is_logged {
            self.expect_rule_changes(&changes);
        }
        Ok(())
    }

    /// Announces the records of changes of the kernel's rules. The kernel logs each as one of this process: those records
    /// are left out, the daemon logs who asked.
    pub(super) fn expect_rule_changes(&mut self, changes: &[Change]) {
        for change in changes {
            let Ok(rule) = rules::from_kernel(&change.rule) else {
                continue;
            };
            let op = if change.is_added { "add" } else { "remove" };
            let mut text = format!("op={op}_rule key=").into_bytes();
            text.extend(logged(rule.key()));
            text.extend(format!(" list={} ", rule.list as u32).into_bytes());
            self.own_changes.push(text);
        }
    }

    /// The rules as the kernel lists them; `None` if it cannot be asked.
    pub(crate) fn listed_rules(&mut self) -> Option<Vec<Vec<u8>>> {
        self.ownership.socket().list_rules().ok()
    }

    /// Whether records wait that poll(2) does not report.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Asks the kernel for the number of records it has lost.
    pub(crate) fn count_lost(&mut self) {
        if let Ok(status) = self.ownership.socket().status() {
            self.add_lost(status.lost);
            self.lost_before = status.lost;
        }
    }

    /// Sets the kernel's count of lost records to 0 and returns the one before. What was lost stays
    /// counted in `lost`.
    pub(crate) fn reset_lost(&mut self) -> Result<u32, NetlinkError> {
        let lost = self.ownership.socket().reset_lost()?;
        self.add_lost(lost);
        self.lost_before = 0;
        Ok(lost)
    }

    /// Adds what the kernel has lost since it was last asked. A count that is smaller than the one
    /// before was reset by somebody else.
    fn add_lost(&mut self, now: u32) {
        let since = now.checked_sub(self.lost_before);
        self.lost += u64::from(since.unwrap_or(now));
    }

    /// Descriptor that is readable when records are waiting.
    pub(crate) fn fd(&mut self) -> BorrowedFd<'_> {
        let socket: &netlink::AuditSocket = self.ownership.socket();
        socket.as_fd()
    }

    /// Appends the events of the waiting records, up to a limit of bytes. An incomplete event waits
    /// for the next call, unless no more records come. `filter` drops records, by what the system
    /// shows of their senders; `None` if the kernel has already done that. Returns the number of
    /// events.
    pub(crate) fn drain(
        &mut self,
        filter: Option<(&Generation, &dyn System)>,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) -> u32 {
        let mut events = self.end_waiting(monotonic_ns(), encoder, out);
        let mut came = false;
        let watches_bpf = || filter.is_some_and(|(rules, _)| rules.watches_bpf());
        self.has_more = false;
        while out.len() < PASS_BYTES_MAX {
            match self.ownership.socket().receive(&mut self.buffer) {
                Ok(Some(KernelRecord { kind, text })) => {
                    self.received += 1;
                    let is_own = is_own(&mut self.own_changes, &mut self.own_events, kind, text);
                    let is_dropped =
                        |(rules, system)| compose::drops_message(rules, kind.into(), text, system);
                    if kind == CONFIG_CHANGE && !is_own {
                        self.notices.take(text);
                    }
                    if is_own || filter.is_some_and(is_dropped) {
                        continue;
                    }
                    came = true;
                    let sink = &mut GroupedSink {
                        encoder,
                        out,
                        costs: &mut self.costs,
                        leaves_out_calls: self.notices.is_shown,
                    };
                    events += self.incoming.take(kind, text, watches_bpf, sink);
                }
                Ok(None) if came => return events,
                Ok(None) => return events + self.end_events(encoder, out),
                // ENOBUFS: the socket's buffer was full, and the kernel has dropped records.
                Err(NetlinkError::Overrun) => {
                    self.overruns += 1;
                    self.notices.is_changed = self.notices.is_shown;
                }
                Err(error) => {
                    say!("tarsier: {error}");
                    return events;
                }
            }
        }

        self.has_more = true;
        events
    }

    /// Notes BPF programs whose loading was recorded: the kernel's own records of it are dropped.
    pub(crate) fn note_programs(&mut self, prog_ids: &[u32]) {
        for prog_id in prog_ids {
            self.incoming.recorded(*prog_id, monotonic_ns());
        }
    }

    /// Appends the BPF records that have waited until `now_ns`. Returns the number of events.
    fn end_waiting(&mut self, now_ns: u64, encoder: &mut Encoder, out: &mut Vec<u8>) -> u32 {
        let sink = &mut GroupedSink {
            encoder,
            out,
            costs: &mut self.costs,
            leaves_out_calls: self.notices.is_shown,
        };
        self.incoming.end_waiting(now_ns, sink)
    }

    fn end_events(&mut self, encoder: &mut Encoder, out: &mut Vec<u8>) -> u32 {
        self.incoming.end(&mut GroupedSink {
            encoder,
            out,
            costs: &mut self.costs,
            leaves_out_calls: self.notices.is_shown,
        })
    }

    /// The audit socket, for requests. Settings made through it are restored at the end.
    pub(crate) fn socket(&mut self) -> &mut netlink::AuditSocket {
        self.ownership.socket()
    }

    /// Announces a record with this text about a change; when the kernel makes it, it is not
    /// written.
    pub(crate) fn expect_change(&mut self, text: String) {
        self.own_changes.push(text.into_bytes());
    }

    /// Login uid and process id of the sender of the last signal to this process.
    pub(crate) fn signal_sender(&mut self) -> Option<(u32, u32)> {
        let info = self.ownership.socket().signal_info().ok()?;
        Some((info.auid, info.pid))
    }

    /// Notice about the rule that stays in the kernel at the end, if one does.
    pub(crate) fn leaves(&self) -> Option<&'static str> {
        (self.ownership.found().unused == 1).then_some(KEPT_RULE)
    }

    /// Releases the socket and restores the kernel's audit state; appends the last records. Returns
    /// the number of events.
    pub(crate) fn stop(mut self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<u32> {
        let mut events = self.end_waiting(u64::MAX, encoder, out);
        let left = self.leaves();
        let late = self.ownership.release();
        let sink = &mut GroupedSink {
            encoder,
            out,
            costs: &mut self.costs,
            leaves_out_calls: self.notices.is_shown,
        };
        let late = late.context("restoring the audit state")?;
        if let Some(left) = left {
            say!("tarsier: {left}");
        }

        for (kind, text) in late {
            events += self.incoming.take(kind, &text, || false, sink);
        }

        events += self.incoming.end_waiting(u64::MAX, sink);
        Ok(events + self.incoming.end(sink))
    }
}

/// Whether audit was never enabled since the machine was started: if it was, new tasks get an audit context unless a
/// rule forbids it. If this cannot be found out, audit counts as enabled, so that nothing is left behind.
fn was_never_enabled(contexts: &AuditContexts) -> bool {
    contexts.newborn_gets_one() == Some(false)
}

/// Whether a record is about a change that Tarsier announced, or belongs to the event of such a
/// record.
fn is_own(
    changes: &mut Vec<Vec<u8>>,
    events: &mut VecDeque<Vec<u8>>,
    kind: u16,
    text: &[u8],
) -> bool {
    if changes.is_empty() && events.is_empty() {
        return false;
    }

    let stamp_len = text.iter().position(|&byte| byte == b')');
    let stamp = &text[..stamp_len.unwrap_or(0)];
    let known = events.iter().position(|own| own == stamp);
    if let Some(place) = known {
        if RecordType::from(kind) == RecordType::EOE {
            events.remove(place);
        }
        return true;
    }

    let is_told = |change: &Vec<u8>| kind == CONFIG_CHANGE && contains(text, change);
    let Some(place) = changes.iter().position(is_told) else {
        return false;
    };

    changes.swap_remove(place);
    if events.len() >= OWN_EVENTS_MAX {
        events.pop_front();
    }

    events.push_back(stamp.to_vec());
    true
}

/// The error, with the place of the rule that it concerns.
/// A rule that the kernel did not take.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub(crate) struct KernelRefusal {
    /// The rule as it was sent.
    pub(crate) rule: Vec<u8>,
    /// Place and text of the rule.
    pub(crate) place: String,
    /// The kernel's reason.
    pub(crate) why: String,
}

/// The error of a start: a [`KernelRefusal`] if it is about one rule.
fn refusal(error: TakeOverError, rules: &[Rule]) -> anyhow::Error {
    match error {
        TakeOverError::Rule { rule, error } => anyhow!(KernelRefusal {
            place: refused_rule(&rule, rules),
            why: error.to_string(),
            rule,
        }),
        error => anyhow!(error).context("the kernel engine cannot be started"),
    }
}

fn explained(error: TakeOverError, rules: &[Rule]) -> anyhow::Error {
    match &error {
        TakeOverError::Rule { rule, error } => {
            anyhow!("{}: {error}", refused_rule(rule, rules))
        }
        _ => anyhow!(error),
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
