//! Changes to the maps by another process with root's rights are refused, or undone and reported.
#![cfg(target_arch = "x86_64")]

use capture::{link_ids, map_ids, Breach, CaptureOptions, EbpfEngine};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use plan::{Capabilities, Identities, Plan};
use rules::{Command, Source, StaticHost};
use std::collections::BTreeSet;

const HOST: abi::Arch = abi::Arch::X86_64;
/// First argument of the calls that the rule selects: no open descriptor.
const MARK: i32 = 0x7a53;

fn plan() -> Plan {
    let line = format!("-a always,exit -F arch=b64 -S close -F a0={MARK}");
    let rule = match rules::parse_line(&line, &Source::default(), &StaticHost::new(HOST)) {
        Ok(Some(Command::Append(rule))) => rule,
        other => panic!("{line}: {other:?}"),
    };
    let capabilities = Capabilities::assumed(HOST);
    Plan::new(&[rule], &capabilities, &Identities::default(), 1).expect("it fits")
}

/// Whether a selected call of this process is recorded.
fn records(engine: &mut EbpfEngine) -> bool {
    // SAFETY: no such descriptor is open.
    unsafe { libc::close(MARK) };
    let mut found = false;
    engine.drain(u64::MAX, |_, frame| {
        let event = record::wire::Event::parse(frame).expect("a whole event");
        found |= event.header().pid == std::process::id();
        true
    });
    found
}

/// The maps that were made since `before` and whose names end with `name`.
fn maps(before: &BTreeSet<u32>, name: &str) -> Vec<MapHandle> {
    let is_new = |id: &u32| !before.contains(id);
    let new = map_ids().into_iter().filter(is_new);
    let maps = new.filter_map(|id| MapHandle::from_map_id(id).ok());
    maps.filter(|map| map.name().to_string_lossy().ends_with(name))
        .collect()
}

fn map(before: &BTreeSet<u32>, name: &str) -> MapHandle {
    let mut found = maps(before, name);
    assert_eq!(found.len(), 1, "maps named {name}");
    found.remove(0)
}

fn mended(what: &str) -> Vec<Breach> {
    vec![Breach {
        what: what.to_owned(),
        is_mended: true,
    }]
}

/// Changes the value of slot 0.
fn overwrite(map: &MapHandle, change: impl FnOnce(&mut [u8])) {
    let mut value = map
        .lookup(&[0; 4], MapFlags::ANY)
        .expect("it can be read")
        .expect("a value");
    change(&mut value);
    map.update(&[0; 4], &value, MapFlags::ANY)
        .expect("root may write it");
}

#[test]
fn what_others_change_in_the_maps_is_undone_and_reported() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let before = map_ids();
    let options = CaptureOptions::with_ring_bytes(1 << 20);
    // Process 1 is not this one, whose calls are to be seen.
    let mut engine = EbpfEngine::start(&plan(), &options, 1).expect("it starts");
    assert!(records(&mut engine));
    assert_eq!(engine.check(), []);

    // Nothing is watched any more.
    overwrite(&map(&before, ".bss"), |control| control[..64].fill(0));
    assert_eq!(engine.check(), mended("control.watched"));
    assert!(records(&mut engine));

    // This process becomes the daemon, whose calls are not recorded.
    let (watched, tgid) = (512 / 8, std::process::id().to_ne_bytes());
    overwrite(&map(&before, ".bss"), |control| {
        let one = 1u32.to_ne_bytes();
        let found = control[watched..].windows(4).position(|word| word == one);
        let place = watched + found.expect("daemon_tgid is 1");
        control[place..place + 4].copy_from_slice(&tgid);
    });
    let found = engine.check();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].what.starts_with("control.") && found[0].is_mended);
    assert!(records(&mut engine));

    // A table without rules.
    let empty = maps(&before, "tarsier_table");
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
        map_flags: libbpf_rs::libbpf_sys::BPF_F_MMAPABLE,
        ..Default::default()
    };
    let (bytes, name) = (empty[0].value_size(), Some("empty"));
    let empty = MapHandle::create(MapType::Array, name, 4, bytes, 1, &options).expect("a map");
    let fd = std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&empty));
    map(&before, "tables")
        .update(&[0; 4], &fd.to_ne_bytes(), MapFlags::ANY)
        .expect("root may write it");
    assert!(!records(&mut engine), "the change has no effect");
    assert_eq!(engine.check(), mended("map tables"));
    assert!(records(&mut engine));
    assert_eq!(engine.check(), []);

    // The rows of the table.
    let table = map(&before, "tarsier_table");
    let zero = vec![0; table.value_size() as usize];
    let refused = table.update(&[0; 4], &zero, MapFlags::ANY).unwrap_err();
    assert_eq!(refused.kind(), libbpf_rs::ErrorKind::PermissionDenied);
    assert!(records(&mut engine));

    // A change just before a replacement of the rules does not become part of it.
    overwrite(&map(&before, ".bss"), |control| control[..64].fill(0));
    engine.replace(&plan()).expect("the rules are the same");
    assert_eq!(engine.check(), mended("control.watched"));
    assert!(records(&mut engine));
}

/// An engine whose daemon is this process, and the maps that were there before.
fn own_engine() -> (EbpfEngine, BTreeSet<u32>) {
    let before = map_ids();
    let options = CaptureOptions::with_ring_bytes(1 << 20);
    let engine = EbpfEngine::start(&plan(), &options, std::process::id()).expect("it starts");
    (engine, before)
}

/// Numbers of the canary calls that came through the rings.
fn canaries(engine: &mut EbpfEngine) -> Vec<u64> {
    let mut found = Vec::new();
    engine.drain(u64::MAX, |_, frame| {
        let (kind, head) = record::wire::frame_kind(frame).expect("a frame");
        found.extend((kind == record::wire::FrameKind::Canary).then_some(head.id));
        true
    });
    found
}

#[test]
fn a_canary_call_shows_that_hooks_and_rings_work() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let (mut engine, before) = own_engine();
    assert_eq!(engine.canary(7), Some(true));
    assert_eq!(canaries(&mut engine), [7]);
    // The same call of another process is none.
    // SAFETY: the child makes two system calls and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no memory is passed.
        unsafe {
            libc::syscall(libc::SYS_sched_rr_get_interval, -1, 9u64);
            libc::_exit(0);
        }
    }
    let mut status = 1;
    // SAFETY: `status` lives; the child is this process's.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!((status, canaries(&mut engine)), (0, vec![]));
    // The hooks of single calls shall leave all to the hook of every call, which is not there.
    let every = std::mem::offset_of!(bpf::shared::control, every);
    overwrite(&map(&before, ".bss"), |control| control[every] = 1);
    assert_eq!(engine.canary(10), Some(false));
    assert_eq!(canaries(&mut engine), Vec::<u64>::new());
    assert_eq!(engine.check(), mended("control.every"));
    assert_eq!(engine.canary(11), Some(true));
    assert_eq!(canaries(&mut engine), [11]);
    engine.disarm();
    assert_eq!(engine.canary(12), None, "no hook is armed");
}

#[test]
fn the_kernel_detaches_no_hook_for_others() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let before = link_ids();
    let (engine, _) = own_engine();
    let own: Vec<u32> = link_ids().difference(&before).copied().collect();
    assert!(!own.is_empty());
    for id in own {
        // SAFETY: both calls take numbers alone; the descriptor is closed by its owner.
        let refused = unsafe {
            let fd = libbpf_rs::libbpf_sys::bpf_link_get_fd_by_id(id);
            assert!(fd >= 0, "link {id}");
            let link: std::os::fd::OwnedFd = std::os::fd::FromRawFd::from_raw_fd(fd);
            let fd = std::os::fd::AsRawFd::as_raw_fd(&link);
            libbpf_rs::libbpf_sys::bpf_link_detach(fd)
        };
        assert_eq!(refused, -libc::EOPNOTSUPP, "link {id}");
    }
    assert_eq!(engine.canary(1), Some(true));
}

#[test]
fn budgets_that_others_set_are_removed() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let (mut engine, before) = own_engine();
    engine
        .set_budgets(&[(1, 500)].into())
        .expect("they are set");
    assert_eq!(engine.check(), []);
    let rate = std::mem::offset_of!(bpf::shared::budget, rate);
    for rule in [0u32, 1] {
        let map = map(&before, "budgets");
        let mut value = vec![0; map.value_size() as usize];
        value[rate..rate + 4].copy_from_slice(&1u32.to_ne_bytes());
        map.update(&rule.to_ne_bytes(), &value, MapFlags::ANY)
            .expect("root may write it");
        assert_eq!(engine.check(), mended("map budgets"));
        assert_eq!(engine.check(), []);
    }
}

#[test]
fn events_that_are_counted_and_do_not_come_are_reported() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let (mut engine, before) = own_engine();
    assert_eq!(engine.check(), []);
    let map = map(&before, "cpu_states");
    overwrite(&map, |state| state[0] = state[0].wrapping_add(3));
    assert_eq!(engine.check(), [], "a program may still be at work");
    let found = engine.check();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].what.starts_with("number of events (+3"),
        "{found:?}"
    );
    assert_eq!(engine.check(), []);
}
