//! Every written form of a filter is read back as the same filter.

mod support;

use seccomp::text::{self, TextError};
use seccomp::{code, Fault, Filter, Insn};
use support::{random_filter, Rng};

#[test]
fn every_form_that_is_written_is_read_back_to_the_same_program() {
    let mut rng = Rng(1);
    for _ in 0..2000 {
        let filter = random_filter(&mut rng, 60, true);
        for written in [
            text::to_hex(&filter),
            text::to_c_array(&filter),
            String::new(),
        ] {
            let bytes = match written.as_str() {
                "" => filter.to_bytes(),
                text => text.as_bytes().to_vec(),
            };
            assert_eq!(text::read(&bytes).unwrap(), filter);
        }
        let asm = text::to_asm(&filter);
        let back = text::assemble(&asm).unwrap();
        assert_eq!(text::to_asm(&back), asm);
        assert_eq!(plain(&back), plain(&filter), "{asm}");
    }
}

/// The instructions, without operands that the kernel ignores.
fn plain(filter: &Filter) -> Vec<Insn> {
    let unused = |code| {
        matches!(
            code,
            code::NEG | code::TAX | code::TXA | code::RET_A | code::LD_LEN | code::LDX_LEN
        )
    };
    let register = |code: u16| code & code::X != 0 && matches!(code & 7, 4 | 5);
    filter
        .insns()
        .iter()
        .map(|&insn| Insn {
            k: if unused(insn.code) || register(insn.code) {
                0
            } else {
                insn.k
            },
            ..insn
        })
        .collect()
}

#[test]
fn assembler_text_of_the_kernels_documentation_is_understood() {
    let filter = text::assemble(
        "/* only getpid */\n\
         ld [4]                  ; offsetof(struct seccomp_data, arch)\n\
         jne #0xc000003e, bad\n\
         ld [0]\n\
         jeq #39, good           /* __NR_getpid */\n\
         bad: ret #0             /* SECCOMP_RET_KILL_THREAD */\n\
         good: ret #0x7fff0000\n",
    )
    .unwrap();
    assert_eq!(
        text::to_hex(&filter),
        "2000000004000000\n150000023e0000c0\n2000000000000000\n1500010027000000\n\
         0600000000000000\n060000000000ff7f\n"
    );
    let listing = text::listing(&filter);
    assert!(
        listing.contains("; x86_64") && listing.contains("; getpid"),
        "{listing}"
    );
}

#[test]
fn errors_of_text_name_line_column_and_expectation() {
    let message = |text: &str| text::read(text.as_bytes()).unwrap_err().to_string();
    for (text, expected) in [
        (
            "ld [0]\nfoo #1\nret #0",
            "line 2, column 1: 'foo'; expected an instruction",
        ),
        (
            "ld [0]\njeq #1, nowhere\nret #0",
            "line 2, column 9: 'nowhere'; expected a label",
        ),
        (
            "l: ld [0]\njmp l\nret #0",
            "line 2, column 5: 'l'; expected a label further down",
        ),
        ("ld 0\nret #0", "line 1, column 4: '0'; expected #k"),
        ("ret", "line 1, column 1: 'ret'; expected one operand"),
        ("zz", "line 1, column 1: 'zz'; expected an instruction"),
        (
            "06 00 0",
            "line 1, column 7: half a byte; expected hex digits",
        ),
        (
            "{ 6, 0, 0, 0 },\n { 6, 0, 300, 0 }",
            "line 2, column 2: '300'; expected { code",
        ),
        (
            "{ 6, 0, 0 }",
            "line 1, column 1: '6, 0, 0'; expected { code",
        ),
    ] {
        let message = message(text);
        assert!(message.starts_with(expected), "{text:?}: {message}");
    }
}

#[test]
fn programs_that_the_kernel_refuses_name_the_instruction_and_the_rule() {
    use code::*;
    let ret = Insn::new(RET_K, 0);
    let cases: [(Vec<Insn>, usize, Fault); 14] = [
        (vec![], 0, Fault::Empty),
        (vec![ret; 4097], 4096, Fault::TooLong(4097)),
        (vec![ret, Insn::new(LD_ABS, 64), ret], 1, Fault::Load(64)),
        (vec![Insn::new(LD_ABS, 2), ret], 0, Fault::Load(2)),
        (vec![Insn::new(0x28, 0), ret], 0, Fault::Code(0x28)),
        (vec![Insn::new(0x94, 3), ret], 0, Fault::Code(0x94)),
        (vec![Insn::new(0x40, 0), ret], 0, Fault::Code(0x40)),
        (vec![Insn::new(DIV, 0), ret], 0, Fault::DivideByZero),
        (vec![Insn::new(LSH, 32), ret], 0, Fault::Shift(32)),
        (vec![Insn::new(ST, 16), ret], 0, Fault::Scratch(16)),
        (vec![Insn::new(LD_MEM, 3), ret], 0, Fault::Unset(3)),
        (
            vec![Insn::jump(JEQ, 0, 0, 1), ret],
            0,
            Fault::Jump { target: 2, last: 1 },
        ),
        (
            vec![Insn::new(JA, u32::MAX), ret],
            0,
            Fault::Jump {
                target: 0x1_0000_0000,
                last: 1,
            },
        ),
        (vec![Insn::new(LD_ABS, 0)], 0, Fault::NoReturn),
    ];
    for (insns, at, fault) in cases {
        let invalid = Filter::new(insns).unwrap_err();
        assert_eq!((invalid.at, invalid.fault), (at, fault));
    }
    assert!(matches!(
        text::read(&[6, 0, 0]),
        Err(TextError::Invalid(invalid)) if invalid.fault == Fault::Size(3)
    ));
}
