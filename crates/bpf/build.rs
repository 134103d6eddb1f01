//! Compiles the BPF programs; the objects are included in the library.

use std::env;
use std::path::PathBuf;

fn main() {
    compile("tarsier");
    compile("learn");
    compile("seccomp_iter");
    compile("audit_iter");
    compile("match_test");
    compile("peek");
    for path in ["programs", "../event/include/tarsier_event.h"] {
        println!("cargo::rerun-if-changed={path}");
    }
}

fn compile(name: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    libbpf_cargo::SkeletonBuilder::new()
        .source(format!("programs/{name}.bpf.c"))
        .clang_args(["-O2", "-mcpu=v3", "-Wall", "-Werror"])
        .obj(out.join(format!("{name}.bpf.o")))
        .build()
        .unwrap_or_else(|error| {
            panic!("clang does not compile programs/{name}.bpf.c; is it installed (make setup)? {error:#}")
        });
}
