//! Events of one record: who did what, by the type of the record.

use super::cursor::Place;
use super::normal::Finder;
use super::thing::Thing;
use super::verbs;
use crate::Dialect;
use abi::record_type as kinds;

impl Finder<'_, '_> {
    /// Finds the parts of an event of one record.
    pub(super) fn simple(&mut self) {
        let kind = self.cursor.kind();
        self.normal.kind = Some(verbs::group(kind, self.interpreter.dialect()));
        match kind as u32 {
            kinds::CONFIG_CHANGE
            | kinds::FEATURE_CHANGE
            | kinds::SECCOMP
            | kinds::ANOM_ABEND
            | kinds::ANOM_PROMISCUOUS => self.of_kernel(kind),
            kinds::LOGIN => self.login(kind),
            kinds::NETFILTER_CFG => self.firewall(),
            kinds::AVC => self.access(kind),
            1200..=1298 => self.of_daemon(kind),
            kinds::BPF => {
                self.normal.account = Some("system");
                let action = self.bpf_action();
                self.act(action);
                self.normal.thing = Thing::Process;
                self.program();
            }
            kinds::EVENT_LISTENER => self.listener(),
            1406..=1499 => self.labelled_network(kind),
            _ => self.of_user_space(kind),
        }
    }

    fn how_is(&mut self, name: &[u8]) -> bool {
        let found = self.cursor.find(name).is_some();
        if found {
            self.normal.how = Some(self.meaning());
        }
        found
    }

    /// Process and label of the subject.
    fn subject_fields(&mut self) {
        if self.has_fields {
            self.cursor.rewind();
            self.subject_field(b"pid", 0);
            self.subject_field(b"subj", 0);
        }
    }

    fn acting_or_rewind(&mut self) {
        if !self.acting(b"uid", 0) {
            self.cursor.rewind();
        }
    }

    /// Records of the kernel that begin with the login id.
    fn of_kernel(&mut self, kind: i32) {
        self.subject(b"auid", 0);
        self.session(0);
        self.subject_fields();
        if kind == kinds::CONFIG_CHANGE as i32 {
            self.configuration(kind);
        } else {
            self.act_by_kind(kind);
            self.cursor.rewind();
        }
        match kind as u32 {
            kinds::FEATURE_CHANGE => {
                self.cursor.first_field();
                self.acting_or_rewind();
                self.how_is(b"exe");
                self.object(b"feature", 0);
                self.normal.thing = Thing::System;
            }
            kinds::SECCOMP => return self.seccomp(),
            kinds::ANOM_ABEND => {
                self.cursor.first_field();
                self.acting_or_rewind();
                if !self.object(b"exe", 0) {
                    self.cursor.rewind();
                }
                self.normal.thing = Thing::Process;
                self.how_is(b"sig");
            }
            kinds::ANOM_PROMISCUOUS => {
                self.cursor.first_field();
                self.object(b"dev", 0);
                self.acting(b"uid", 0);
                self.normal.thing = Thing::Socket;
            }
            _ => {}
        }
        self.result(0);
    }

    fn configuration(&mut self, kind: i32) {
        self.cursor.first_field();
        let operation = match self.cursor.find(b"op") {
            Some(_) => self.meaning(),
            None => Vec::new(),
        };
        let operation = operation.strip_prefix(b"\"").unwrap_or(&operation);
        let action = match operation {
            _ if operation.starts_with(b"add_rule") => Some("added-audit-rule"),
            _ if operation.starts_with(b"remove_rule") => Some("deleted-audit-rule"),
            _ => None,
        };
        match action {
            Some(action) => {
                self.act(action);
                self.normal.object = self.simple_object(kind);
            }
            None => {
                self.act_by_kind(kind);
                self.normal.object = self.simple_object(kind);
                self.cursor.rewind();
            }
        }
    }

    fn seccomp(&mut self) {
        self.cursor.first_field();
        self.acting_or_rewind();
        self.how_is(b"exe");
        if !self.object(b"syscall", 0) {
            self.cursor.rewind();
        }
        self.normal.thing = Thing::Process;
        if let Some(place) = self.find_in(b"code", 0) {
            self.normal.result = Some(place);
        }
    }

    fn login(&mut self, kind: i32) {
        self.acting_or_rewind();
        self.subject_fields();
        if !self.subject(b"old-auid", 0) {
            self.cursor.rewind();
        }
        if !self.object(b"auid", 0) {
            self.cursor.rewind();
        }
        self.normal.thing = Thing::UserSession;
        self.session(0);
        self.result(0);
        self.act_by_kind(kind);
    }

    fn firewall(&mut self) {
        self.subject_fields();
        self.how_is(b"comm");
        self.act("loaded-firewall-rule-to");
        self.cursor.rewind();
        if let Some(place) = self.find_place(b"table") {
            self.normal.object = Some(place);
        }
        self.normal.account = Some("system");
        self.normal.thing = Thing::Firewall;
    }

    /// A decision of SELinux without its call.
    fn access(&mut self, kind: i32) {
        if !self.how_is(b"comm") {
            self.cursor.rewind();
        }
        self.subject(b"scontext", 0);
        self.normal.account = Some("unknown-acct");
        self.cursor.rewind();
        // Sentences leave the object out.
        if self.has_fields {
            self.object(b"tcontext", 0);
            self.cursor.rewind();
        }
        self.act_by_kind(kind);
        self.cursor.rewind();
        if let Some(place) = self.find_in(b"seresult", 0) {
            self.normal.result = Some(place);
        }
    }

    fn of_daemon(&mut self, kind: i32) {
        self.subject(b"auid", 0);
        self.acting_or_rewind();
        if !self.session(0) {
            self.cursor.rewind();
        }
        self.subject_fields();
        self.normal.account = Some("auditd");
        self.act_by_kind(kind);
        self.normal.thing = Thing::Service;
        match kind as u32 {
            kinds::DAEMON_START => self.normal.how = Some(b"init".to_vec()),
            kinds::DAEMON_ABORT => {}
            1201 | 1203..=1206 => self.normal.how = Some(b"signal".to_vec()),
            _ => {}
        }
        self.result(0);
    }

    fn listener(&mut self) {
        self.subject(b"auid", 0);
        self.cursor.rewind();
        self.acting(b"uid", 0);
        self.cursor.rewind();
        self.session(0);
        self.subject_fields();
        let action = self.listener_action();
        self.act(action);
        self.program();
        self.normal.thing = Thing::Socket;
        self.cursor.rewind();
        self.how_is(b"exe");
        self.cursor.rewind();
        self.result(0);
    }

    fn labelled_network(&mut self, kind: i32) {
        self.subject(b"auid", 0);
        // There is no user, so that it is the login id.
        self.account();
        self.session(0);
        self.subject_field(b"subj", 0);
        match kind {
            1406 => match self.cursor.find(b"unlbl_accept") {
                Some(_) if self.cursor.number() == Some(1) => {
                    self.act("is-allowing-unlabeled-network-traffic");
                }
                Some(_) => self.act("is-disallowing-unlabeled-network-traffic"),
                None => self.cursor.rewind(),
            },
            _ => self.act_by_kind(kind),
        }
        if matches!(kind, 1409 | 1410) && !self.object(b"nlbl_domain", 0) {
            self.cursor.rewind();
        }
        self.normal.thing = Thing::Policy;
        self.result(0);
    }

    /// Messages of user space: the user stands before the login id.
    fn of_user_space(&mut self, kind: i32) {
        if kind == kinds::USER_LOGIN as i32 {
            // Who fails to log in has no login id.
            if self.subject(b"id", 0) {
                self.account();
            } else {
                self.cursor.rewind();
                if self.subject(b"acct", 0) {
                    self.account();
                }
            }
            self.cursor.rewind();
        } else {
            self.acting_or_rewind();
            self.subject(b"auid", 0);
        }
        self.session(0);
        self.subject_fields();
        if matches!(kind, 1100..=1198 | 2100..=2998) && self.has_fields {
            self.subject_field(b"hostname", 0);
            self.subject_field(b"addr", 0);
            if !matches!(kind, 1105 | 1106 | 1109) {
                self.subject_field(b"terminal", 0);
            }
        }
        match kind as u32 {
            kinds::USER_AVC => self.user_access(),
            _ => self.result(0),
        }
        let operation = match kind {
            // USER_DEVICE
            1137 => self.cursor.find_anywhere(b"op"),
            _ => None,
        };
        match operation {
            Some(operation) => self.normal.action = Some(operation.to_vec()),
            None => self.act_by_kind(kind),
        }
        if kind != kinds::USER_AVC as i32 {
            self.cursor.rewind();
            self.normal.object = self.simple_object(kind);
            self.normal.object_detail = self.simple_detail(kind);
            self.normal.second = self.simple_second(kind);
        }
        self.how_of_user_space(kind);
    }

    fn user_access(&mut self) {
        self.cursor.rewind();
        if let Some(place) = self.find_in(b"seresult", 0) {
            self.normal.result = Some(place);
        }
        self.cursor.rewind();
        self.subject(b"scontext", 0);
        if self.has_fields {
            self.cursor.rewind();
            self.object(b"tcontext", 0);
        }
    }

    fn how_of_user_space(&mut self, kind: i32) {
        match kind {
            // SYSTEM_BOOT and SYSTEM_SHUTDOWN
            1127 | 1128 => {
                self.normal.thing = match kind {
                    1127 => Thing::System,
                    _ => Thing::Service,
                };
                self.how_is(b"exe");
                return;
            }
            _ => self.cursor.rewind(),
        }
        match kind {
            // ANOM_EXEC
            2112 => {
                self.how_is(b"terminal");
            }
            1319 => {
                self.how_is(b"comm");
            }
            _ => {
                self.how();
            }
        }
    }

    /// The object of a record, by its type.
    pub(super) fn simple_object(&mut self, kind: i32) -> Option<Place> {
        self.cursor.first_field();
        let (name, thing): (&[u8], Thing) = match kind {
            1130 | 1131 => (b"unit", Thing::Service),
            1129 => (b"new-level", Thing::System),
            2300 => (b"selected-context", Thing::UserSession),
            2301 | 2302 | 1102 | 1135 | 1136 | 1114..=1117 | 1132 => return self.account_object(),
            1105 | 1106 | 1109 | 1112 | 1113 => (b"terminal", Thing::UserSession),
            1100 | 1101 | 1103 | 1104 | 1108 | 1110 | 1133 | 2100..=2102 | 2104 => {
                (b"acct", Thing::UserSession)
            }
            2112 | 1123 => (b"cmd", Thing::Process),
            1124 | 1319 => (b"data", Thing::Keystrokes),
            1137 => (b"device", Thing::Keystrokes),
            1138 => (b"sw", Thing::Software),
            2502 => (b"vm", Thing::VirtualMachine),
            2501 => (b"resrc", Thing::VirtualMachine),
            2500 => (b"op", Thing::VirtualMachine),
            2304 => (b"printer", Thing::Printer),
            1305 => return self.configuration_object(),
            1405 => (b"bool", Thing::Policy),
            1404 => (b"enforcing", Thing::Policy),
            1403 | 2303 | 2307..=2312 => {
                self.normal.thing = Thing::Policy;
                return None;
            }
            1005 => (b"addr", self.normal.thing),
            1111 => {
                if self.cursor.find(b"op").is_some() {
                    self.normal.action = Some(self.meaning());
                }
                self.normal.thing = Thing::System;
                return None;
            }
            2404 => (b"fp", Thing::UserSession),
            2407 => (b"addr", Thing::UserSession),
            2109 => (b"hostname", Thing::FileSystem),
            _ => return None,
        };
        self.normal.thing = thing;
        if matches!(kind, 1124 | 1319 | 1137 | 1138) {
            self.cursor.rewind();
        }
        self.find_in(name, 0)
    }

    fn account_object(&mut self) -> Option<Place> {
        self.normal.thing = Thing::Account;
        match self.find_in(b"id", 0) {
            Some(place) => Some(place),
            None => {
                self.cursor.rewind();
                self.find_in(b"acct", 0)
            }
        }
    }

    /// What a CONFIG_CHANGE changes: a rule, or a setting.
    fn configuration_object(&mut self) -> Option<Place> {
        const SETTINGS: [&[u8]; 6] = [
            b"audit_enabled",
            b"audit_pid",
            b"audit_backlog_limit",
            b"audit_failure",
            b"actions",
            b"list",
        ];
        self.normal.thing = Thing::AuditConfig;
        if self
            .cursor
            .find_anywhere(b"key")
            .is_some_and(|key| key != b"(null)")
        {
            return Some(self.cursor.place_in(0));
        }
        let count = SETTINGS.len() - usize::from(self.interpreter.dialect() == Dialect::Three);
        for name in &SETTINGS[..count] {
            if self.cursor.find_anywhere(name).is_some() {
                return Some(self.cursor.place_in(0));
            }
        }
        None
    }

    fn simple_detail(&mut self, kind: i32) -> Option<Place> {
        self.cursor.first_field();
        match kind {
            2407 => self.find_in(b"rport", 0),
            1138 => self.find_in(b"sw_type", 0),
            _ => None,
        }
    }

    fn simple_second(&mut self, kind: i32) -> Option<Place> {
        self.cursor.first_field();
        match kind {
            2500 | 2501 => self.find_in(b"vm", 0),
            1138 => self.find_in(b"root_dir", 0),
            _ => None,
        }
    }
}
