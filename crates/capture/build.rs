//! Compiles the BPF programs; the object is included in the library.

use std::env;
use std::path::PathBuf;

fn main() {
    compile("tarsier");
    compile("learn");
    compile("seccomp_iter");
    // Runs the matching alone; for tests/equivalence.rs.
    compile("match_test");
    // Reads the kernel's table of io_uring operations.
    compile("peek");
    for path in ["bpf", "../event/include/tarsier_event.h"] {
        println!("cargo::rerun-if-changed={path}");
    }
}

fn compile(name: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    libbpf_cargo::SkeletonBuilder::new()
        .source(format!("bpf/{name}.bpf.c"))
        .clang_args(["-O2", "-mcpu=v3", "-Wall", "-Werror"])
        .obj(out.join(format!("{name}.bpf.o")))
        .build()
        .unwrap_or_else(|error| {
            panic!("clang does not compile bpf/{name}.bpf.c; is it installed (make setup)? {error}")
        });
}
