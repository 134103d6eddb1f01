//! The generated Rust bindings agree with clang's view of the headers.

use std::path::Path;

/// The bindings that bindgen generated from the headers.
const GENERATED: [&str; 2] = [
    include_str!("../src/shared.rs"),
    include_str!("../../../log/record/src/wire/bindings.rs"),
];

/// The sizes, offsets and constants in generated code, each as a C expression and its value.
fn claims(generated: &str) -> Vec<(String, &str)> {
    let layout = |what: &'static str, expression: fn(&str) -> String| {
        generated.split(what).skip(1).filter_map(move |rest| {
            let (name, rest) = rest.split_once("\"]")?;
            let (_, rest) = rest.split_once(" - ")?;
            let (value, _) = rest.split_once("usize]")?;
            Some((expression(name), value))
        })
    };
    let sizes = layout("[\"Size of ", |name| format!("sizeof(struct {name})"));
    let offsets = layout("[\"Offset of field: ", |name| {
        let member = name.replace("::", ", ");
        format!("__builtin_offsetof(struct {member})")
    });
    let constants = generated.split("\npub const ").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once(": ")?;
        let (_, rest) = rest.split_once(" = ")?;
        let (value, _) = rest.split_once(';')?;
        Some((name.to_owned(), value))
    });
    sizes.chain(offsets).chain(constants).collect()
}

/// Compiles static assertions of these claims.
fn check(claims: &[(String, &str)]) -> Result<(), String> {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/shared.h");
    let mut text = format!("#include \"{}\"\n", header.display());
    for (expression, value) in claims {
        text +=
            &format!("_Static_assert({expression} == {value}, \"run cargo xtask bindings\");\n");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let source = dir.path().join("claims.bpf.c");
    std::fs::write(&source, text).expect("the source is written");
    libbpf_cargo::SkeletonBuilder::new()
        .source(&source)
        .obj(dir.path().join("claims.bpf.o"))
        .build()
        .map_err(|error| format!("{error:?}"))
}

#[test]
fn every_size_offset_and_constant_is_that_of_the_headers() {
    for generated in GENERATED {
        let claims = claims(generated);
        assert!(claims.len() > 80, "{} claims", claims.len());
        check(&claims).unwrap();
    }
}

#[test]
fn another_layout_is_found() {
    let mut claims = claims(GENERATED[0]);
    for wrong in [
        "sizeof(struct control)",
        "__builtin_offsetof(struct control, every)",
        "RULES_MAX",
    ] {
        let claim = claims.iter_mut().find(|claim| claim.0 == wrong);
        let claim = claim.expect(wrong);
        let right = std::mem::replace(&mut claim.1, "12");
        let error = check(&claims).expect_err(wrong);
        assert!(error.contains(wrong), "{error}");
        let claim = claims.iter_mut().find(|claim| claim.0 == wrong);
        claim.expect(wrong).1 = right;
    }
}
