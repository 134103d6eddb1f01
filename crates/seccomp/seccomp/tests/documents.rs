//! Documents with profiles in them, other forms to write them in, and the languages of others.

use seccomp::compile::{compile, Frequencies};
use seccomp::policy::Abi;
use seccomp::profile::{self, convert, Context};
use seccomp::{prove_equal, uncovered, Chain, Proof, SeccompData, Verdict};

fn context() -> Context {
    Context::docker(Abi::X86_64, (6, 18))
}

fn chain(text: &str) -> Chain {
    let policy = profile::parse(text, &context()).expect("a good profile");
    Chain::from(compile(&policy, &Frequencies::usual()).expect("compiles"))
}

fn refusal(text: &str) -> String {
    let error = profile::parse(text, &context()).expect_err("refused");
    error.to_string()
}

const PLAIN: &str = r#"{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38,
    "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"], "syscalls": [
      {"names": ["read", "write", "exit_group", "socket", "futex_waitv"], "action": "SCMP_ACT_ALLOW"},
      {"names": ["ptrace"], "action": "SCMP_ACT_KILL_PROCESS"},
      {"names": ["mount"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}]}"#;

const WITH_ARGS: &str = r#"{"defaultAction": "SCMP_ACT_LOG", "architectures": ["SCMP_ARCH_X86_64"],
    "flags": ["SECCOMP_FILTER_FLAG_LOG"], "syscalls": [
      {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [
        {"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": 18446744073709551615, "valueTwo": 8}]},
      {"names": ["clone"], "action": "SCMP_ACT_TRACE", "errnoRet": 5000,
       "excludes": {"caps": ["CAP_SYS_ADMIN"]}, "args": [
        {"index": 0, "op": "SCMP_CMP_GE", "value": 2114060288},
        {"index": 1, "op": "SCMP_CMP_NE", "value": 0}]}]}"#;

const OPERATORS: &str = "\
apiVersion: security-profiles-operator.x-k8s.io/v1beta1
kind: SeccompProfile
metadata:
  namespace: shop
  name: cart
spec:
  defaultAction: SCMP_ACT_ERRNO
  baseProfileName: runc-v1.2.6
  architectures:
  - SCMP_ARCH_X86_64
  syscalls:
  - action: SCMP_ACT_ALLOW
    names: [read, write, \"exit_group\"]
    args:
    - {index: 0, op: SCMP_CMP_LE, value: 0x2}
";

fn config(profile: &str) -> String {
    format!(r#"{{"ociVersion": "1.2.0", "process": {{}}, "linux": {{"seccomp": {profile}}}}}"#)
}

#[test]
fn a_containers_configuration_and_a_seccomp_profile_are_the_profile_in_them() {
    for plain in [PLAIN, WITH_ARGS, profile::DOCKER_DEFAULT] {
        let operators = format!(
            r#"{{"apiVersion": "security-profiles-operator.x-k8s.io/v1beta1",
                "kind": "SeccompProfile", "metadata": {{"name": "x"}}, "spec": {plain}}}"#
        );
        let wanted = chain(plain);
        for document in [config(plain), operators] {
            assert_eq!(prove_equal(&chain(&document), &wanted), Ok(Proof::Equal));
        }
    }
    assert!(refusal(r#"{"ociVersion": "1.2.0", "linux": {}}"#).contains("linux.seccomp"));
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n";
    assert!(refusal(pod).contains("localhostProfile"));
    let broken = "kind: SeccompProfile\nspec:\n  - a\n  b: [\n";
    assert!(refusal(broken).contains("not YAML"), "{}", refusal(broken));
    let no_action = "kind: SeccompProfile\nspec:\n  syscalls: []\n";
    assert!(refusal(no_action).contains("defaultAction"));
}

#[test]
fn what_is_written_in_another_form_is_proven_equal() {
    for text in [
        PLAIN,
        WITH_ARGS,
        OPERATORS,
        profile::DOCKER_DEFAULT,
        &config(PLAIN),
    ] {
        let oci = convert::to_oci(text, &context()).expect("a good profile");
        let wanted = chain(text);
        let written = [
            convert::to_json(&oci),
            convert::to_operator(&oci, "written"),
        ];
        for written in written {
            let proof = prove_equal(&chain(&written), &wanted);
            assert_eq!(proof, Ok(Proof::Equal), "{written}");
        }
    }
    let error = convert::to_oci("allow read", &context()).expect_err("a list");
    assert!(error.to_string().contains("only those can be written"));
}

/// The calls of programs on x86-64 kernels that `one` allows and `other` does not.
fn more_of(one: &Chain, other: &Chain) -> Vec<String> {
    let found = uncovered(other, one).expect("small filters");
    let calls = found
        .iter()
        .filter_map(|it| Some((Abi::of(it.data.arch, it.data.nr)?, it)));
    calls
        .filter(|(abi, _)| Abi::X86_64.family().contains(abi))
        .map(|(abi, it)| format!("{abi:?} {:?}", abi.name_of(it.data.nr)))
        .collect()
}

#[test]
fn a_unit_allows_and_denies_what_the_profile_does() {
    let deny = r#"{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64",
        "SCMP_ARCH_X86", "SCMP_ARCH_X32"], "syscalls": [
          {"names": ["mount", "umount2"], "action": "SCMP_ACT_ERRNO"},
          {"names": ["ptrace"], "action": "SCMP_ACT_KILL_PROCESS"}]}"#;
    for text in [PLAIN, deny] {
        let oci = convert::to_oci(text, &context()).expect("a good profile");
        let (unit, notes) = convert::to_unit(&oci, &context()).expect("it can be said");
        assert_eq!(notes, [""; 0]);
        let (unit, wanted) = (chain(&unit), chain(text));
        assert_eq!(more_of(&wanted, &unit), [""; 0]);
        assert_eq!(more_of(&unit, &wanted), [""; 0]);
    }
    // Never weaker where conditions cannot be said.
    let oci = convert::to_oci(profile::DOCKER_DEFAULT, &context()).expect("docker's");
    let (unit, notes) = convert::to_unit(&oci, &context()).expect("it can be said");
    assert!(notes
        .iter()
        .any(|note| note.contains("personality is allowed for some arguments")));
    let weaker = more_of(&chain(&unit), &chain(profile::DOCKER_DEFAULT));
    assert_eq!(weaker, [""; 0]);
}

#[test]
fn base_profiles_of_runtimes_are_known_and_others_are_told() {
    let allows = |text: &str, name: &str| {
        let data = seccomp::SeccompData {
            nr: Abi::X86_64.number(name).expect("a call"),
            arch: Abi::X86_64.audit_arch(),
            ..seccomp::SeccompData::default()
        };
        chain(text).run(&data).verdict == seccomp::Verdict::ALLOW
    };
    assert!(allows(OPERATORS, "execve") && !allows(OPERATORS, "mount"));
    let other = OPERATORS.replace("runc-v1.2.6", "team-base");
    assert!(!allows(&other, "execve"));
    let policy = profile::parse(&other, &context()).expect("good");
    assert!(policy.notes[0].contains("spec.baseProfileName: team-base is not here"));
}

#[test]
fn languages_of_other_programs_are_refused_by_name() {
    let cases = [
        (
            "# a worker\n@frequency ./f\nread: 1\n",
            "line 2",
            "a policy of minijail",
        ),
        (
            "ioctl: arg1 == 0x5401 || arg1 == 0x5413\n",
            "line 1",
            "a policy of minijail",
        ),
        ("openat: return ENOENT\n", "line 1", "a policy of minijail"),
        (
            "POLICY work { ALLOW { read } }\nUSE work DEFAULT KILL\n",
            "line 1",
            "a policy of kafel",
        ),
        ("1\nallowlist\n0\n1\n", "line 1", "a policy of LXC"),
        (
            "2\ndenylist\n[all]\nmknod errno 1\n",
            "line 1",
            "a policy of LXC",
        ),
        ("read\nsocket AF_UNIX\n", "line 2", "a profile of snap"),
        ("~ioctl - TIOCSTI\n", "line 1", "a profile of snap"),
        (
            "seccomp.drop ptrace,mount\n",
            "line 1",
            "a profile of firejail",
        ),
        (
            r#"{"vmm": {"default_action": "trap", "filter_action": "allow", "filter": []}}"#,
            "the profile",
            "JSON of seccompiler",
        ),
        (
            r#"{"vmm": {"mismatch_action": "trap", "match_action": "allow", "filter": []}}"#,
            "the profile",
            "JSON of seccompiler",
        ),
    ];
    for (text, place, kind) in cases {
        let message = refusal(text);
        let wanted = format!("{place}: found {kind}, expected");
        assert!(message.starts_with(&wanted), "{text}: {message}");
    }
    for list in [
        "read\nwrite\nclose\n",
        "deny mount # a list\n",
        "allow socket a0==1\n",
    ] {
        profile::parse(list, &context()).expect(list);
    }
}

#[test]
fn lines_of_values_are_found_by_their_path() {
    let text = "{\n  \"a\": 1,\n  \"syscalls\": [\n    {\"names\": [\"}\\\"]\"]},\n    {\n      \"args\": [\n        5]}]}";
    for (path, line) in [
        ("a", Some(2)),
        ("syscalls", Some(3)),
        ("syscalls[0].names[0]", Some(4)),
        ("syscalls[1]", Some(5)),
        ("syscalls[1].args[0]", Some(7)),
        ("syscalls[2]", None),
        ("b", None),
        ("", None),
    ] {
        assert_eq!(profile::line_of(text, path), line, "{path}");
    }
    assert_eq!(profile::line_of("allow read", "line 1"), None);
}

/// A file with several documents, as Kubernetes applies them.
const SEVERAL: &str = "\
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
# The first.
apiVersion: security-profiles-operator.x-k8s.io/v1beta1
kind: SeccompProfile
metadata:
  name: block
spec:
  defaultAction: SCMP_ACT_ERRNO
---
apiVersion: security-profiles-operator.x-k8s.io/v1
kind: SeccompProfile
metadata: {name: allow}
spec: {defaultAction: SCMP_ACT_ALLOW}
";

#[test]
fn of_several_documents_one_is_chosen() {
    let refused = refusal(SEVERAL);
    assert!(refused.contains("block, allow"), "{refused}");
    assert!(refused.contains("FILE#block"), "{refused}");

    let block = profile::named(SEVERAL, "block").expect("it is there");
    let plain = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}"#;
    assert!(matches!(
        prove_equal(&chain(&block), &chain(plain)),
        Ok(Proof::Equal)
    ));
    let line = SEVERAL
        .lines()
        .position(|line| line.contains("SCMP_ACT_ERRNO"));
    let own = block
        .lines()
        .position(|line| line.contains("SCMP_ACT_ERRNO"));
    assert_eq!(line, own, "{block}");
    let missing = profile::named(SEVERAL, "blok").expect_err("no such profile");
    assert!(missing.to_string().contains("block, allow"), "{missing}");

    // The only SeccompProfile needs no name, whatever else is there.
    let (first, _) = SEVERAL.rsplit_once("---").expect("documents");
    assert!(matches!(
        prove_equal(&chain(first), &chain(plain)),
        Ok(Proof::Equal)
    ));
    let (other, _) = first.rsplit_once("---").expect("documents");
    assert!(refusal(other).contains("SeccompProfile"));

    // What `kubectl get` prints of several.
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: x/v1\n  kind: SeccompProfile\n  \
                metadata: {name: a}\n  spec: {defaultAction: SCMP_ACT_ERRNO}\n";
    assert!(matches!(
        prove_equal(&chain(list), &chain(plain)),
        Ok(Proof::Equal)
    ));
    let item = profile::named(list, "a").expect("it is there");
    assert!(matches!(
        prove_equal(&chain(&item), &chain(plain)),
        Ok(Proof::Equal)
    ));

    // Lines of errors are those of the file.
    let broken = format!("{SEVERAL}---\nkind: [\n");
    assert!(
        refusal(&broken).starts_with("line 2"),
        "{}",
        refusal(&broken)
    );
}

#[test]
fn of_a_member_that_stands_twice_the_last_counts_as_in_go_and_a_note_says_so() {
    let cases = [
        // The same name, another letter case, and in a part of the profile.
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "defaultAction": "SCMP_ACT_KILL"}"#,
            "defaultAction: stands there twice",
            Verdict(0),
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "DefaultAction": "SCMP_ACT_KILL"}"#,
            "DefaultAction: stands there as defaultAction, too",
            Verdict(0),
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"],
                "action": "SCMP_ACT_KILL", "action": "SCMP_ACT_ALLOW"}]}"#,
            "syscalls[0].action: stands there twice",
            Verdict::ALLOW,
        ),
        (
            "kind: SeccompProfile\napiVersion: v1\nspec:\n  defaultAction: SCMP_ACT_ALLOW\n  \
             defaultAction: SCMP_ACT_KILL\n",
            "spec.defaultAction: stands there twice",
            Verdict(0),
        ),
    ];
    for (text, note, wanted) in cases {
        let policy = profile::parse(text, &context()).expect(text);
        let data = SeccompData {
            nr: 0,
            arch: Abi::X86_64.audit_arch(),
            ..SeccompData::default()
        };
        assert_eq!(
            policy.decide(&data).expect("a layer").verdict,
            wanted,
            "{text}"
        );
        assert!(policy.notes[0].starts_with(note), "{:?}", policy.notes);
    }
}

#[test]
fn texts_that_are_no_profile_are_named_in_short() {
    let cases = [
        ("[]", "JSON that is not an object"),
        ("null", "JSON that is not an object"),
        ("{read, write}: 1\nmmap: arg2 == 1", "policy of minijail"),
        (
            "ALLOW { read, write } DEFAULT KILL_PROCESS",
            "policy of kafel",
        ),
        (
            "#define X 1\nERRNO(1) { mount }\nDEFAULT ALLOW",
            "policy of kafel",
        ),
        (
            "\u{feff}{\"defaultAction\": \"SCMP_ACT_ALLOW\"}",
            "byte order mark",
        ),
    ];
    for (text, kind) in cases {
        let error = profile::parse(text, &context())
            .expect_err(text)
            .to_string();
        assert!(error.contains(kind), "{text}: {error}");
    }
    let long = profile::parse(&"[".repeat(5000), &context()).expect_err("brackets");
    assert!(long.to_string().len() < 300, "{long}");
    // systemd skips the mark.
    let unit = "\u{feff}[Service]\nSystemCallFilter=~uname\n";
    assert!(profile::parse(unit, &context())
        .expect("a unit")
        .notes
        .is_empty());
}
