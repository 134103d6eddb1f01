//! Kinds of objects.

/// Kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Thing {
    #[default]
    Unknown,
    Fifo,
    CharacterDevice,
    Directory,
    BlockDevice,
    File,
    FileSystem,
    Link,
    Socket,
    Process,
    Firewall,
    Service,
    Account,
    UserSession,
    VirtualMachine,
    Printer,
    System,
    AuditRule,
    AuditConfig,
    Policy,
    Memory,
    Keystrokes,
    Software,
}

impl Thing {
    /// The name of the kind of object.
    pub(super) fn name(self) -> &'static str {
        match self {
            Thing::Unknown => "unknown",
            Thing::Fifo => "fifo",
            Thing::CharacterDevice => "character-device",
            Thing::Directory => "directory",
            Thing::BlockDevice => "block-device",
            Thing::File => "file",
            Thing::FileSystem => "file-system",
            Thing::Link => "symlink",
            Thing::Socket => "socket",
            Thing::Process => "process",
            Thing::Firewall => "firewall",
            Thing::Service => "service",
            Thing::Account => "account",
            Thing::UserSession => "user-session",
            Thing::VirtualMachine => "virtual-machine",
            Thing::Printer => "printer",
            Thing::System => "system",
            Thing::AuditRule => "admin-defined-rule",
            Thing::AuditConfig => "audit-config",
            Thing::Policy => "security-policy",
            Thing::Memory => "memory",
            Thing::Keystrokes => "keystrokes",
            Thing::Software => "software",
        }
    }
}
