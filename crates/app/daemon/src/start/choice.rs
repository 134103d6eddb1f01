//! The choice of the engine.

use crate::stderr::say;
use anyhow::{bail, Result};
use cli::Engine;

/// A kind of engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Programs at the ends of the kernel's functions.
    Trampoline,
    /// Programs at the ends of system calls.
    Tracepoint,
    /// The kernel's own audit.
    Kernel,
}

/// What the kernel engine gives and lacks where `auto` takes it.
pub const KERNEL_ENGINE: &str =
    "the kernel's own audit matches the rules, and log, seals, search and forwarding are as ever; \
     records name no unit or container, io_uring operations are not seen, and every call pays for \
     every rule";

/// The kind that `engine` stands for on this host. With `auto`, prints why it is not a better one.
///
/// # Errors
/// The engine that was asked for does not work here.
pub fn kind(engine: Engine) -> Result<Kind> {
    if engine == Engine::Kernel {
        return Ok(Kind::Kernel);
    }

    if let Some(reason) = capture::probe::ebpf_refusal() {
        if engine != Engine::Auto {
            bail!(
                "no eBPF engine works here: {reason}; --engine auto lets the kernel's own audit \
                 match the rules"
            );
        }
        say!("tarsier: engine kernel: {reason}: {KERNEL_ENGINE}");
        return Ok(Kind::Kernel);
    }

    if engine == Engine::Tracepoint {
        return Ok(Kind::Tracepoint);
    }

    match (capture::probe::trampoline_refusal(), engine) {
        (None, _) => Ok(Kind::Trampoline),
        (Some(reason), Engine::Trampoline) => bail!(
            "the trampoline engine does not work here: {reason}; \
             --engine auto selects one that does"
        ),
        (Some(reason), _) => {
            say!("tarsier: engine tracepoint: {reason}");
            Ok(Kind::Tracepoint)
        }
    }
}

/// The kind that `tarsier plan` plans for: the one that was asked for, even where it does not work.
/// Only root can try the trampoline engine.
pub fn planned(engine: Engine, is_root: bool) -> Kind {
    match engine {
        Engine::Kernel => Kind::Kernel,
        Engine::Trampoline => Kind::Trampoline,
        Engine::Tracepoint => Kind::Tracepoint,
        Engine::Auto if capture::probe::ebpf_refusal().is_some() => Kind::Kernel,
        Engine::Auto if is_root && capture::probe::trampoline_refusal().is_none() => {
            Kind::Trampoline
        }
        Engine::Auto => Kind::Tracepoint,
    }
}
