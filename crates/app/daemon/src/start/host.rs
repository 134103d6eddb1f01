//! The system that this program runs on, for questions of the composer.

use capture::probe;
use compose::Sign;
use privsep::lookup::Host;

/// This machine, looked up in the calling process. For commands that an administrator runs; the
/// daemon has [`Lookups`](crate::start::lookups::Lookups).
pub fn host() -> Host {
    Host::new(kernel_has)
}

pub(crate) fn kernel_has(sign: Sign<'_>) -> bool {
    match sign {
        Sign::Function(name) => probe::has_function(name),
        Sign::Enumerator { of, name } => probe::has_enumerator(of, name),
        Sign::Parameter { function, name } => probe::has_parameter(function, name),
    }
}
