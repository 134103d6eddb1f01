//! Sessions of users, and their last logins: aulast and aulastlog.

mod logins;
mod report;
mod session;
mod sessions;

pub use logins::{LastLogin, Logins};
pub use sessions::{Options, Sessions};
