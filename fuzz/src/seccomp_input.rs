//! Filters and profiles: what `tarsier seccomp` is given.

use abi::Arch;
use seccomp::compile::{compile, Frequencies};
use seccomp::policy::Abi;
use seccomp::profile::{self, Context};
use seccomp::{text, CacheTable, Chain, ConstantAllow, Filter, SeccompData};

/// A filter or chain in any form. Every other form of it is the same filter.
pub(crate) fn filters(data: &[u8]) {
    let Ok(chain) = text::read_chain(data) else {
        return;
    };
    // Longer ones are not other ones.
    if chain.insns() > 600 {
        return;
    }
    for filter in chain.filters() {
        forms(filter);
    }
    for table in CacheTable::newest_pair(Arch::X86_64) {
        let allow = ConstantAllow::of(&chain, &table);
        for nr in [0, 59, 335, table.size] {
            let call = SeccompData {
                nr,
                arch: table.arch.audit_arch(),
                ..SeccompData::default()
            };
            let decision = chain.run(&call);
            assert!(decision.insns <= seccomp::worst_path(&chain, call.arch, nr));
            if allow.allows(nr) && !table.exempt.contains(&nr) {
                assert_eq!(decision.filter, None, "{chain:?}");
            }
        }
    }
}

fn forms(filter: &Filter) {
    let again = Filter::from_bytes(&filter.to_bytes());
    assert_eq!(again.as_ref(), Ok(filter));
    assert_eq!(text::from_hex(&text::to_hex(filter)).as_ref(), Ok(filter));
    assert_eq!(
        text::from_c_array(&text::to_c_array(filter)).as_ref(),
        Ok(filter)
    );
    // Operands that nobody looks at are not kept.
    let asm = text::to_asm(filter);
    let assembled = text::assemble(&asm).expect("text that was written here");
    assert_eq!(text::to_asm(&assembled), asm);
    assert_eq!(text::listing(filter).lines().count(), filter.insns().len());
}

/// A profile of any form. Its filter answers as its rules say.
pub(crate) fn profiles(data: &[u8]) {
    let profile = String::from_utf8_lossy(data);
    let context = Context::docker(Abi::X86_64, (6, 18));
    let Ok(policy) = profile::parse(&profile, &context) else {
        return;
    };
    let Ok(filter) = compile(&policy, &Frequencies::default()) else {
        return;
    };
    let filter = Chain::from(filter);
    for &abi in Abi::X86_64.family() {
        for name in ["read", "socket", "clone", "personality", "mknod", "ptrace"] {
            let Some(nr) = abi.number(name) else { continue };
            for value in [0, 1, 40, 0xffff_ffff, 1 << 32 | 1, u64::MAX] {
                let call = SeccompData {
                    nr,
                    arch: abi.audit_arch(),
                    args: [value; 6],
                    ..SeccompData::default()
                };
                let asked = policy.decide(&call).map(|ruling| ruling.verdict.order());
                let answer = filter.run(&call).verdict.order();
                assert_eq!(asked, Some(answer), "{call:?}");
            }
        }
    }
}
