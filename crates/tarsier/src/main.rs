//! Tarsier: system-call auditing. Argument parsing and dispatch only.
fn main() {}
