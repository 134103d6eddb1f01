//! Paths of cgroups as systemd and the container runtimes make them, and arbitrary ones.

use identity::{Runtime, Workload};
use proptest::prelude::*;

/// Pairs of lines: a path, and after a tab what it says. Comments name the source of the forms that follow.
const PATHS: &str = include_str!("paths.txt");

fn told(workload: &Workload<'_>) -> String {
    let mut words = Vec::new();
    let mut tell = |name: &str, value: Option<&[u8]>| {
        let text = value.map(String::from_utf8_lossy);
        words.extend(text.map(|text| format!("{name}={text}")));
    };
    let container = workload.container.as_ref();
    tell("unit", workload.unit.as_deref());
    tell("slice", workload.slice.as_deref());
    tell("user_unit", workload.user_unit.as_deref());
    tell("container", container.map(|container| &*container.id));
    let runtime = container.and_then(|container| container.runtime);
    tell("runtime", runtime.map(Runtime::name).map(str::as_bytes));
    tell("outer", workload.outer.as_deref());
    tell("pod", workload.pod.as_deref());
    tell("session", workload.session());
    if words.is_empty() {
        "nothing".to_owned()
    } else {
        words.join(" ")
    }
}

#[test]
fn real_paths_say_what_they_should() {
    let mut lines = PATHS.lines().filter(|line| !line.starts_with('#'));
    let mut paths = 0;
    while let Some(path) = lines.next() {
        let expected = lines.next().and_then(|line| line.strip_prefix('\t'));
        let workload = Workload::of(path.as_bytes());
        assert_eq!(Some(&*told(&workload)), expected, "{path}");
        assert_eq!(workload.is_empty(), expected == Some("nothing"), "{path}");
        paths += 1;
    }
    assert!(paths > 50, "{paths} paths");
}

/// Names that lead into every branch, and arbitrary bytes.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "user@1000.service",
        "a.slice",
        "kubepods",
        "pod",
        "-pod",
        "_",
        "docker",
        "-",
        ":",
        "lxc",
        "lxc.payload.",
        "machine-",
        "systemd-nspawn@",
        "supervisor",
        "libpod_pod_",
        "conmon",
        "\\x2d",
        "\\x",
        ".scope",
        ".service",
        ".slice",
        "b6a16766_05ee_446a_8ee5_ff96a817f47c",
        ".",
        "679f3691f7f1b20198548be43b86f265f9fff9be0ac4c973638f5ee89decbca9",
    ]);
    let piece = prop_oneof![
        3 => pieces.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Nothing panics, and nothing is longer than the path or has a byte that the path has not.
    #[test]
    fn arbitrary_paths_are_read_within_bounds(names in prop::collection::vec(name(), 0..12)) {
        let path = names.join(&b'/');
        let workload = Workload::of(&path);
        let container = workload.container.as_ref().map(|container| &*container.id);
        let texts = [
            workload.unit.as_deref(), workload.slice.as_deref(), workload.user_unit.as_deref(),
            container, workload.outer.as_deref(), workload.pod.as_deref(), workload.session(),
        ];
        for text in texts.into_iter().flatten() {
            prop_assert!(!text.is_empty() && text.len() <= path.len());
            prop_assert!(!text.contains(&b'/') || path.windows(4).any(|text| text == b"\\x2f"));
        }
        prop_assert!(workload.outer.is_none() || container.is_some());
    }
}
