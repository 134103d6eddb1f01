//! Each header includes what it needs, so that the order of includes does not matter.

use std::path::Path;

#[test]
fn every_header_compiles_alone() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let dir = tempfile::tempdir().expect("a directory");
    let mut count = 0;
    for entry in std::fs::read_dir(&programs).expect("the programs are there") {
        let header = entry.expect("an entry").path();
        if header.extension().is_none_or(|extension| extension != "h") {
            continue;
        }
        let source = dir.path().join("alone.bpf.c");
        let text = format!("#include \"{}\"\n", header.display());
        std::fs::write(&source, text).expect("the source is written");
        // A header alone has only functions that nothing calls.
        libbpf_cargo::SkeletonBuilder::new()
            .source(&source)
            .clang_args([
                "-O2",
                "-mcpu=v3",
                "-Wall",
                "-Werror",
                "-Wno-unused-function",
            ])
            .obj(dir.path().join("alone.bpf.o"))
            .build()
            .unwrap_or_else(|error| panic!("{}: {error:?}", header.display()));
        count += 1;
    }
    assert!(count > 20, "{count} headers");
}
