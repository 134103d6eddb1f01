//! The number under which a call is looked up in the tables.
#![cfg(target_arch = "x86_64")]

use capture::{CaptureOptions, EbpfEngine};
use plan::{Capabilities, Identities, Plan};
use rules::{Command, Source, StaticHost};

const HOST: abi::Arch = abi::Arch::X86_64;
/// First argument of the calls that rules select: no open descriptor.
const MARK: i64 = 0x7a52;
/// ioctl(2) as x32 has it.
const X32_IOCTL: i64 = 514;

fn engine(line: &str) -> EbpfEngine {
    let rule = match rules::parse_line(line, &Source::default(), &StaticHost::new(HOST)) {
        Ok(Some(Command::Append(rule))) => rule,
        other => panic!("{line}: {other:?}"),
    };
    let capabilities = Capabilities {
        x32_calls: true,
        ..Capabilities::assumed(HOST)
    };
    let plan = Plan::new(&[rule], &capabilities, &Identities::default(), 1).expect("it fits");
    let options = CaptureOptions::with_ring_bytes(1 << 20);
    // Process 1 is not this one, whose calls are to be seen.
    EbpfEngine::start(&plan, &options, 1).expect("it starts")
}

/// Numbers of this process's calls that were recorded: as given, and as the tables have them.
fn recorded(engine: &mut EbpfEngine) -> Vec<(i64, u32)> {
    let mut numbers = Vec::new();
    engine.drain(u64::MAX, |_, frame| {
        let event = record::wire::Event::parse(frame).expect("a whole event");
        if event.header().pid == std::process::id() {
            numbers.push((event.header().nr.into(), event.call_number()));
        }
        true
    });
    numbers
}

/// A call by this number, in a register of 64 bits.
fn call(number: i64) {
    let result: i64;
    // SAFETY: ioctl(2) and close(2) of a descriptor that is not open touch no memory.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") MARK, in("rsi") 0, in("rdx") 0,
            out("rcx") _, out("r11") _,
        );
    }
    assert!(result < 0, "{number:#x}: {result}");
}

#[test]
fn the_programs_have_the_twins_that_abi_has() {
    let header = include_str!("../../bpf/programs/number.h");
    let (_, table) = header.split_once("x32_twins[] = {").expect("the table");
    let (table, _) = table.split_once('}').expect("its end");
    let numbers = table.split(',').map(str::trim).filter(|n| !n.is_empty());
    let numbers: Vec<u32> = numbers.map(|n| n.parse().expect("a number")).collect();
    assert_eq!(numbers, abi::x32_twins().collect::<Vec<_>>());
}

#[test]
fn a_call_is_known_by_the_low_half_of_its_number_or_by_its_twin() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let line = format!("-a always,exit -F arch=b64 -S ioctl,close -F a0={MARK}");
    let mut engine = engine(&line);
    let x32 = i64::from(abi::X32_BIT);
    let (ioctl, close) = (libc::SYS_ioctl, libc::SYS_close);
    engine.assume_x32(false);
    call(ioctl | 1 << 32);
    call(close | -1 << 32);
    // Without the calls of x32 this number is that of none.
    call(close | x32);
    assert_eq!(
        recorded(&mut engine),
        [(ioctl, ioctl as u32), (close, close as u32)]
    );
    engine.assume_x32(true);
    call(close | x32);
    call(X32_IOCTL | x32 | 7 << 40);
    call((X32_IOCTL + 100) | x32);
    assert_eq!(
        recorded(&mut engine),
        [(close | x32, close as u32), (X32_IOCTL | x32, ioctl as u32)]
    );
}
