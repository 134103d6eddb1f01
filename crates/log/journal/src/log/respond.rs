//! Responses to a log that is too large and to a disk that fills or fails: what is reported, and
//! what the journal has to do.

use std::io;
use std::path::{Path, PathBuf};

use super::notices::Notices;
use crate::action::{OwnerAction, Runlevel, Severity};
use crate::counters::Lost;
use crate::error::{is_full, RotateError};
use crate::rotate;
use crate::space::{Limits, Space, MIB};
use conf::{Config, FailureAction, SizeAction};

/// Consecutive messages about a failing disk (auditd's limit).
const ERROR_MESSAGES_MAX: u8 = 5;

/// Bytes that must be written between two rotations for space. auditd rotates at every check while
/// space is low, which discards all old logs within a few records.
const SPACE_ROTATION_BYTES_MIN: u64 = MIB;

/// Trouble that keeps the log from being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteTrouble {
    None,
    Full,
    Error,
}

/// Messages that were reported and are not repeated until the situation changes.
#[derive(Default)]
struct Reported {
    full: bool,
    space_left: bool,
    admin_space_left: bool,
    size: bool,
    errors: u8,
    losses: bool,
}

/// The journal's own part of a response.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Response {
    Nothing,
    /// Rotate because of `what`, so that at most `keep` files are left.
    Rotate {
        what: &'static str,
        keep: u32,
    },
    /// Suspend logging, then do what `then` says.
    Suspend {
        cause: String,
        then: Then,
    },
}

/// Step to take after suspending.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    /// Run a program that the administrator configured.
    Run(PathBuf),
    /// Ask for another run level.
    Change(Runlevel),
}

/// State of the log when a response is decided.
#[derive(Clone, Copy)]
pub(super) struct Situation<'a> {
    pub(super) config: &'a Config,
    pub(super) path: &'a Path,
    pub(super) size_bytes: u64,
    /// False while suspended.
    pub(super) is_open: bool,
}

/// Decides on responses.
pub(super) struct Responses {
    limits: Limits,
    reported: Reported,
    trouble: WriteTrouble,
    /// True after a failed rotation: no other is tried within the same commit.
    rotation_failed: bool,
    /// Bytes written since the last rotation for space.
    since_space_rotation_bytes: u64,
    notices: Notices,
}

impl Responses {
    /// Nothing was said yet.
    pub(super) fn new(limits: Limits) -> Self {
        Responses {
            limits,
            reported: Reported::default(),
            trouble: WriteTrouble::None,
            rotation_failed: false,
            since_space_rotation_bytes: u64::MAX,
            notices: Notices::default(),
        }
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Repeats messages about what is still wrong.
    pub(super) fn forget_reported(&mut self) {
        self.reported = Reported::default();
    }

    /// Forgets the failure: its file is no longer written, or may be written again.
    pub(super) fn forget_trouble(&mut self) {
        self.trouble = WriteTrouble::None;
    }

    /// Whether the writes and rotations of this commit have succeeded so far.
    pub(super) fn is_untroubled(&self) -> bool {
        self.trouble == WriteTrouble::None && !self.rotation_failed
    }

    /// Allows rotation to be tried again.
    pub(super) fn begin_commit(&mut self) {
        self.rotation_failed = false;
    }

    /// Actions for the owner.
    pub(super) fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }

    /// Counts bytes that the file grew by.
    pub(super) fn note_written(&mut self, bytes: u64) {
        self.since_space_rotation_bytes = self.since_space_rotation_bytes.saturating_add(bytes);
    }

    /// Records that the current file is a new one.
    pub(super) fn note_rotation(&mut self) {
        self.reported.size = false;
    }

    pub(super) fn write_succeeded(&mut self) {
        self.trouble = WriteTrouble::None;
        self.reported.losses = false;
        self.reported.errors = 0;
    }

    /// Answers a failed write(2).
    pub(super) fn write_failed(&mut self, error: &io::Error, at: Situation<'_>) -> Response {
        if is_full(error) {
            self.trouble = WriteTrouble::Full;
            self.disk_full(at)
        } else {
            self.trouble = WriteTrouble::Error;
            self.disk_error("write", error, at)
        }
    }

    /// Answers a failed sync that was to cover `events` events.
    pub(super) fn sync_failed(
        &mut self,
        error: &io::Error,
        events: u64,
        at: Situation<'_>,
    ) -> Response {
        let text = format!(
            "{}: sync failed: {error}; {events} written events may not be on disk",
            at.path.display()
        );
        if self.reported.errors < ERROR_MESSAGES_MAX {
            self.notices.report(Severity::Alert, text);
        }
        self.disk_error("sync", error, at)
    }

    /// Whether a rotation may be tried.
    pub(super) fn may_rotate(&self, keep: u32) -> bool {
        !self.rotation_failed && keep >= 2
    }

    /// Answers a failed rotation that was made because of `what`.
    pub(super) fn rotate_failed(
        &mut self,
        what: &str,
        error: &RotateError,
        at: Situation<'_>,
    ) -> Response {
        self.rotation_failed = true;
        if self.reported.errors < ERROR_MESSAGES_MAX {
            self.notices
                .report(Severity::Error, format!("rotating for {what}: {error}"));
        }
        if is_full(&error.source) {
            // Not by another rotation: that just failed.
            self.disk_full(at)
        } else {
            self.disk_error("rotate", &error.source, at)
        }
    }

    /// Bytes until the size limit calls for an action that replaces or closes the file.
    pub(super) fn bytes_until_size_action(&self, at: Situation<'_>) -> Option<u64> {
        // A file that cannot be rotated goes on growing; cut at its limit, each write would take one event.
        if self.rotation_failed || !size_action_changes_file(at.config) {
            return None;
        }
        Some((at.config.max_log_file_mib * MIB).saturating_sub(at.size_bytes))
    }

    /// Answers a current file that has reached `max_log_file`.
    pub(super) fn check_size(&mut self, at: Situation<'_>) -> Response {
        let max_mib = at.config.max_log_file_mib;
        if max_mib == 0 || at.size_bytes / MIB < max_mib || !at.is_open {
            return Response::Nothing;
        }

        let suspend = |then| Response::Suspend {
            cause: "the log has reached max_log_file".to_owned(),
            then,
        };
        let rotate = |keep| Response::Rotate { what: "size", keep };

        match &at.config.max_log_file_action {
            SizeAction::Ignore => Response::Nothing,
            SizeAction::Syslog => {
                if !self.reported.size {
                    self.reported.size = true;
                    let text = format!("{} is larger than {max_mib} MiB", at.path.display());
                    self.notices.report(Severity::Error, text);
                }
                Response::Nothing
            }
            SizeAction::Suspend => suspend(Then::Nothing),
            SizeAction::Exec(program) => suspend(Then::Run(program.clone())),

            // auditd does not rotate with fewer than two files.
            SizeAction::Rotate if at.config.num_logs >= 2 => rotate(at.config.num_logs),
            SizeAction::Rotate => Response::Nothing,
            SizeAction::KeepLogs => rotate(rotate::keep_all(at.path)),
        }
    }

    /// Answers a full disk, and free space below `space_left`: once until it recovers, or with
    /// ROTATE again after [`SPACE_ROTATION_BYTES_MIN`]. Call
    /// [`check_admin_space_left`](Self::check_admin_space_left) next.
    pub(super) fn check_space_left(&mut self, space: &Space, at: Situation<'_>) -> Response {
        if space.is_full() {
            return self.disk_full(at);
        }

        // Free space alone does not clear a failed write: a quota of the user may be what is exhausted.
        self.reported.full = self.trouble == WriteTrouble::Full;
        if space.available_bytes >= self.limits.space_left_bytes {
            self.reported.space_left = false;
        } else if !self.reported.space_left {
            let action = &at.config.space_left_action;
            self.reported.space_left = *action != FailureAction::Rotate;
            let text = format!(
                "low on disk space for logging: {} MiB left, space_left is {} MiB",
                space.available_bytes / MIB,
                self.limits.space_left_bytes / MIB
            );
            return self.act_on_space(action, text, at);
        }

        Response::Nothing
    }

    /// Answers free space below `admin_space_left`, unless the disk is full.
    pub(super) fn check_admin_space_left(&mut self, space: &Space, at: Situation<'_>) -> Response {
        if space.is_full() {
            return Response::Nothing;
        }
        if space.available_bytes >= self.limits.admin_space_left_bytes {
            self.reported.admin_space_left = false;
        } else if !self.reported.admin_space_left {
            let action = &at.config.admin_space_left_action;
            self.reported.admin_space_left = *action != FailureAction::Rotate;
            let text = format!(
                "very low on disk space for logging: {} MiB left, admin_space_left is {} MiB",
                space.available_bytes / MIB,
                self.limits.admin_space_left_bytes / MIB
            );
            return self.act_on_space(action, text, at);
        }

        Response::Nothing
    }

    fn act_on_space(
        &mut self,
        action: &FailureAction,
        text: String,
        at: Situation<'_>,
    ) -> Response {
        if matches!(action, FailureAction::Rotate) {
            if self.since_space_rotation_bytes < SPACE_ROTATION_BYTES_MIN {
                return Response::Nothing;
            }
            self.since_space_rotation_bytes = 0;
        }
        if *action != FailureAction::Ignore {
            self.notices.report(Severity::Alert, text.clone());
        }
        self.act(action, text, at)
    }

    /// Answers a full disk, once until space is back. As in auditd, IGNORE still gives a message.
    fn disk_full(&mut self, at: Situation<'_>) -> Response {
        if self.reported.full {
            return Response::Nothing;
        }
        self.reported.full = true;
        let text = format!("{}: no space left for logging", at.path.display());
        self.notices.report(Severity::Alert, text.clone());
        self.act(&at.config.disk_full_action, text, at)
    }

    /// Answers a failing disk.
    fn disk_error(&mut self, call: &str, error: &io::Error, at: Situation<'_>) -> Response {
        let text = format!("{}: {call} failed: {error}", at.path.display());
        let action = &at.config.disk_error_action;
        if *action == FailureAction::Ignore || !at.is_open {
            return Response::Nothing;
        }
        if self.reported.errors < ERROR_MESSAGES_MAX {
            self.reported.errors += 1;
            self.notices.report(Severity::Alert, text.clone());
        }
        self.act(action, text, at)
    }

    /// Carries out the part of an action that is more than a message.
    fn act(&mut self, action: &FailureAction, cause: String, at: Situation<'_>) -> Response {
        let then = match action {
            FailureAction::Ignore | FailureAction::Syslog => return Response::Nothing,
            FailureAction::Email => {
                self.notices.push(OwnerAction::Mail {
                    account: at.config.action_mail_acct.clone(),
                    text: cause,
                });
                return Response::Nothing;
            }
            FailureAction::Rotate => {
                return Response::Rotate {
                    what: "space",
                    keep: at.config.num_logs,
                }
            }
            FailureAction::Suspend => Then::Nothing,
            FailureAction::Exec(program) => Then::Run(program.clone()),
            FailureAction::Single => Then::Change(Runlevel::Single),
            FailureAction::Halt => Then::Change(Runlevel::Halt),
        };

        Response::Suspend { cause, then }
    }

    /// Counts events that do not fit in the buffer, by what keeps the log from being written.
    pub(super) fn lose(&mut self, events: u64, lost: &mut Lost, is_open: bool) {
        let (count, why) = match (is_open, self.trouble) {
            (false, _) => (&mut lost.suspended, "logging is suspended"),
            (true, WriteTrouble::Full) => (&mut lost.disk_full, "the disk is full"),
            (true, _) => (&mut lost.disk_error, "the log cannot be written"),
        };
        *count += events;
        if !self.reported.losses {
            self.reported.losses = true;
            let text = format!("events are being lost: {why} and the buffer is full");
            self.notices.report(Severity::Alert, text);
        }
    }
}

fn size_action_changes_file(config: &Config) -> bool {
    config.max_log_file_mib > 0
        && match config.max_log_file_action {
            SizeAction::Ignore | SizeAction::Syslog => false,
            SizeAction::Rotate => config.num_logs >= 2,
            SizeAction::Suspend | SizeAction::KeepLogs | SizeAction::Exec(_) => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/var/log/audit/audit.log";

    fn config() -> Config {
        Config {
            num_logs: 5,
            ..Config::default()
        }
    }

    fn at(config: &Config) -> Situation<'_> {
        Situation {
            config,
            path: Path::new(PATH),
            size_bytes: 0,
            is_open: true,
        }
    }

    fn responses() -> Responses {
        Responses::new(Limits {
            space_left_bytes: 100 * MIB,
            admin_space_left_bytes: 10 * MIB,
        })
    }

    fn available(mib: u64) -> Space {
        Space {
            total_bytes: 1000 * MIB,
            available_bytes: mib * MIB,
            available_blocks: mib * 256,
        }
    }

    fn suspend(cause: &str, then: Then) -> Response {
        let cause = cause.to_owned();
        Response::Suspend { cause, then }
    }

    fn full() -> io::Error {
        io::Error::from_raw_os_error(libc::ENOSPC)
    }

    fn broken() -> io::Error {
        io::Error::from_raw_os_error(libc::EIO)
    }

    #[test]
    fn each_failure_action_has_its_response() {
        let cause = format!("{PATH}: no space left for logging");
        let cases = [
            (FailureAction::Ignore, Response::Nothing, 0),
            (FailureAction::Syslog, Response::Nothing, 0),
            (FailureAction::Email, Response::Nothing, 1),
            (
                FailureAction::Rotate,
                Response::Rotate {
                    what: "space",
                    keep: 5,
                },
                0,
            ),
            (FailureAction::Suspend, suspend(&cause, Then::Nothing), 0),
            (
                FailureAction::Exec("/bin/x".into()),
                suspend(&cause, Then::Run("/bin/x".into())),
                0,
            ),
            (
                FailureAction::Single,
                suspend(&cause, Then::Change(Runlevel::Single)),
                0,
            ),
            (
                FailureAction::Halt,
                suspend(&cause, Then::Change(Runlevel::Halt)),
                0,
            ),
        ];
        for (disk_full_action, expected, mails) in cases {
            let config = Config {
                disk_full_action,
                ..config()
            };
            let mut responses = responses();
            assert_eq!(responses.write_failed(&full(), at(&config)), expected);
            // A full disk is reported even with IGNORE.
            let actions = responses.notices().take();
            assert_eq!(actions.len(), 1 + mails, "{actions:?}");
            assert_eq!(actions[0].to_string(), cause);
        }
    }

    #[test]
    fn a_full_disk_is_answered_again_only_after_a_write_and_with_room() {
        let config = Config {
            disk_full_action: FailureAction::Suspend,
            space_left_action: FailureAction::Ignore,
            ..config()
        };
        let mut responses = responses();
        let is_answered = |responses: &mut Responses| {
            responses.write_failed(&full(), at(&config)) != Response::Nothing
        };
        assert!(is_answered(&mut responses));
        assert!(!is_answered(&mut responses));
        // There is space for others, but the journal's own writes still fail.
        let _ = responses.check_space_left(&available(500), at(&config));
        assert!(!is_answered(&mut responses));
        responses.write_succeeded();
        let _ = responses.check_space_left(&available(500), at(&config));
        assert!(is_answered(&mut responses));
    }

    #[test]
    fn low_space_is_answered_once_and_by_rotation_after_each_mib() {
        let config = Config {
            space_left_action: FailureAction::Rotate,
            admin_space_left_action: FailureAction::Suspend,
            ..config()
        };
        let rotate = Response::Rotate {
            what: "space",
            keep: 5,
        };
        let mut responses = responses();
        let low = available(9);
        assert_eq!(responses.check_space_left(&low, at(&config)), rotate);
        let cause = "very low on disk space for logging: 9 MiB left, admin_space_left is 10 MiB";
        assert_eq!(
            responses.check_admin_space_left(&low, at(&config)),
            suspend(cause, Then::Nothing)
        );
        responses.note_written(MIB - 1);
        for _ in 0..2 {
            let both = [
                responses.check_space_left(&low, at(&config)),
                responses.check_admin_space_left(&low, at(&config)),
            ];
            assert_eq!(both, [Response::Nothing, Response::Nothing]);
        }
        responses.note_written(1);
        assert_eq!(responses.check_space_left(&low, at(&config)), rotate);
        let enough = available(10);
        let _ = responses.check_admin_space_left(&enough, at(&config));
        let again = responses.check_admin_space_left(&low, at(&config));
        assert_ne!(again, Response::Nothing);
    }

    #[test]
    fn a_failed_rotation_is_not_tried_again_within_the_commit() {
        let config = Config {
            max_log_file_mib: 1,
            max_log_file_action: SizeAction::Rotate,
            disk_error_action: FailureAction::Syslog,
            ..config()
        };
        let error = RotateError {
            path: PATH.into(),
            call: "rename to",
            target: "audit.log.1".into(),
            source: broken(),
        };
        let mut responses = responses();
        assert_eq!(responses.bytes_until_size_action(at(&config)), Some(MIB));
        let response = responses.rotate_failed("size", &error, at(&config));
        assert_eq!(response, Response::Nothing);
        assert!(!responses.may_rotate(5) && !responses.is_untroubled());
        assert_eq!(responses.bytes_until_size_action(at(&config)), None);
        responses.begin_commit();
        assert!(responses.may_rotate(5) && !responses.may_rotate(1));
        assert_eq!(responses.bytes_until_size_action(at(&config)), Some(MIB));
    }

    #[test]
    fn a_failing_disk_is_said_five_times_in_a_row_and_not_after_suspension() {
        let config = Config {
            disk_error_action: FailureAction::Syslog,
            ..config()
        };
        let mut responses = responses();
        let reported = |responses: &mut Responses, is_open| {
            let at = Situation {
                is_open,
                ..at(&config)
            };
            for _ in 0..10 {
                let _ = responses.write_failed(&broken(), at);
            }
            responses.notices().take().len()
        };
        assert_eq!(reported(&mut responses, true), 5);
        assert_eq!(reported(&mut responses, true), 0);
        responses.write_succeeded();
        assert_eq!(reported(&mut responses, false), 0);
        assert_eq!(reported(&mut responses, true), 5);
    }

    #[test]
    fn losses_are_counted_by_cause_and_said_once() {
        let config = config();
        let mut responses = responses();
        let mut lost = Lost::default();
        responses.lose(1, &mut lost, false);
        responses.lose(2, &mut lost, true);
        let _ = responses.write_failed(&full(), at(&config));
        responses.lose(4, &mut lost, true);
        let expected = Lost {
            suspended: 1,
            disk_error: 2,
            disk_full: 4,
            closed: 0,
        };
        assert_eq!(lost, expected);
        let actions = responses.notices().take();
        let losses = actions.iter().filter(|a| a.to_string().contains("lost"));
        assert_eq!(losses.count(), 1);
    }
}
