//! Profiles made of the calls that a program was seen to make.

use seccomp::policy::Abi;
use seccomp::profile::learned::{Extra, Observed};
use seccomp::profile::{self, Context};
use seccomp::{SeccompData, Verdict};

#[test]
fn a_learnt_profile_does_not_depend_on_the_timing_of_the_run_that_it_is_from() {
    let mut seen = Observed::default();
    seen.add(Abi::X86_64.audit_arch(), 0, 1);
    seen.add(Abi::I386.audit_arch(), 3, 1);
    let extras = [Extra::Vdso, Extra::Timing, Extra::Runtime];
    let profile = seen.profile(Abi::X86_64, &extras).to_string();
    let policy =
        profile::parse(&profile, &Context::docker(Abi::X86_64, (6, 18))).expect("an OCI profile");
    assert!(policy.notes.is_empty(), "{:?}", policy.notes);
    for abi in [Abi::X86_64, Abi::I386] {
        let timing = ["futex", "restart_syscall", "rt_sigreturn", "sched_yield"];
        for name in [&timing[..], &["exit", "exit_group", "read"]].concat() {
            let data = SeccompData {
                nr: abi.number(name).expect(name),
                arch: abi.audit_arch(),
                ..SeccompData::default()
            };
            let verdict = policy.decide(&data).expect("a layer").verdict;
            assert_eq!(verdict, Verdict::ALLOW, "{abi:?} {name}");
        }
    }
    // Only 32-bit x86 has it.
    assert!(profile.contains("\"sigreturn\""));
    let native = Observed::default().profile(Abi::X86_64, &extras);
    assert!(!native.to_string().contains("\"sigreturn\""));
}
