//! Comparison with the distribution's ausyscall, found below `TARSIER_PEERS`.

use std::path::PathBuf;
use std::process::Command;

use abi::Arch;

#[test]
fn every_call_that_ausyscall_knows_has_its_name_and_number() {
    let Some(peers) = std::env::var_os("TARSIER_PEERS").map(PathBuf::from) else {
        println!("skipped: TARSIER_PEERS is not set");
        return;
    };
    let libraries = format!(
        "{0}/usr/lib/x86_64-linux-gnu:{0}/lib/x86_64-linux-gnu",
        peers.display()
    );
    for arch in Arch::EVERY {
        let output = Command::new(peers.join("usr/bin/ausyscall"))
            .args([arch.name(), "--dump"])
            .env("LD_LIBRARY_PATH", &libraries)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<(u32, &str)> = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(number, name)| Some((number.parse().ok()?, name)))
            .collect();
        assert!(rows.len() > 250, "{}: {} calls", arch.name(), rows.len());
        for (number, name) in rows {
            assert_eq!(
                abi::syscall_name(arch, number),
                Some(name),
                "{} {number}",
                arch.name()
            );
            assert_eq!(
                abi::syscall_number(arch, name),
                Some(number),
                "{} {name}",
                arch.name()
            );
        }
    }
}
