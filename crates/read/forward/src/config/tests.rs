//! Every key is read and documented; what is wrong is named with its line.

use super::*;

fn parsed(text: &str) -> Result<Config, ConfigError> {
    parse(text.as_bytes(), Path::new("forward.conf"))
}

fn message(text: &str) -> String {
    parsed(text).expect_err("an error").to_string()
}

#[test]
fn values_of_every_kind_are_read() {
    let config = parsed(
        "# comment\nsink = kafka\nserver = a:9092, b:9092\ntopic=t\nhold = 2G\nlinger = 50ms\n\
         filter_keys = a,!b\nauth = scram-sha-256\nuser = u\nsecret_file = /s\ntls = YES\n\
         overflow_action = exec /bin/x\nnetwork_failure_action = halt\nbatch_bytes = 64K\n",
    )
    .expect("a configuration");
    assert_eq!(config.server, ["a:9092", "b:9092"]);
    assert_eq!(config.hold_bytes, 2 << 30);
    assert_eq!(config.linger, Duration::from_millis(50));
    assert_eq!(config.filter_keys.exclude, ["b"]);
    assert_eq!(
        config.overflow_action,
        TroubleAction::Exec(PathBuf::from("/bin/x"))
    );
    assert!(config.tls);
}

#[test]
fn errors_name_line_and_remedy() {
    assert_eq!(
        message("sink = file\npath = /x\nlingr = 1s\n"),
        "forward.conf:3: unknown key \"lingr\"; expected a key of this file, perhaps linger"
    );
    assert_eq!(
        message("\nhold = much\n"),
        "forward.conf:2: hold = much; expected 1 to 1125899906842624 bytes, such as 512K, 64M or 20G"
    );
    assert!(message("sink = kafka\n").contains("server = HOST:PORT"));
    assert!(message("sink = nats\nserver=x:1\nauth = plain\nsecret_file=/x\n").contains("nkey"));
    assert!(message("hold\n").contains("no `=`"));
}

#[test]
fn every_key_is_in_the_guide() {
    let guide = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/guide/forward.md"
    );
    let guide = std::fs::read_to_string(guide).expect("the guide");
    for key in described_keys() {
        let row = format!("| `{}` | {} | {} |", key.name, key.default, key.text);
        assert!(
            guide.contains(&row),
            "docs/guide/forward.md lacks the row\n{row}"
        );
    }
}
