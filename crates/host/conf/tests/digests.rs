//! The keys of digests of executed files.

use conf::{parse, Config, Notice};
use std::path::Path;

fn parsed(text: &str) -> (Config, Vec<Notice>) {
    let loaded = parse(text.as_bytes(), Path::new("f")).expect("a right file");
    (loaded.config, loaded.notices)
}

#[test]
fn digests_are_off_by_default_and_raw_has_no_place_for_them() {
    let (config, notices) = parsed("exe_hash = SHA256\nexe_hash_max = 7\n");
    assert_eq!(notices, []);
    assert_eq!(config.hashed_bytes_max(), Some(7 << 20));
    assert_eq!(Config::unset().hashed_bytes_max(), None);
    assert_eq!(parsed("exe_hash = none\n").0.hashed_bytes_max(), None);
    let (config, notices) = parsed("exe_hash = sha256\nlog_format = RAW\n");
    assert_eq!(config.hashed_bytes_max(), None);
    assert!(
        notices[0].to_string().contains("log_format = RAW"),
        "{}",
        notices[0]
    );
    for wrong in [
        "exe_hash = md5\n",
        "exe_hash_max = 0\n",
        "exe_hash_max = 4097\n",
    ] {
        assert!(parse(wrong.as_bytes(), Path::new("f")).is_err(), "{wrong}");
    }
}
