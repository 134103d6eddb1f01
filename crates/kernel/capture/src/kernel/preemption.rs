//! Whether tasks are preempted inside the kernel. If they are, so are programs at the ends of functions and, on newer
//! kernels, programs on tracepoints. A preempted program misses what other tasks do on that processor meanwhile.

use crate::kernel::file_systems;
use crate::kernel::kernel_btf;
use libbpf_rs::btf::types::Typedef;
use plan::Preemption;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;

/// The file of debugfs with the current model: `none voluntary (full) lazy`.
const MODEL: &str = "sched/preempt";
/// Type of the SRCU guard of tracepoints, in kernels that have it.
const SRCU_GUARD: &str = "class_srcu_fast_notrace_t";

/// The current model. If the kernel does not report it (no CONFIG_PREEMPT_DYNAMIC, debugfs locked down), the model
/// it was booted or built with.
pub(crate) fn of_this_kernel() -> Preemption {
    if let Some(model) = read_model().as_deref().and_then(in_brackets) {
        return named(model);
    }
    let booted = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let mut asked = booted
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix("preempt="));
    match asked.next_back() {
        Some(model) => named(model),
        None => of_version(&rustix::system::uname().version().to_string_lossy()),
    }
}

/// Whether programs on tracepoints are preempted, too, if tasks in the kernel are: since Linux 7.0, tracepoints
/// are guarded by SRCU and no longer by disabling preemption.
pub(crate) fn reaches_tracepoints() -> bool {
    let types = kernel_btf::of_this_kernel();
    types.is_some_and(|types| {
        let guard = types.btf().type_by_name::<Typedef<'_>>(SRCU_GUARD);
        guard.is_some()
    })
}

fn named(model: &str) -> Preemption {
    match model {
        "none" | "voluntary" => Preemption::Voluntary,
        "lazy" => Preemption::Lazy,
        "full" => Preemption::Full,
        _ => Preemption::Unknown,
    }
}

/// The model according to uname(2)'s version: `#1 SMP PREEMPT_DYNAMIC Debian …`.
fn of_version(version: &str) -> Preemption {
    let has = |word: &str| version.split_ascii_whitespace().any(|w| w == word);
    if has("PREEMPT_DYNAMIC") {
        Preemption::Unknown
    } else if has("PREEMPT_LAZY") {
        Preemption::Lazy
    } else if has("PREEMPT") || has("PREEMPT_RT") {
        Preemption::Full
    } else {
        Preemption::Voluntary
    }
}

fn in_brackets(models: &str) -> Option<&str> {
    let (_, rest) = models.split_once('(')?;
    Some(rest.split_once(')')?.0)
}

fn read_model() -> Option<String> {
    let file = file_systems::open("debugfs", &["/sys/kernel/debug"], MODEL, OFlags::RDONLY);
    let mut text = String::new();
    File::from(file.ok()?).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_in_force_is_the_one_in_brackets() {
        let model = |text| in_brackets(text).map(named);
        assert_eq!(
            model("none (voluntary) full\n"),
            Some(Preemption::Voluntary)
        );
        assert_eq!(model("none voluntary (full)\n"), Some(Preemption::Full));
        assert_eq!(model("full (lazy)\n"), Some(Preemption::Lazy));
        assert_eq!(model("(newer)\n"), Some(Preemption::Unknown));
        assert_eq!(model("full"), None);
    }

    #[test]
    fn a_build_tells_its_model_unless_it_can_be_chosen() {
        let of = |words: &str| of_version(&format!("#1 {words} Debian 7.3.4-1"));
        assert_eq!(of("SMP PREEMPT_DYNAMIC"), Preemption::Unknown);
        assert_eq!(of("SMP PREEMPT"), Preemption::Full);
        assert_eq!(of("SMP PREEMPT_RT"), Preemption::Full);
        assert_eq!(of("SMP PREEMPT_LAZY"), Preemption::Lazy);
        assert_eq!(of("SMP"), Preemption::Voluntary);
    }
}
