//! Frames as the programs in the kernel make them, for tests.

use record::wire::{
    tarsier_event, tarsier_part, tarsier_part_flags, tarsier_part_tag, tarsier_result,
    TARSIER_FRAME_EVENT, TARSIER_FRAME_RESULT, TARSIER_WIRE_VERSION,
};
use zerocopy::IntoBytes;

/// An EVENT frame under construction.
pub(crate) struct TestFrame {
    pub(crate) header: tarsier_event,
    parts: Vec<u8>,
}

impl TestFrame {
    /// An event of the 64-bit x86 call with number `nr`, made by task 42, `cat`.
    pub(crate) fn of_call(nr: i32) -> TestFrame {
        let mut header = tarsier_event {
            arch: 0xc000_003e,
            nr,
            pid: 42,
            tid: 42,
            generation: 1,
            ..Default::default()
        };

        for (to, from) in header.comm.iter_mut().zip(b"cat") {
            *to = *from as _;
        }

        header.frame.kind = TARSIER_FRAME_EVENT as u16;
        header.frame.version = TARSIER_WIRE_VERSION as u16;
        TestFrame {
            header,
            parts: Vec::new(),
        }
    }

    /// Like [`TestFrame::of_call`], for the call with this name.
    pub(crate) fn of_named_call(name: &str) -> TestFrame {
        let nr = abi::syscall_number(abi::Arch::X86_64, name);
        TestFrame::of_call(nr.expect("a 64-bit x86 call") as i32)
    }

    /// Adds a part.
    pub(crate) fn part(self, tag: tarsier_part_tag, index: u8, data: &[u8]) -> TestFrame {
        self.flagged(tag, (index, 0), data)
    }

    /// Adds a part with this index and these flags.
    pub(crate) fn flagged(
        mut self,
        tag: tarsier_part_tag,
        (index, flags): (u8, tarsier_part_flags),
        data: &[u8],
    ) -> TestFrame {
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

    /// The bytes of the frame.
    pub(crate) fn bytes(mut self) -> Vec<u8> {
        self.header.frame.size = (size_of::<tarsier_event>() + self.parts.len()) as u32;
        [self.header.as_bytes(), &self.parts].concat()
    }
}

/// A RESULT frame for the operation whose event is `id`.
pub(crate) fn result_frame(id: u64, exit: i64) -> Vec<u8> {
    let mut result = tarsier_result {
        exit,
        ..Default::default()
    };
    result.frame.kind = TARSIER_FRAME_RESULT as u16;
    result.frame.version = TARSIER_WIRE_VERSION as u16;
    result.frame.size = size_of::<tarsier_result>() as u32;
    result.frame.id = id;
    result.as_bytes().to_vec()
}
