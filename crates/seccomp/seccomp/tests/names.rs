//! Names and numbers of calls are those of libseccomp 2.6.0 (data/libseccomp_names.py).

use seccomp::policy::Abi;

const TABLE: &str = include_str!("data/libseccomp-names.txt");

const ABIS: [Abi; 5] = [Abi::X86_64, Abi::X32, Abi::I386, Abi::Aarch64, Abi::Arm];

#[test]
fn every_name_of_libseccomp_has_its_number_on_every_abi() {
    let mut wrong = Vec::new();
    for line in TABLE.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        for (abi, wanted) in ABIS.into_iter().zip(&words[1..]) {
            let ours = abi.number(words[0]);
            let equal = match *wanted {
                // libseccomp gives the multiplexed form a number of its own; the call may have
                // one, too.
                "mux" => true,
                "-" => ours.is_none(),
                number => ours == number.parse().ok(),
            };
            if !equal {
                wrong.push(format!("{} {abi:?}: {ours:?}, not {wanted}", words[0]));
            }
        }
    }
    assert_eq!(TABLE.lines().count(), 502);
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}
