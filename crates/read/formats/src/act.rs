//! What an event can be about: one row for each act, with its word and its place in ECS and OCSF.

/// An act as the schemas see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// `event.action` of ECS, and `activity_name` of OCSF where the schema has no number.
    pub(crate) name: &'static str,
    /// `event.category`; empty: none fits.
    pub(crate) category: &'static str,
    /// `event.type`: those that go with the category.
    pub(crate) types: &'static [&'static str],
    /// `class_uid` of OCSF.
    pub(crate) class: u32,
    /// `activity_id` of OCSF.
    pub(crate) activity: u32,
    /// `severity_id` of OCSF.
    pub(crate) severity: u32,
}

const BASE: u32 = 0;
const FILE: u32 = 1001;
const KERNEL: u32 = 1003;
const MODULE: u32 = 1005;
const PROCESS: u32 = 1007;
const EVENT_LOG: u32 = 1008;
const FINDING: u32 = 2004;
const ACCOUNT: u32 = 3001;
const AUTHENTICATION: u32 = 3002;
const GROUP: u32 = 3006;
const NETWORK: u32 = 4001;
const CONFIG: u32 = 5019;
const APPLICATION: u32 = 6002;

macro_rules! acts {
    ($($act:ident $name:literal, $category:literal $types:tt, $class:ident $activity:literal, $severity:literal;)*) => {
        /// Act that an event reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub(crate) enum Act { $($act),* }

        const ROWS: &[Row] = &[$(Row {
            name: $name, category: $category, types: &$types,
            class: $class, activity: $activity, severity: $severity,
        }),*];
    };
}

#[rustfmt::skip]
acts! {
    // Processes.
    Execute "executed", "process" ["start"], PROCESS 1, 1;
    Command "ran-command", "process" ["start"], PROCESS 1, 1;
    Fork "forked", "process" ["start"], PROCESS 1, 1;
    Exit "ended", "process" ["end"], PROCESS 2, 1;
    Crash "crashed-program", "process" ["end"], PROCESS 2, 3;
    Signal "killed-pid", "process" ["info"], PROCESS 99, 1;
    Trace "traced-process", "process" ["info"], PROCESS 99, 1;
    ChangeUser "changed-identity-of", "process" ["change"], PROCESS 5, 1;
    ChangeGroup "changed-group-identity-of", "process" ["change"], PROCESS 99, 1;
    Capabilities "changed-capabilities", "process" ["change"], PROCESS 99, 1;
    Confine "changed-sandbox", "process" ["change"], PROCESS 99, 1;
    Terminal "typed", "process" ["info"], PROCESS 99, 1;
    // Files.
    Open "opened-file", "file" ["access"], FILE 14, 1;
    Create "created-file", "file" ["creation"], FILE 1, 1;
    Delete "deleted", "file" ["deletion"], FILE 4, 1;
    Rename "renamed", "file" ["change"], FILE 5, 1;
    Link "linked", "file" ["creation"], FILE 1, 1;
    Mode "changed-file-permissions-of", "file" ["change"], FILE 7, 1;
    Owner "changed-file-ownership-of", "file" ["change"], FILE 7, 1;
    Xattr "changed-file-attributes-of", "file" ["change"], FILE 6, 1;
    Times "changed-timestamp-of", "file" ["change"], FILE 6, 1;
    Truncate "changed-size-of", "file" ["change"], FILE 3, 1;
    Look "checked-metadata-of", "file" ["info"], FILE 8, 1;
    Measure "measured-file", "file" ["info"], FILE 8, 1;
    Mount "mounted", "host" ["change"], FILE 12, 1;
    Unmount "unmounted", "host" ["change"], FILE 13, 1;
    // Network.
    Connect "connected-to", "network" ["connection", "start"], NETWORK 1, 1;
    Accept "accepted-connection-from", "network" ["connection", "start"], NETWORK 1, 1;
    Bind "bound-socket", "network" ["info"], NETWORK 99, 1;
    Send "sent-to", "network" ["info"], NETWORK 6, 1;
    Receive "received-from", "network" ["info"], NETWORK 6, 1;
    Packet "filtered-packet", "network" ["info"], NETWORK 6, 1;
    CryptoSession "negotiated-crypto-session", "network" ["info"], NETWORK 1, 1;
    CryptoSessionEnd "ended-crypto-session", "network" ["end"], NETWORK 2, 1;
    CryptoKey "changed-crypto-key", "network" ["info"], NETWORK 99, 1;
    // The kernel.
    Load "loaded-kernel-module", "driver" ["start"], MODULE 1, 2;
    Unload "unloaded-kernel-module", "driver" ["end"], MODULE 2, 2;
    Bpf "used-bpf", "process" ["info"], KERNEL 4, 1;
    Clock "changed-system-time", "host" ["change"], KERNEL 4, 1;
    Call "called", "process" ["info"], KERNEL 4, 1;
    // Refusals, and what the same mechanisms let pass.
    Denied "violated-mandatory-access-policy", "intrusion_detection" ["denied"], KERNEL 4, 3;
    Permitted "allowed-by-mandatory-access-policy", "intrusion_detection" ["allowed"], KERNEL 4, 1;
    PolicyError "caused-mandatory-access-error", "intrusion_detection" ["info"], KERNEL 4, 2;
    Seccomp "violated-seccomp-policy", "intrusion_detection" ["denied"], KERNEL 4, 3;
    SeccompLogged "logged-by-seccomp-policy", "intrusion_detection" ["allowed"], KERNEL 4, 1;
    SeccompAsked "referred-by-seccomp-policy", "intrusion_detection" ["info"], KERNEL 4, 1;
    Integrity "violated-integrity-policy", "intrusion_detection" ["info"], KERNEL 99, 3;
    Verified "passed-integrity-policy", "file" ["info"], KERNEL 99, 1;
    Check "checked-access", "intrusion_detection" ["info"], KERNEL 99, 1;
    Anomaly "reported-anomaly", "intrusion_detection" ["info"], FINDING 1, 3;
    LoginAnomaly "reported-login-anomaly", "intrusion_detection" ["info"], FINDING 1, 3;
    AccountAnomaly "reported-account-anomaly", "intrusion_detection" ["info"], FINDING 1, 3;
    Promiscuous "changed-promiscuous-mode", "configuration" ["change"], FINDING 1, 2;
    Response "responded-to-anomaly", "intrusion_detection" ["info"], FINDING 2, 2;
    AccountResponse "responded-to-login-anomaly", "intrusion_detection" ["info"], FINDING 2, 2;
    CryptoFailure "failed-crypto-operation", "intrusion_detection" ["info"], FINDING 1, 3;
    // Settings.
    MacStatus "changed-mandatory-access-status", "configuration" ["change"], CONFIG 1, 2;
    MacPolicy "loaded-mandatory-access-policy", "configuration" ["change"], CONFIG 1, 2;
    MacSetting "changed-mandatory-access-setting", "configuration" ["change"], CONFIG 1, 2;
    MacNotice "received-mandatory-access-notice", "configuration" ["info"], CONFIG 1, 1;
    IntegritySetting "changed-integrity-setting", "configuration" ["change"], CONFIG 1, 2;
    NetworkLabel "changed-network-label", "configuration" ["change"], CONFIG 1, 1;
    CryptoSetting "changed-crypto-setting", "configuration" ["change"], CONFIG 1, 1;
    Firewall "changed-firewall", "configuration" ["change"], CONFIG 1, 2;
    Setting "changed-system-configuration", "configuration" ["change"], CONFIG 1, 1;
    Volume "changed-device-mapping", "configuration" ["change"], CONFIG 1, 1;
    Runlevel "changed-runlevel", "host" ["change"], CONFIG 1, 1;
    // Logins.
    Login "logged-in", "authentication" ["start"], AUTHENTICATION 1, 1;
    Logout "logged-out", "authentication" ["end"], AUTHENTICATION 2, 1;
    Authenticate "authenticated", "authentication" ["start"], AUTHENTICATION 99, 1;
    Authorize "was-authorized", "authentication" ["info"], AUTHENTICATION 99, 1;
    LoginError "failed-authentication-step", "authentication" ["info"], AUTHENTICATION 99, 2;
    SessionStart "started-session", "session" ["start"], AUTHENTICATION 1, 1;
    SessionEnd "ended-session", "session" ["end"], AUTHENTICATION 2, 1;
    Credentials "changed-credentials", "authentication" ["info"], AUTHENTICATION 99, 1;
    LoginId "changed-login-id-to", "session" ["info"], AUTHENTICATION 99, 1;
    // Accounts and groups.
    AddUser "added-user-account", "iam" ["user", "creation"], ACCOUNT 1, 1;
    DeleteUser "deleted-user-account", "iam" ["user", "deletion"], ACCOUNT 6, 1;
    ChangeAccount "modified-user-account", "iam" ["user", "change"], ACCOUNT 99, 1;
    LookAtAccount "viewed-user-account", "iam" ["user", "info"], ACCOUNT 99, 1;
    Password "changed-password", "iam" ["user", "change"], ACCOUNT 3, 1;
    Lock "locked-account", "iam" ["user", "change"], ACCOUNT 9, 1;
    Unlock "unlocked-account", "iam" ["user", "change"], ACCOUNT 12, 1;
    Role "changed-role-of", "iam" ["user", "change"], ACCOUNT 99, 1;
    RoleDefinition "modified-role", "iam" ["admin", "change"], CONFIG 1, 1;
    AddGroup "added-group", "iam" ["group", "creation"], GROUP 6, 1;
    DeleteGroup "deleted-group", "iam" ["group", "deletion"], GROUP 5, 1;
    ChangeGroupAccount "modified-group", "iam" ["group", "change"], GROUP 99, 1;
    AddMember "added-user-to-group", "iam" ["group", "change"], GROUP 3, 1;
    RemoveMember "removed-user-from-group", "iam" ["group", "change"], GROUP 4, 1;
    // Services, programs and the machine.
    ServiceStart "started-service", "host" ["start"], APPLICATION 3, 1;
    ServiceStop "stopped-service", "host" ["end"], APPLICATION 4, 1;
    Install "installed-package", "package" ["installation"], APPLICATION 1, 1;
    Remove "removed-package", "package" ["deletion"], APPLICATION 2, 1;
    Update "updated-package", "package" ["change"], APPLICATION 8, 1;
    Software "changed-package", "package" ["info"], APPLICATION 99, 1;
    VmStart "started-virtual-machine", "host" ["start"], APPLICATION 3, 1;
    VmStop "stopped-virtual-machine", "host" ["end"], APPLICATION 4, 1;
    VmCreate "created-virtual-machine", "host" ["change"], APPLICATION 1, 1;
    VmRemove "removed-virtual-machine", "host" ["change"], APPLICATION 2, 1;
    VmChange "changed-virtual-machine", "host" ["change"], APPLICATION 99, 1;
    Boot "booted-system", "host" ["start"], BASE 99, 1;
    Shutdown "shutdown-system", "host" ["end"], BASE 99, 1;
    Device "reported-device", "host" ["info"], BASE 99, 1;
    Export "exported-data", "host" ["info"], BASE 99, 1;
    Test "tested", "host" ["info"], BASE 99, 1;
    // Auditing itself.
    AuditRules "changed-audit-configuration", "configuration" ["change"], EVENT_LOG 99, 2;
    AuditStart "started-audit", "host" ["start"], EVENT_LOG 6, 1;
    AuditStop "shutdown-audit", "host" ["end"], EVENT_LOG 7, 2;
    AuditRotate "rotated-audit-logs", "host" ["info"], EVENT_LOG 5, 1;
    AuditError "audit-error", "host" ["info"], EVENT_LOG 99, 3;
    AuditOther "audit-event", "host" ["info"], EVENT_LOG 99, 1;
    // Anything else.
    Message "logged-message", "" [], BASE 99, 1;
    Other "other", "" [], BASE 99, 1;
}

impl Act {
    /// The act's row.
    pub(crate) fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Whether an account proves who it is, or its session begins or ends.
    pub(crate) fn is_login(self) -> bool {
        use Act::*;
        matches!(
            self,
            Login
                | Logout
                | Authenticate
                | Authorize
                | LoginError
                | SessionStart
                | SessionEnd
                | Credentials
                | LoginId
                | LoginAnomaly
        )
    }

    /// Whether the act changes an account.
    pub(crate) fn is_of_account(self) -> bool {
        use Act::*;

        matches!(
            self,
            AddUser
                | DeleteUser
                | ChangeAccount
                | LookAtAccount
                | Password
                | Lock
                | Unlock
                | Role
                | AccountResponse
                | AccountAnomaly
        )
    }

    /// Whether the act changes a group.
    pub(crate) fn is_of_group(self) -> bool {
        use Act::*;
        matches!(
            self,
            AddGroup | DeleteGroup | ChangeGroupAccount | AddMember | RemoveMember
        )
    }
}
