//! Calls on the whole system: its modules, its clock, its name, its limits.

use super::row;
use crate::calls::row::CallRow;
use crate::calls::{Argument, NameUse, ObjectClass::Time, ShapeKind, Verb, NONE};

const ADJUSTS: [&str; 3] = ["do_adjtimex", "__do_adjtimex", "ntp_adjtimex"];
const SETS: [&str; 1] = ["do_settimeofday64"];

/// CLOCK_REALTIME as the first argument: the other clocks are not the host's.
const REALTIME: Argument = Argument {
    index: 0,
    is_mask: false,
    value: 0,
};

const fn sets_clock(name: &'static str) -> CallRow {
    row(name).hooks(Time, &SETS).verb(Verb::SetClock)
}

const fn adjusts_clock(name: &'static str) -> CallRow {
    row(name).hooks(Time, &ADJUSTS).verb(Verb::SetClock)
}

pub(super) const ROWS: &[CallRow] = &[
    row("init_module")
        .kind(ShapeKind::Module)
        .verb(Verb::LoadModule),
    row("finit_module")
        .kind(ShapeKind::Module)
        .verb(Verb::LoadModule),
    row("delete_module").module(0).verb(Verb::UnloadModule),
    row("kexec_load").verb(Verb::LoadKernel),
    // kexec_load in the table of i386, which knows that name too.
    row("sys_kexec_load"),
    row("kexec_file_load").verb(Verb::LoadKernel),
    // BPF_OBJ_PIN and BPF_OBJ_GET have a path in memory.
    row("bpf")
        .kind(ShapeKind::Bpf)
        .path(NONE, NameUse::Lookup)
        .verb(Verb::UseBpf),
    sets_clock("settimeofday"),
    adjusts_clock("adjtimex"),
    sets_clock("stime"),
    sets_clock("clock_settime").verb_by(Verb::SetClock, REALTIME),
    adjusts_clock("clock_adjtime")
        .verb_by(Verb::SetClock, REALTIME)
        .wordless(),
    sets_clock("clock_settime64").verb_by(Verb::SetClock, REALTIME),
    adjusts_clock("clock_adjtime64")
        .verb_by(Verb::SetClock, REALTIME)
        .wordless(),
    row("sethostname").verb(Verb::SetHostName),
    row("setdomainname").verb(Verb::SetHostName),
    row("add_key").verb(Verb::UseKeys),
    row("request_key").verb(Verb::UseKeys),
    row("keyctl").verb(Verb::UseKeys),
];
