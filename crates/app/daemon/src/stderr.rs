//! Messages of the daemon on standard error. See [`cli::messages`].

pub(crate) use cli::messages::{never_wait, reasons, report as say};
