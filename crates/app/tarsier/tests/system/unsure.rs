//! What ordinary work costs for want of proof: hardly anything.

use crate::{machine, programs};
use std::os::unix::process::CommandExt;
use std::process::Command;

const GID: u32 = 61341;

/// As Debian's STIG rules watch files and directories, for the processes of this test.
const RULES: &str = "-a always,exit -F path=/etc/passwd -F perm=wa -F gid=61341 -k identity\n\
                     -a always,exit -F dir=/etc/skel -F perm=wa -F gid=61341 -k actions\n\
                     -a always,exit -F dir=/etc/apt -F perm=wa -F gid=61341 -k packages\n\
                     -a always,exit -F path=/etc/hosts -F perm=rwxa -F gid=61341 -k hosts\n";

/// Work as of a package manager, a build and an archive: directories of hundreds of files that are made, linked, replaced
/// and removed, also where there is nothing to do, and the call fails; pipes by their names in /dev/fd.
const WORK: &str = "set -e
    cd \"$1\"
    mkdir -p tree/a tree/b
    for i in $(seq 300); do echo $i >tree/a/$i; done
    cp -a tree copy
    cp -al tree links
    tar -cf tree.tar tree
    mkdir out
    tar -xf tree.tar -C out
    chmod -R go-w out
    for i in $(seq 100); do
        cp tree/a/$i tree/a/$i.new
        mv -f tree/a/$i.new tree/a/$i
        ln -sf ../a/$i tree/b/$i
        ln -sf ../a/$i tree/b/$i
        mkdir -p tree/b
        rm -f tree/b/no tree/no/no
        mkdir tree/b 2>&- || ln -s $i tree/b/$i 2>&- || mv tree/no no 2>&- || mv tree/a/$i no/no 2>&- || chmod 600 no/no 2>&- || true
        chmod 600 tree/b/$i
        : >tree/b/../a/$i
        rm links/a/$i
        sh -c 'echo >>/dev/fd/1' | cat >tree/b/said
        (cd /dev/fd && echo >>1) | cat >tree/b/said
    done
    sed -i s/1/2/ out/tree/a/*
    rm -r copy links out tree tree.tar
";

#[test]
fn of_ordinary_work_fewer_than_one_call_in_a_thousand_is_recorded_for_want_of_proof() {
    machine::test("ordinary work", |setup| {
        let daemon = setup.tarsier(RULES).format("raw").start();
        let work = setup.path("work");
        std::fs::create_dir(&work).expect("a directory");
        let mut command = Command::new("sh");
        command.args(["-c", WORK, "sh"]).arg(&work).gid(GID);
        let (_, said) = programs::output_of(&mut command);
        assert_eq!(said, "", "the work is done");
        let status = daemon.status();
        let count = |name: &str| status[name].as_u64().expect("a number");
        let (watched, unsure) = (count("calls_matched"), count("events_unsure"));
        println!("{unsure} of {watched} watched calls are unsure");
        assert!(watched > 3_000, "{watched}");
        assert!(unsure * 1_000 < watched, "{unsure} of {watched}");
    });
}
