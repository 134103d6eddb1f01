//! Compiles the BPF programs; the object is included in the library.

use std::env;
use std::path::PathBuf;

fn main() {
    let out =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("tarsier.bpf.o");
    libbpf_cargo::SkeletonBuilder::new()
        .source("bpf/tarsier.bpf.c")
        .clang_args(["-O2", "-mcpu=v3", "-Wall", "-Werror"])
        .obj(&out)
        .build()
        .expect("clang compiles bpf/tarsier.bpf.c; is clang installed (make setup)?");
    for path in ["bpf", "../event/include/tarsier_event.h"] {
        println!("cargo::rerun-if-changed={path}");
    }
}
