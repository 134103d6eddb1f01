//! Frames: what a BPF program writes is read back, and no input makes the reader panic.

use proptest::prelude::*;
use record::record::{ObjPid, Syscall, UringOp};
use record::wire::*;
use zerocopy::IntoBytes;

/// Builds an EVENT frame as a BPF program does.
struct FrameBuilder {
    header: tarsier_event,
    parts: Vec<u8>,
}

impl FrameBuilder {
    fn new() -> FrameBuilder {
        let mut header = tarsier_event {
            arch: 0xc000_003e,
            nr: 257,
            exit: -2,
            pid: 42,
            // SYS_SOCKET of socketcall(2).
            args: [1, 0, 0, 0, 0, 0],
            ..Default::default()
        };
        for (to, from) in header.comm.iter_mut().zip(b"cat") {
            *to = *from as _;
        }
        header.frame.kind = TARSIER_FRAME_EVENT as u16;
        header.frame.version = TARSIER_WIRE_VERSION as u16;
        header.frame.id = 7;
        FrameBuilder {
            header,
            parts: Vec::new(),
        }
    }

    fn part(
        mut self,
        tag: tarsier_part_tag,
        index: u8,
        flags: tarsier_part_flags,
        data: &[u8],
    ) -> FrameBuilder {
        let head = tarsier_part {
            tag: tag as u16,
            index,
            flags: flags as u8,
            len: data.len() as u32,
        };
        self.parts.extend_from_slice(head.as_bytes());
        self.parts.extend_from_slice(data);
        self.parts.resize(self.parts.len().next_multiple_of(8), 0);
        self.header.parts += 1;
        self
    }

    fn build(mut self) -> Vec<u8> {
        self.header.frame.size = (size_of::<tarsier_event>() + self.parts.len()) as u32;
        let mut frame = self.header.as_bytes().to_vec();
        frame.extend_from_slice(&self.parts);
        frame
    }
}

fn inode_and(walk: &[u8]) -> Vec<u8> {
    let inode = tarsier_inode {
        ino: 5,
        dev: 0x19,
        valid: 1,
        ..Default::default()
    };
    [inode.as_bytes(), walk].concat()
}

/// An event with every kind of part.
fn full_event() -> Vec<u8> {
    let socketcall = [2_u32, 1, 0, 0, 0, 0];
    let obj_pid = tarsier_obj_pid {
        pid: 9,
        auid: u32::MAX,
        ..Default::default()
    };
    FrameBuilder::new()
        .part(TARSIER_PART_EXE, 0, 0, b"cat\0bin\0usr\0")
        .part(TARSIER_PART_CWD, 0, TARSIER_PART_DELETED, b"gone\0")
        .part(TARSIER_PART_PATH, 0, 0, b"x")
        .part(TARSIER_PART_PATH, 1, TARSIER_PART_UNREADABLE, b"")
        .part(TARSIER_PART_DIR, 1, 0, &inode_and(b"watch\0"))
        .part(TARSIER_PART_FILE, 0, 0, &inode_and(b"passwd\0etc\0"))
        .part(TARSIER_PART_SOCKADDR, 0, 0, b"\x10\0\0\0\0\0\0\0\0\0\0\0")
        .part(TARSIER_PART_PROCTITLE, 0, 0, b"cat\0x\0")
        .part(TARSIER_PART_ARGUMENTS, 0, 0, [6_u64, 2].as_bytes())
        .part(TARSIER_PART_FD_PAIR, 0, 0, [3_i32, -1].as_bytes())
        .part(TARSIER_PART_OBJ_PID, 0, 0, obj_pid.as_bytes())
        .part(
            TARSIER_PART_CAPSET,
            0,
            0,
            tarsier_caps {
                permitted: 1,
                ..Default::default()
            }
            .as_bytes(),
        )
        .part(
            TARSIER_PART_BPRM_FCAPS,
            0,
            0,
            tarsier_fcaps {
                file_version: 2,
                ..Default::default()
            }
            .as_bytes(),
        )
        .part(TARSIER_PART_MODULE, 0, 0, b"dummy")
        .part(TARSIER_PART_OPENED, 0, 0, [1_u32, 3].as_bytes())
        .part(TARSIER_PART_PROGRAM, 0, 0, 7_u32.as_bytes())
        .part(
            TARSIER_PART_OPEN_HOW,
            0,
            0,
            [0o102_u64, 0o640, 4].as_bytes(),
        )
        .part(
            TARSIER_PART_CANDIDATES,
            0,
            0,
            tarsier_candidates {
                page: 1,
                list: 2,
                mask: 3,
            }
            .as_bytes(),
        )
        .part(TARSIER_PART_EXEC_FILE, 0, 0, &inode_and(b"/bin/sh\0"))
        .part(TARSIER_PART_CWD_INODE, 0, 0, &inode_and(b""))
        .part(TARSIER_PART_ROOT, 0, 0, b"jail\0")
        .part(TARSIER_PART_ABOVE, 0, 0, [7_u64, 0x19, 2, 0x19].as_bytes())
        .part(TARSIER_PART_ABOVE, 0, 0, [9_u64, 0x20].as_bytes())
        .part(TARSIER_PART_SOCKETCALL, 0, 0, socketcall.as_bytes())
        .build()
}

fn chunk(seq: u32, data: &[u8]) -> Vec<u8> {
    let mut head = tarsier_chunk {
        at: 3 * u64::from(seq),
        seq,
        len: data.len() as u32,
        ..Default::default()
    };
    head.frame.kind = TARSIER_FRAME_CHUNK as u16;
    head.frame.version = TARSIER_WIRE_VERSION as u16;
    head.frame.id = 7;
    head.frame.size = (size_of::<tarsier_chunk>() + data.len()).next_multiple_of(8) as u32;
    let mut frame = head.as_bytes().to_vec();
    frame.extend_from_slice(data);
    frame.resize(head.frame.size as usize, 0);
    frame
}

/// Calls every getter; returns the number of bytes seen, so that nothing is optimised away.
fn use_everything(frame: &[u8]) -> usize {
    let mut seen = frame_kind(frame).is_ok() as usize;
    if let Ok(chunk) = Chunk::parse(frame) {
        seen += chunk.data.len();
    }
    let Ok(event) = Event::parse(frame) else {
        return seen;
    };
    assert_eq!(event.parts().count(), event.header().parts as usize);
    let mut out = Vec::new();
    for part in event.parts() {
        part.walked(&mut out);
    }
    for index in 0..3 {
        let both = [event.dir(index), event.file(index)];
        both.into_iter()
            .flatten()
            .for_each(|part| part.walked(&mut out));
        seen += event.path(index).map_or(0, |part| part.data.len());
    }
    let texts = [
        event.exe(),
        event.cwd(),
        event.root(),
        event.sockaddr(),
        event.proctitle(),
        event.module(),
    ];
    seen += texts
        .iter()
        .flatten()
        .map(|part| part.data.len())
        .sum::<usize>();
    seen += event.fd_pair().is_some() as usize + event.obj_pid().is_some() as usize;
    seen += event.program().is_some() as usize;
    seen += event.capset().is_some() as usize + event.fcaps().is_some() as usize;
    seen += event.open_how().is_some() as usize + event.cwd_inode().is_some() as usize;
    seen += event.exec_file().map_or(0, |file| file.interpreter.len());
    seen += event.socketcall().map_or(0, |(count, _)| count as usize);
    seen + out.len() + event.candidates().count() + event.comm().len() + event.tty().len()
}

#[test]
fn every_part_of_an_event_is_read_back() {
    let frame = full_event();
    let event = Event::parse(&frame).expect("a valid frame");
    let walked = |part: Option<Part<'_>>| {
        let mut out = Vec::new();
        part.expect("the part").walked(&mut out);
        String::from_utf8(out).expect("UTF-8")
    };
    assert_eq!(
        (event.header().pid, event.comm(), event.tty(), event.exit()),
        (42, &b"cat"[..], &b""[..], Some(-2))
    );
    assert_eq!(walked(event.exe()), "/usr/bin/cat");
    assert_eq!(walked(event.cwd()), "/gone (deleted)");
    assert_eq!(walked(event.root()), "/jail");
    let above: Vec<(u64, u32)> = event.above().collect();
    assert_eq!(above, [(7, 0x19), (2, 0x19), (9, 0x20)]);
    assert_eq!(event.path(0).map(|part| part.data), Some(&b"x"[..]));
    assert!(event.path(1).is_some_and(|part| part.is_unreadable()));
    assert!(event.dir(0).is_none() && event.file(1).is_none());
    let mut out = Vec::new();
    event.file(0).expect("the file").walked(&mut out);
    event.dir(1).expect("the directory").walked(&mut out);
    assert_eq!(out, b"/etc/passwd/watch");
    assert_eq!(event.arguments(), Some([6, 2]));
    assert_eq!(event.opened(), Some([1, 3]));
    assert_eq!(event.program(), Some(7));
    assert_eq!(event.fd_pair(), Some([3, -1]));
    assert_eq!(
        event.obj_pid().map(|obj| (obj.pid, obj.auid)),
        Some((9, u32::MAX))
    );
    assert_eq!(event.capset().map(|caps| caps.permitted), Some(1));
    assert_eq!(event.fcaps().map(|caps| caps.file_version), Some(2));
    assert_eq!(event.module().map(|part| part.data), Some(&b"dummy"[..]));
    assert_eq!(event.open_how(), Some([0o102, 0o640, 4]));
    assert_eq!(
        event
            .candidates()
            .map(|row| (row.page, row.list, row.mask))
            .collect::<Vec<_>>(),
        [(1, 2, 3)]
    );
    assert_eq!(
        event
            .exec_file()
            .map(|file| (file.inode.ino, file.interpreter)),
        Some((5, &b"/bin/sh"[..]))
    );
    assert_eq!(event.cwd_inode().map(|inode| inode.dev), Some(0x19));
    assert_eq!(event.socketcall(), Some((3, [2, 1, 0, 0, 0, 0])));
}

#[test]
fn records_are_made_from_an_event() {
    let frame = full_event();
    let event = Event::parse(&frame).expect("a valid frame");
    let syscall = Syscall::from_event(&event, 3, Some(b"/usr/bin/cat"), None, Some(b"k"));
    assert_eq!(
        (syscall.nr, syscall.exit, syscall.pid, syscall.comm),
        (257, Some(-2), 42, &b"cat"[..])
    );
    assert_eq!(
        (syscall.items, syscall.tty, syscall.key),
        (3, &b""[..], Some(&b"k"[..]))
    );
    assert_eq!(
        UringOp::from_event(&event, 0, None, None, None).result,
        Some((false, -2))
    );
    let objects: Vec<_> = ObjPid::from_event(&event)
        .map(|obj| (obj.opid, obj.oauid, obj.ocomm))
        .collect();
    assert_eq!(objects, [(9, u32::MAX, &b""[..])]);
    let mut no_return = FrameBuilder::new();
    no_return.header.flags = TARSIER_NO_RETURN;
    let frame = no_return.build();
    let event = Event::parse(&frame).expect("a valid frame");
    assert_eq!(Syscall::from_event(&event, 0, None, None, None).exit, None);
}

#[test]
fn a_chunk_is_read_back() {
    let frame = chunk(3, b"abc");
    let chunk = Chunk::parse(&frame).expect("a valid frame");
    assert_eq!(
        (chunk.frame.id, chunk.seq, chunk.at, chunk.data),
        (7, 3, 9, &b"abc"[..])
    );
    assert!(matches!(Event::parse(&frame), Err(WireError::Kind(2))));
}

#[test]
fn what_is_wrong_with_a_frame_is_said() {
    let parse = |frame: &[u8]| Event::parse(frame).map(|_| ()).expect_err("malformed");
    let part = |tag, data: &[u8]| parse(&FrameBuilder::new().part(tag, 0, 0, data).build());
    assert_eq!(
        parse(&full_event()[..10]),
        WireError::Short { have: 10, need: 24 }
    );
    assert!(matches!(
        parse(&full_event()[..512]),
        WireError::Size { have: 512, .. }
    ));
    assert_eq!(
        part(99, b""),
        WireError::Tag {
            part: 0,
            at: 272,
            tag: 99
        }
    );
    assert_eq!(
        part(TARSIER_PART_FD_PAIR, b"1234"),
        WireError::PartLength {
            part: 0,
            at: 272,
            tag: 9,
            len: 4
        }
    );
    assert!(matches!(
        part(TARSIER_PART_PATH, &[1; 4097]),
        WireError::PartLength { .. }
    ));
    let mut missing = FrameBuilder::new();
    missing.header.parts = 1;
    assert_eq!(
        parse(&missing.build()),
        WireError::PartBounds { part: 0, at: 272 }
    );
    let mut trailing = FrameBuilder::new().part(TARSIER_PART_PATH, 0, 0, b"x");
    trailing.header.parts = 0;
    assert_eq!(parse(&trailing.build()), WireError::Trailing(16));
    let mut newer = FrameBuilder::new();
    let version = TARSIER_WIRE_VERSION as u16 + 1;
    newer.header.frame.version = version;
    assert_eq!(parse(&newer.build()), WireError::Version(version));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        use_everything(&bytes);
    }

    #[test]
    fn flipped_bits_of_valid_frames_never_panic(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..20),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        fix_size in any::<bool>(),
    ) {
        for mut frame in [full_event(), chunk(0, b"0123456789")] {
            for (place, bit) in &flips {
                let place = place.index(frame.len());
                frame[place] ^= 1 << bit;
            }
            if let Some(cut) = cut {
                frame.truncate(cut.index(frame.len()));
            }
            if fix_size && frame.len() >= 4 {
                let size = frame.len() as u32;
                frame[..4].copy_from_slice(&size.to_ne_bytes());
            }
            use_everything(&frame);
        }
    }

    #[test]
    fn a_frame_is_read_alike_at_any_alignment(shift in 0..8_usize) {
        let frame = full_event();
        let mut room = vec![0; shift];
        room.extend_from_slice(&frame);
        prop_assert_eq!(use_everything(&room[shift..]), use_everything(&frame));
    }

    #[test]
    fn a_walk_of_any_bytes_is_an_absolute_path(data in proptest::collection::vec(any::<u8>(), 0..300), flags in any::<u8>()) {
        let mut out = Vec::new();
        walked_path(&data, flags, &mut out);
        prop_assert_eq!(out[0], b'/');
        prop_assert!(!out.contains(&0));
    }
}

/// A CGROUP frame that says it has a name of `len` bytes.
fn cgroup_frame(name: &[u8], len: usize, flags: u16) -> Vec<u8> {
    let mut header = tarsier_cgroup {
        id: 20,
        parent: 10,
        len: len as u16,
        flags,
        ..Default::default()
    };
    header.frame.kind = TARSIER_FRAME_CGROUP as u16;
    header.frame.version = TARSIER_WIRE_VERSION as u16;
    let padded = name.len().next_multiple_of(8);
    header.frame.size = (size_of::<tarsier_cgroup>() + padded) as u32;
    let mut frame = header.as_bytes().to_vec();
    frame.extend_from_slice(name);
    frame.resize(header.frame.size as usize, 0);
    frame
}

#[test]
fn a_cgroup_has_a_name_that_a_directory_can_have() {
    let frame = cgroup_frame(b"a.service", 9, 1);
    let expected = CgroupFrame {
        id: 20,
        parent: 10,
        is_removed: true,
        is_of_root: false,
        name: b"a.service",
    };
    assert_eq!(CgroupFrame::parse(&frame), Ok(expected));
    let is_refused = |name: &[u8], len, flags| {
        let frame = cgroup_frame(name, len, flags);
        let is_refused = CgroupFrame::parse(&frame).is_err();
        assert!(is_refused, "{name:?} {len} {flags}");
    };
    is_refused(b"a", 1, 4);
    is_refused(b"", 0, 0);
    is_refused(b"a/b", 3, 0);
    is_refused(b"a\0b", 3, 0);
    is_refused(b"a", 9, 0);
    is_refused(&[b'a'; 256], 256, 0);
    assert!(CgroupFrame::parse(&cgroup_frame(&[b'a'; 255], 255, 0)).is_ok());
}

proptest! {
    #[test]
    fn no_cgroup_frame_makes_the_reader_panic(
        name in prop::collection::vec(any::<u8>(), 0..300),
        len in 0..400_usize,
        flags in 0..5_u16,
        cut in 0..60_usize,
    ) {
        let frame = cgroup_frame(&name, len, flags);
        if let Ok(parsed) = CgroupFrame::parse(&frame) {
            prop_assert_eq!(parsed.name, &name[..len]);
        }
        prop_assert!(CgroupFrame::parse(&frame[..frame.len() - cut.min(frame.len())]).is_err() || cut == 0);
    }
}

/// A PROCESS frame with an executable and a command line.
fn process_frame(change: u32, title: &[u8]) -> Vec<u8> {
    let mut parts = Vec::new();
    for (tag, data) in [
        (TARSIER_PART_EXE, &b"sh\0bin\0"[..]),
        (TARSIER_PART_PROCTITLE, title),
    ] {
        let part = tarsier_part {
            tag: tag as u16,
            len: data.len() as u32,
            ..Default::default()
        };
        parts.extend_from_slice(part.as_bytes());
        parts.extend_from_slice(data);
        parts.resize(parts.len().next_multiple_of(8), 0);
    }
    let mut header = tarsier_process {
        start_time_ns: 70,
        pid: 7,
        parts: 2,
        image: 3,
        maker_start_ns: 10,
        maker: 1,
        change,
        ..Default::default()
    };
    header.frame.kind = TARSIER_FRAME_PROCESS as u16;
    header.frame.version = TARSIER_WIRE_VERSION as u16;
    header.frame.size = (size_of::<tarsier_process>() + parts.len()) as u32;
    [header.as_bytes(), &parts].concat()
}

#[test]
fn a_process_frame_tells_what_became_of_a_process() {
    let process = |pid, start_ns| ProcessId { start_ns, pid };
    let parse = |change| {
        let frame = process_frame(change, b"sh\0-x\0");
        let parsed = ProcessFrame::parse(&frame).expect("a frame");
        assert_eq!((parsed.process, parsed.image), (process(7, 70), 3));
        match parsed.change {
            ProcessChange::Executed(executed)
            | ProcessChange::Found(_, executed)
            | ProcessChange::Above(_, executed) => {
                assert_eq!(executed.exe.map(|part| part.data), Some(&b"sh\0bin\0"[..]));
                assert_eq!(executed.title.map(|part| part.data), Some(&b"sh\0-x\0"[..]));
                None
            }
            ProcessChange::Made(maker) | ProcessChange::Kernel(maker) => Some(maker),
            ProcessChange::Ended => None,
        }
    };
    for change in [TARSIER_PROCESS_MADE, TARSIER_PROCESS_KERNEL] {
        assert_eq!(parse(change), Some(process(1, 10)));
    }
    for change in [
        TARSIER_PROCESS_EXECUTED,
        TARSIER_PROCESS_FOUND,
        TARSIER_PROCESS_ABOVE,
        TARSIER_PROCESS_ABOVE,
        TARSIER_PROCESS_ENDED,
    ] {
        assert_eq!(parse(change), None);
    }
    for change in [0, 7] {
        let frame = process_frame(change, b"");
        assert_eq!(
            ProcessFrame::parse(&frame).err(),
            Some(WireError::Process(change))
        );
    }
    // Longer than a command line can be.
    let frame = process_frame(TARSIER_PROCESS_EXECUTED, &[b'a'; 129]);
    assert!(ProcessFrame::parse(&frame).is_err());
}

#[test]
fn frames_that_follow_each_other_are_told_apart() {
    let (one, other) = (
        process_frame(1, b"a"),
        process_frame(2, b"longer than that"),
    );
    let both = [one.clone(), other.clone()].concat();
    let split: Result<Vec<&[u8]>, _> = frames(&both).collect();
    assert_eq!(split, Ok(vec![&one[..], &other[..]]));
    for cut in [1, both.len() - 30] {
        let split: Result<Vec<&[u8]>, _> = frames(&both[..both.len() - cut]).collect();
        assert!(split.is_err(), "{cut}");
    }
    // A size that is none does not keep the reader in one place.
    let mut broken = both;
    broken[..4].copy_from_slice(&[0; 4]);
    assert!(frames(&broken).count() < 10);
    assert_eq!(frames(&[]).count(), 0);
}
