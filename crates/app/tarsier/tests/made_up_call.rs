//! A system call that no kernel has, added to the table of calls and nowhere else: rules name it, the plan prices it, its
//! frames become records, and searches interpret these and have a word for it.

#[allow(dead_code)] // the fuzzer uses all of it
#[path = "../../../../fuzz/src/composing.rs"]
mod composing;

use abi::{Arch, ByFlag, CallRow, EmptyPath, NameUse, PathArg, Shape, Verb, NONE};
use plan::{Capabilities, Entry, Identities, Plan};
use query::{
    Assembler, Columns, Dialect, Escape, Extra, Interpreted, Interpreter, MachineNames, TimeRange,
};
use record::wire::{tarsier_event, Event};
use std::mem::offset_of;
use std::path::Path;

/// `set_colour(path, flags)`: a link at the end is followed unless the flags have AT_SYMLINK_NOFOLLOW.
const SET_COLOUR: CallRow = CallRow {
    name: "set_colour",
    shape: Shape {
        paths: [
            Some(PathArg {
                path: 0,
                dir: NONE,
                use_: NameUse::Lookup,
                follow: ByFlag::unless(1, 0x100),
                empty: EmptyPath::PLAIN,
            }),
            None,
        ],
        ..Shape::PLAIN
    },
    verb: Some(Verb::SetMode),
    ..CallRow::UNKNOWN
};

/// A number that no kernel has given to a call.
const NUMBER: u32 = 900;

fn rules(line: &str) -> Vec<rules::Rule> {
    let host = rules::StaticHost::new(Arch::X86_64);
    let parsed = rules::parse_text(rules::Dialect::default(), "made up", line, &host);
    let set = rules::RuleSet::build(parsed).expect("the rule is right");
    set.rules
}

fn plan_of(line: &str) -> Plan {
    let capabilities = Capabilities::assumed(Arch::X86_64);
    Plan::new(&rules(line), &capabilities, &Identities::default(), 1).expect("a plan")
}

/// A successful chmod(2) as the programs in the kernel sent it, made a call of `number`.
fn frame(number: u32) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds");
    let seed = std::fs::read(root.join("frame_to_records/files")).expect("the fuzzer's seed");
    let is_chmod = |frame: &Vec<u8>| {
        let event = Event::parse(frame).expect("a whole frame");
        let name = abi::syscall_name(Arch::X86_64, event.call_number());
        name == Some("chmod") && event.exit() == Some(0)
    };
    let frames = composing::frames(&seed[1..]);
    let mut frame = frames.into_iter().find(is_chmod).expect("a chmod");
    let at = offset_of!(tarsier_event, nr);
    frame[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    frame
}

/// The records of the frame, as lines of a log.
fn lines(frame: &[u8]) -> String {
    let lines = composing::composed(&mut composing::composer(0), frame);
    String::from_utf8(lines).expect("lines of ASCII")
}

/// What `search -i` and `--format csv` print of a log.
fn printed(log: &str) -> (String, String) {
    let mut assembler = Assembler::new(Dialect::Own, 2, TimeRange::default());
    for line in log.split_inclusive('\n') {
        assembler.add(line.as_bytes());
    }
    assembler.finish();

    let event = assembler.pop().expect("an event");
    let interpreter = Interpreter::new(Dialect::Own, Escape::Raw, MachineNames::none());
    let (mut interpreted, mut columns) = (Vec::new(), Vec::new());
    Interpreted::new(true).write(&event, &interpreter, &mut interpreted);
    Columns::new(Extra::default()).write(&event, &interpreter, &mut columns);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(interpreted), text(columns))
}

#[test]
fn a_call_in_the_table_is_known_everywhere() {
    let line = "-a always,exit -F arch=b64 -S set_colour -F path=/etc/passwd -k colour";
    let host = rules::StaticHost::new(Arch::X86_64);
    let before = rules::parse_text(rules::Dialect::default(), "made up", line, &host);
    assert!(rules::RuleSet::build(before).is_err(), "not yet known");

    abi::add_call(SET_COLOUR, &[(Arch::X86_64, NUMBER)]);

    // The plan watches it like other calls with a path, and prices it so.
    let plan = plan_of(line);
    let call = (Entry::Native, NUMBER);
    assert_eq!(plan.calls[&call].shape, SET_COLOUR.shape);
    let chmod = plan_of(&line.replace("set_colour", "chmod"));
    let (known, _) = chmod.calls.first_key_value().expect("one call");
    let price = |plan: &Plan, call| {
        let predicted = plan::predict(plan, &[(call, 1e3)].into(), 50.0, false);
        predicted.calls[0].clone()
    };
    let (own, other) = (price(&plan, call), price(&chmod, *known));
    assert_eq!(own.name, "set_colour");
    assert!(own.is_watched && own.ns > 0.0 && own.ns == other.ns);

    // Its records are those of a known call, with its number.
    let (log, known) = (lines(&frame(NUMBER)), lines(&frame(90)));
    assert_eq!(log, known.replace("syscall=90 ", "syscall=900 "));
    // The fuzzer's rules leave CWD out.
    let has_name = log.contains("type=PATH") && log.contains("name=\"new\"");
    assert!(has_name && log.contains("syscall=900 "), "{log}");

    let (interpreted, columns) = printed(&log);
    assert!(interpreted.contains("syscall=set_colour "), "{interpreted}");
    assert!(
        columns.contains(",changed-file-permissions-of,"),
        "{columns}"
    );
}
