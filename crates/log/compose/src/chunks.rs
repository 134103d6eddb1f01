//! Arguments of execve, which precede their event as CHUNK frames in the ring of the same CPU.

use record::wire::{Chunk, Event, TARSIER_ARGUMENTS_MAX};
use std::io::Write;

/// Limit of the bytes kept for events that have not come, on all CPUs together. Further arguments are cut.
const BYTES_MAX: usize = 64 << 20;
/// Limit of the events of one CPU whose chunks can precede them in its ring: WORKS_PER_CPU of the programs.
const EVENTS_PER_CPU: usize = 4;
/// Number of calls of [`Chunks::grow_old`] after the last chunk of an event by which the event counts as lost.
const AGE_MAX: u8 = 10;
/// A buffer that is larger is freed after use.
const SPARE_BYTES_MAX: usize = 64 << 10;

/// The chunks of events that have not come yet.
#[derive(Default)]
pub(crate) struct Chunks {
    /// Incomplete events, in the order of their first chunks.
    pending: Vec<Pending>,
    /// Buffer of an event that has come.
    spare: Vec<u8>,
}

struct Pending {
    cpu: usize,
    id: u64,
    /// Number of the next chunk.
    seq: u32,
    /// Offset up to which the arguments have come.
    at: u64,
    arguments: Arguments,
    /// Whether a chunk is missing, so that the place of the next ones among the arguments is not known.
    is_broken: bool,
    age: u8,
}

/// The arguments of an execve, as far as they have come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Each argument ended by NUL; `[N bytes unreadable]` stands for memory that could not be read.
    pub(crate) bytes: Vec<u8>,
    /// Number of all arguments; `None` if it is not known.
    pub(crate) argc: Option<u64>,
    /// Number of bytes that are missing.
    pub(crate) cut_bytes: u64,
    /// Number of bytes that have come.
    come: u64,
}

impl Chunks {
    /// Takes a chunk from the ring of `cpu`.
    pub(crate) fn push(&mut self, cpu: usize, chunk: &Chunk<'_>) {
        let id = chunk.frame.id;
        if chunk.seq == 0 {
            self.forget(|pending| pending.cpu == cpu && pending.id == id);
        }

        let kept: usize = self.pending.iter().map(Pending::len).sum();
        let pending = self.of(cpu, id);
        pending.age = 0;
        let fits = kept + chunk.data.len() <= BYTES_MAX
            && chunk.at + chunk.data.len() as u64 <= TARSIER_ARGUMENTS_MAX.into();
        pending.is_broken |= chunk.seq != pending.seq || chunk.at < pending.at || !fits;
        pending.seq = chunk.seq.wrapping_add(1);
        if pending.is_broken {
            return;
        }

        let arguments = &mut pending.arguments;
        if chunk.at > pending.at {
            let unreadable = chunk.at - pending.at;
            // Writing to memory does not fail.
            let _ = write!(arguments.bytes, "[{unreadable} bytes unreadable]");
        }

        arguments.bytes.extend_from_slice(chunk.data);
        arguments.come += chunk.data.len() as u64;
        pending.at = chunk.at + chunk.data.len() as u64;
    }

    /// The chunks that wait for event `id`. If the event is new and too many of the CPU have not come, the oldest was
    /// lost.
    fn of(&mut self, cpu: usize, id: u64) -> &mut Pending {
        let is_it = |pending: &Pending| pending.cpu == cpu && pending.id == id;
        let place = self.pending.iter().position(is_it).unwrap_or_else(|| {
            let of_cpu = |pending: &&Pending| pending.cpu == cpu;
            if self.pending.iter().filter(of_cpu).count() >= EVENTS_PER_CPU {
                let oldest = self.pending.iter().find(of_cpu).map(|pending| pending.id);
                self.forget(|pending| pending.cpu == cpu && Some(pending.id) == oldest);
            }
            self.pending.push(Pending {
                cpu,
                id,
                seq: 0,
                at: 0,
                arguments: Arguments {
                    bytes: std::mem::take(&mut self.spare),
                    ..Arguments::default()
                },
                is_broken: false,
                age: 0,
            });
            self.pending.len() - 1
        });

        &mut self.pending[place]
    }

    fn forget(&mut self, is_gone: impl Fn(&Pending) -> bool) {
        self.pending.retain(|pending| !is_gone(pending));
    }

    /// Forgets chunks whose event was lost. Call it every second.
    pub(crate) fn grow_old(&mut self) {
        self.pending.iter_mut().for_each(|pending| pending.age += 1);
        self.forget(|pending| pending.age >= AGE_MAX);
    }

    /// The arguments of an event from the ring of `cpu`.
    pub(crate) fn take(&mut self, cpu: usize, event: &Event<'_>) -> Arguments {
        let id = event.header().frame.id;
        let is_it = |pending: &Pending| pending.cpu == cpu && pending.id == id;
        let place = self.pending.iter().position(is_it);
        let mut arguments = place.map_or_else(Arguments::default, |place| {
            self.pending.remove(place).arguments
        });
        if let Some([len, argc]) = event.arguments() {
            arguments.argc = (argc > 0).then_some(argc);
            arguments.cut_bytes = len.saturating_sub(arguments.come);
        }
        arguments
    }

    /// Takes the buffer of [`Arguments::bytes`] back.
    pub(crate) fn reuse(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES_MAX && bytes.capacity() > self.spare.capacity() {
            bytes.clear();
            self.spare = bytes;
        }
    }
}

impl Pending {
    fn len(&self) -> usize {
        self.arguments.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_frame::TestFrame;
    use record::wire::{tarsier_frame, TARSIER_PART_ARGUMENTS};
    use zerocopy::IntoBytes;

    fn chunk(id: u64, seq: u32, at: u64, data: &[u8]) -> Chunk<'_> {
        Chunk {
            frame: tarsier_frame {
                id,
                ..Default::default()
            },
            seq,
            at,
            data,
        }
    }

    /// Takes the arguments of event `id`, which has `len` bytes of them: their text, and the bytes that are missing.
    fn taken(chunks: &mut Chunks, cpu: usize, id: u64, len: u64) -> (String, u64) {
        let all = [len, 3];
        let mut frame = TestFrame::of_call(59).part(TARSIER_PART_ARGUMENTS, 0, all.as_bytes());
        frame.header.frame.id = id;
        let bytes = frame.bytes();
        let event = Event::parse(&bytes).expect("a whole event");
        let arguments = chunks.take(cpu, &event);
        assert_eq!(arguments.argc, Some(3));
        let text = String::from_utf8(arguments.bytes).expect("text");
        (text, arguments.cut_bytes)
    }

    #[test]
    fn chunks_become_the_arguments_of_their_event_even_if_those_of_others_come_between() {
        let mut chunks = Chunks::default();
        chunks.push(1, &chunk(7, 0, 0, b"cat\0"));
        chunks.push(1, &chunk(9, 0, 0, b"ls\0"));
        chunks.push(0, &chunk(8, 0, 0, b"id\0"));
        chunks.push(1, &chunk(7, 1, 4, b"x\0"));
        assert_eq!(taken(&mut chunks, 1, 7, 6), ("cat\0x\0".to_owned(), 0));
        assert_eq!(taken(&mut chunks, 1, 9, 3), ("ls\0".to_owned(), 0));
        assert_eq!(taken(&mut chunks, 1, 8, 3), (String::new(), 3));
        assert_eq!(taken(&mut chunks, 0, 8, 3), ("id\0".to_owned(), 0));
        assert_eq!(taken(&mut chunks, 0, 8, 3), (String::new(), 3));
    }

    #[test]
    fn what_did_not_fit_and_what_could_not_be_read_is_counted() {
        let mut chunks = Chunks::default();
        chunks.push(0, &chunk(7, 0, 0, b"cat\0a"));
        assert_eq!(taken(&mut chunks, 0, 7, 9), ("cat\0a".to_owned(), 4));
        chunks.push(0, &chunk(8, 0, 0, b"cat\0a"));
        chunks.push(0, &chunk(8, 1, 4101, b"z\0"));
        let text = "cat\0a[4096 bytes unreadable]z\0".to_owned();
        assert_eq!(taken(&mut chunks, 0, 8, 4103), (text, 4096));
    }

    #[test]
    fn arguments_end_where_a_chunk_is_missing() {
        let mut chunks = Chunks::default();
        chunks.push(0, &chunk(7, 0, 0, b"a\0"));
        chunks.push(0, &chunk(7, 2, 4, b"c\0"));
        chunks.push(0, &chunk(7, 3, 6, b"d\0"));
        assert_eq!(taken(&mut chunks, 0, 7, 8), ("a\0".to_owned(), 6));
        // The first was read by a daemon that was killed.
        chunks.push(0, &chunk(8, 1, 2, b"b\0"));
        assert_eq!(taken(&mut chunks, 0, 8, 4), (String::new(), 4));
    }

    #[test]
    fn chunks_whose_event_never_comes_are_given_up() {
        let mut chunks = Chunks::default();
        for id in 1..=5 {
            chunks.push(0, &chunk(id, 0, 0, b"a\0"));
        }
        assert_eq!(chunks.pending.len(), EVENTS_PER_CPU);
        assert_eq!(taken(&mut chunks, 0, 1, 2), (String::new(), 2));
        assert_eq!(taken(&mut chunks, 0, 5, 2), ("a\0".to_owned(), 0));
        for _ in 0..AGE_MAX {
            assert_eq!(chunks.pending.len(), 3);
            chunks.grow_old();
        }
        assert!(chunks.pending.is_empty());
    }

    #[test]
    fn chunks_of_all_cpus_together_take_a_bounded_space() {
        let data = [b'a'; 16384];
        let mut chunks = Chunks::default();
        for cpu in 0..16 {
            for seq in 0..512 {
                chunks.push(cpu, &chunk(7, seq, u64::from(seq) * 16384, &data));
            }
        }
        let kept: usize = chunks.pending.iter().map(Pending::len).sum();
        assert_eq!(kept, BYTES_MAX);
        assert_eq!(taken(&mut chunks, 15, 7, 8 << 20), (String::new(), 8 << 20));
    }
}
