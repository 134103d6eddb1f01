//! `tarsier-forward`: sends the log off the host.

fn main() {}
