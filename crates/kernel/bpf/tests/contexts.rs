//! No program reads its context where kernels disagree about the layout of contexts.

use libbpf_rs::ObjectBuilder;
use std::collections::BTreeSet;

/// Programs of these sections get a header of the kernel's tracing (`struct trace_entry`) before the
/// fields. It has 8 bytes in most kernels, 12 in RHEL 9.4, 16 in RHEL 9.3.
const WITH_HEADERS: [&str; 3] = ["tracepoint", "tp/", "perf_event"];

/// Loads of a program from its context: their offsets.
fn loads(insns: &[libbpf_rs::libbpf_sys::bpf_insn]) -> Vec<i16> {
    const CLASS: u8 = 7;
    const LDX: u8 = 1;
    const CALL: u8 = 0x85;
    const MOVE: u8 = 0xbf;
    let mut contexts = BTreeSet::from([1]);
    let mut found = Vec::new();
    for insn in insns {
        let (to, from) = (insn.dst_reg(), insn.src_reg());
        match insn.code {
            CALL => contexts.retain(|register| *register > 5),
            MOVE if contexts.contains(&from) => drop(contexts.insert(to)),
            code if code & CLASS == LDX => {
                found.extend(contexts.contains(&from).then_some(insn.off));
                contexts.remove(&to);
            }
            // Loads of constants and arithmetic, which no context survives.
            code if matches!(code & CLASS, 0 | 4 | 7) => drop(contexts.remove(&to)),
            _ => {}
        }
    }
    found
}

#[test]
fn programs_on_tracepoints_with_headers_do_not_read_their_contexts() {
    let mut names = BTreeSet::new();
    for bytes in [
        &bpf::tarsier()[..],
        bpf::LEARN,
        bpf::DENIED,
        bpf::CALL_COUNTS,
    ] {
        let mut builder = ObjectBuilder::default();
        let object = builder.open_memory(bytes).expect("a good object");
        for program in object.progs() {
            let section = program.section().to_string_lossy().into_owned();
            let name = program.name().to_string_lossy().into_owned();
            let loads = loads(program.insns());
            if WITH_HEADERS
                .iter()
                .any(|prefix| section.starts_with(prefix))
            {
                assert_eq!(loads, [], "{name}: offsets in its context");
                names.insert(name);
            } else if section.starts_with("tp_btf") {
                // Arguments as the kernel's own function for the tracepoint has them.
                assert!(
                    loads.iter().all(|offset| offset % 8 == 0),
                    "{name}: {loads:?}"
                );
            }
        }
    }
    assert_eq!(
        names,
        ["call_entry", "exit_entry", "sys_exit_one"]
            .map(str::to_owned)
            .into()
    );
}

#[test]
fn a_load_through_a_copy_of_the_context_is_found() {
    let insn = |code, to: u8, from: u8, off| {
        let mut insn = libbpf_rs::libbpf_sys::bpf_insn {
            code,
            off,
            ..Default::default()
        };
        insn.set_dst_reg(to);
        insn.set_src_reg(from);
        insn
    };
    // r6 = r1; call; r2 = *(u64 *)(r6 + 16); r1 = *(u64 *)(r1 + 8)
    let program = [
        insn(0xbf, 6, 1, 0),
        insn(0x85, 0, 0, 0),
        insn(0x79, 2, 6, 16),
        insn(0x79, 1, 1, 8),
    ];
    assert_eq!(loads(&program), [16]);
}
