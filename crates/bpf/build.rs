//! Compiles the BPF programs; the objects are included in the library.

use std::env;
use std::path::PathBuf;

fn main() {
    compile("tarsier");
    pack("tarsier");
    compile("learn");
    compile("seccomp_iter");
    compile("audit_iter");
    compile("match_test");
    compile("peek");
    compile("call_counts");
    for path in ["programs", "../event/include/tarsier_event.h"] {
        println!("cargo::rerun-if-changed={path}");
    }
}

fn compile(name: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // Line information names sources from here, so that objects do not depend on the directory.
    libbpf_cargo::SkeletonBuilder::new()
        .source(format!("programs/{name}.bpf.c"))
        .clang_args(["-O2", "-mcpu=v3", "-Wall", "-Werror", "-fdebug-compilation-dir=."])
        .obj(out.join(format!("{name}.bpf.o")))
        .build()
        .unwrap_or_else(|error| {
            panic!("clang does not compile programs/{name}.bpf.c; is it installed (make setup)? {error:#}")
        });
}

/// Writes NAME.bpf.o.zst beside NAME.bpf.o: a tenth of its size.
fn pack(name: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut object =
        std::fs::read(out.join(format!("{name}.bpf.o"))).expect("clang has written it");
    // For tests of upgrades: bytes behind the object, which nobody reads, make it another one.
    println!("cargo::rerun-if-env-changed=TARSIER_BPF_SUFFIX");
    object.extend(
        env::var("TARSIER_BPF_SUFFIX")
            .unwrap_or_default()
            .into_bytes(),
    );
    let packed = zstd::encode_all(object.as_slice(), 19).expect("memory is packed");
    std::fs::write(out.join(format!("{name}.bpf.o.zst")), packed).expect("OUT_DIR is writable");
}
