//! What is not proven to be elsewhere is recorded.

mod common;

use common::{identities, plain_call, plan, rule, ruleset};
use plan::{Decision, Facts, Name, ObjectId, Proven};

#[test]
fn a_name_that_leads_nobody_knows_where_is_recorded_and_hides_nothing() {
    let rules = ruleset(&[
        "-a never,exit -F arch=b64 -S truncate -F path=/c",
        "-a always,exit -F arch=b64 -S truncate -F dir=/a -F key=k",
    ]);
    let names = [Name {
        is_unknown: true,
        ..Name::default()
    }];
    let facts = Facts {
        nr: 76,
        names: &names,
        ..plain_call()
    };
    let decision = plan(&rules).decide(&facts, &identities());
    assert_eq!(decision, Decision::Unsure(1));
    let reference = plan::decide(&rules, common::entries(), &facts, &identities());
    assert_eq!(reference, decision);
}

#[test]
fn a_name_of_which_nothing_is_known_takes_no_event_from_a_rule_that_selects_it() {
    let below = rule("-a always,exit -F arch=b64 -S setxattr -F dir=/a -F key=below");
    let every = rule("-a always,exit -F arch=b64 -S setxattr -F key=every");
    let identities = identities();
    let facts = Facts {
        names: &[Name::unknown()],
        above: &[identities.object(b"/a").unwrap()],
        ..plain_call()
    };
    let decide = |rules: &[&rules::Rule]| {
        let placed = (0..).zip(rules.iter().copied());
        plan::decide_names(placed, &facts, &identities)
    };
    assert_eq!(decide(&[&below]), Decision::Unsure(0));
    assert_eq!(decide(&[&below, &every]), Decision::Record(1));
}

#[test]
fn a_rule_on_a_directory_holds_wherever_a_mount_shows_it() {
    let rule = rule("-a always,exit -F arch=b64 -S openat -F dir=/a");
    let identities = identities();
    let watched = identities.object(b"/a").unwrap();
    let other = ObjectId {
        ino: watched.ino + 1,
        ..watched
    };
    let name = |object, place| Name {
        path: b"/elsewhere/file".to_vec(),
        existed: true,
        object,
        place,
        ..Name::default()
    };
    let decide_at = |object, place, above: &[ObjectId]| {
        let facts = Facts {
            names: &[name(object, place)],
            above,
            ..plain_call()
        };
        plan::decide_names(std::iter::once((0, &rule)), &facts, &identities)
    };
    let decide = |above: &[ObjectId]| decide_at(Proven::AtEnd, Proven::AtEnd, above);
    assert_eq!(decide(&[]), Decision::Drop);
    assert_eq!(decide(&[other]), Decision::Drop);
    assert_eq!(decide(&[other, watched]), Decision::Record(0));
    // What it is, and where it is, was looked up after the call: the directory itself may have been mounted there.
    for (object, place) in [
        (Proven::AtEnd, Proven::Later),
        (Proven::Later, Proven::AtEnd),
    ] {
        assert_eq!(decide_at(object, place, &[other]), Decision::Unsure(0));
    }
}

#[test]
fn a_rule_stays_with_a_directory_that_was_renamed() {
    let rule = rule("-a always,exit -F arch=b64 -S openat -F dir=/a");
    let mut identities = identities();
    let watched = identities.object(b"/a").unwrap();
    let elsewhere = Name {
        path: b"/elsewhere/file".to_vec(),
        existed: true,
        object: Proven::InCall,
        place: Proven::InCall,
        ..Name::default()
    };
    let names = [elsewhere];
    let facts = Facts {
        names: &names,
        above: &[watched],
        ..plain_call()
    };
    let decide = |identities: &_| plan::decide_names([(0, &rule)].into_iter(), &facts, identities);
    assert_eq!(decide(&identities), Decision::Record(0));
    // It may also have been removed, and its number be another directory's.
    identities.replaced(b"/a", None);
    assert_eq!(decide(&identities), Decision::Unsure(0));
    let nowhere = Facts {
        above: &[],
        ..facts
    };
    let decided = plan::decide_names([(0, &rule)].into_iter(), &nowhere, &identities);
    assert_eq!(decided, Decision::Drop);
}
