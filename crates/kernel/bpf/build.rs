//! Compiles the BPF programs; the objects are included in the library.

use std::env;
use std::path::PathBuf;

fn main() {
    compile("tarsier");
    pack("tarsier");
    compile("learn");
    compile("denied");
    compile("seccomp_iter");
    compile("audit_iter");
    compile("ksym_iter");
    compile("match_test");
    compile("peek");
    compile("dcache");
    compile("call_counts");
    for path in ["programs", "../../log/record/include/tarsier_event.h"] {
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
    let path = out.join(format!("{name}.bpf.o"));
    let mut object = std::fs::read(&path).expect("clang has written it");
    leave_out_lines(&mut object).expect("an object with types");
    std::fs::write(&path, &object).expect("OUT_DIR is writable");
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

/// Makes the object one without line information, by the length of that part of its section `.BTF.ext`: instructions
/// are removed before programs are loaded (dead_code.rs of crates/kernel/capture), and lines would no longer be right.
fn leave_out_lines(object: &mut [u8]) -> Option<()> {
    const HEADER: usize = 64;
    /// In the section: where the length of the lines is, and its magic number.
    const LINES_LEN: usize = 20;
    const MAGIC: [u8; 2] = [0x9f, 0xeb];
    let number = |at: usize, len: usize| {
        let bytes = object.get(at..at + len)?.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (first, count, names) = (number(0x28, 8)?, number(0x3c, 2)?, number(0x3e, 2)?);
    let contents = |section: usize| number(first + section * HEADER + 24, 8);
    let name = |section: usize| Some(contents(names)? + number(first + section * HEADER, 4)?);
    let is_it = |section: &usize| {
        let at = name(*section).unwrap_or(usize::MAX);
        at < object.len() && object[at..].starts_with(b".BTF.ext\0")
    };
    let section = contents((0..count).find(is_it)?)?;
    object[section..].starts_with(&MAGIC).then_some(())?;
    object[section + LINES_LEN..][..4].fill(0);
    Some(())
}
