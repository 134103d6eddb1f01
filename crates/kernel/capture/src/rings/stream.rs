//! The rings of all CPUs as one stream of frames in order of time.

use crate::rings::Ring;
use record::wire::tarsier_frame;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use zerocopy::FromBytes;

/// Number of bytes read after which space is released: a reader that needs a second for them counts as gone
/// (bpf/overload.h).
const RELEASE_BYTES: u64 = 16 * 1024;

/// Reads the rings in order of time.
pub struct RingStream {
    rings: Vec<Ring>,
    limits: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    is_held_up: bool,
}

impl RingStream {
    /// A stream of these rings, one per CPU.
    pub fn new(rings: Vec<Ring>) -> RingStream {
        let limits = vec![0; rings.len()];
        let heap = BinaryHeap::with_capacity(rings.len());
        RingStream {
            rings,
            limits,
            heap,
            is_held_up: false,
        }
    }

    /// Whether all rings are empty, even of unfinished records.
    pub fn is_empty(&self) -> bool {
        self.rings.iter().all(|ring| ring.unread() == 0)
    }

    /// Whether the last pass met a record that is still being written, by a task that is preempted, say. What is behind
    /// it in that ring waits, so that frames of other CPUs may come first.
    pub fn is_held_up(&self) -> bool {
        self.is_held_up
    }

    /// Number of unread bytes in all rings.
    pub fn unread_bytes(&self) -> u64 {
        self.rings.iter().map(Ring::unread).sum()
    }

    /// Fill of the fullest ring, in parts per thousand.
    pub fn fill_per_mille(&self) -> u32 {
        let fill = |ring: &Ring| (ring.unread() * 1000 / ring.size()) as u32;
        self.rings.iter().map(fill).max().unwrap_or(0)
    }

    /// Passes every frame made up to `now_ns` to `take`, oldest first; later frames wait for the next pass. So a
    /// task's frames come in the order in which it made them, whichever CPUs it ran on: its earlier frames were in
    /// their rings before `now_ns` was read. `take` returns false to stop early. Returns the number of frames.
    pub fn drain(&mut self, now_ns: u64, mut take: impl FnMut(usize, &[u8]) -> bool) -> usize {
        let frames = self.pass(now_ns, RELEASE_BYTES, |cpu, _, frame| take(cpu, frame));
        self.rings.iter_mut().for_each(Ring::release);
        frames
    }

    /// Passes frames to `take` as [`drain`](Self::drain) does, but does not release their space; use
    /// [`RingStream::release_to`]. `take` also gets the position in the ring where the frame ends.
    pub fn drain_held(
        &mut self,
        now_ns: u64,
        take: impl FnMut(usize, u64, &[u8]) -> bool,
    ) -> usize {
        self.pass(now_ns, u64::MAX, take)
    }

    /// Passes the frames that were not read yet to `take`, and leaves them unread. Those of a ring come in their order.
    pub fn look_ahead(&mut self, mut take: impl FnMut(&[u8])) {
        let rings = self.rings.iter_mut();
        rings.for_each(|ring| ring.look_ahead(&mut take));
    }

    /// Releases the space of one ring up to a position that was read.
    pub fn release_to(&mut self, cpu: usize, position: u64) {
        if let Some(ring) = self.rings.get_mut(cpu) {
            ring.release_to(position);
        }
    }

    /// Sets the read position of a CPU's ring, unless it is already further on.
    pub(crate) fn skip_to(&mut self, cpu: usize, position: u64) {
        if let Some(ring) = self.rings.get_mut(cpu) {
            ring.skip_to(position);
        }
    }

    /// Releases all space that was read on CPUs where more than half of the ring is held. Before that, releases
    /// the positions that `give_up` returns, as long as it returns any.
    pub fn relieve(&mut self, mut give_up: impl FnMut() -> Option<Option<(usize, u64)>>) {
        let is_tight = |ring: &Ring| ring.held_bytes() > ring.size() / 2;
        while self.rings.iter().any(is_tight) {
            match give_up() {
                Some(Some((cpu, position))) => self.release_to(cpu, position),
                Some(None) => {}
                None => {
                    let tight = self.rings.iter_mut().filter(|ring| is_tight(ring));
                    return tight.for_each(Ring::release);
                }
            }
        }
    }

    /// Restores read positions that somebody else has overwritten. Returns whether there were any.
    pub(crate) fn restore(&mut self) -> bool {
        let changed = self.rings.iter_mut().map(Ring::restore);
        changed.fold(false, |any, changed| any | changed)
    }

    /// Size of each ring's data in bytes.
    pub fn ring_bytes(&self) -> u64 {
        self.rings.first().map_or(0, Ring::size)
    }

    fn pass(
        &mut self,
        now_ns: u64,
        release_bytes: u64,
        mut take: impl FnMut(usize, u64, &[u8]) -> bool,
    ) -> usize {
        self.heap.clear();

        // The end of each ring is read once: what is written from here on waits for the next pass.
        for cpu in 0..self.rings.len() {
            self.limits[cpu] = self.rings[cpu].produced();
            self.offer(cpu, now_ns);
        }

        let mut frames = 0;
        let mut unreleased = 0;
        while let Some(Reverse((_, cpu))) = self.heap.pop() {
            let Some(end) = self.rings[cpu].end_of_next(self.limits[cpu]) else {
                continue;
            };
            let Some(frame) = self.rings[cpu].peek(self.limits[cpu]) else {
                continue;
            };

            unreleased += frame.len() as u64;
            let go_on = take(cpu, end, frame);
            frames += 1;

            // Released in portions: programs take a reader that holds space for a second as gone.
            self.rings[cpu].pop();
            if unreleased >= release_bytes {
                self.rings.iter_mut().for_each(Ring::release);
                unreleased = 0;
            }
            if !go_on {
                break;
            }
            self.offer(cpu, now_ns);
        }

        let mut limits = self.rings.iter().zip(&self.limits);
        self.is_held_up = limits.any(|(ring, limit)| ring.is_held_up(*limit));
        frames
    }

    fn offer(&mut self, cpu: usize, now_ns: u64) {
        if let Some(frame) = self.rings[cpu].peek(self.limits[cpu]) {
            let time = frame_time(frame);
            if time <= now_ns {
                self.heap.push(Reverse((time, cpu)));
            }
        }
    }
}

/// Time of a frame (CLOCK_MONOTONIC, in nanoseconds). Frames that are too short to contain one come first; their
/// reader rejects them.
pub fn frame_time(frame: &[u8]) -> u64 {
    tarsier_frame::read_from_prefix(frame).map_or(0, |(head, _)| head.time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rings::ring::{fake, BUSY};
    use zerocopy::IntoBytes;

    fn frame(time_ns: u64, tag: u8) -> Vec<u8> {
        let head = tarsier_frame {
            time_ns,
            ..Default::default()
        };
        [head.as_bytes(), &[0, 0, 0, 0, 0, 0, 0, tag]].concat()
    }

    fn tags(stream: &mut RingStream, now_ns: u64) -> Vec<u8> {
        let mut tags = Vec::new();
        stream.drain(now_ns, |_, frame| {
            tags.push(frame[31]);
            true
        });
        tags
    }

    #[test]
    fn frames_of_all_cpus_come_in_order_of_time() {
        let (mut one, ring_one) = fake::ring(4096, 0);
        let (mut two, ring_two) = fake::ring(4096, 0);
        one.push(&frame(10, 1), 0);
        one.push(&frame(30, 3), 0);
        two.push(&frame(20, 2), 0);
        two.push(&frame(40, 4), 0);
        let mut stream = RingStream::new(vec![ring_one, ring_two]);
        assert_eq!(tags(&mut stream, 100), [1, 2, 3, 4]);
        assert!(stream.is_empty());
    }

    #[test]
    fn frames_made_after_the_pass_began_wait_for_the_next() {
        let (mut one, ring_one) = fake::ring(4096, 0);
        let (mut two, ring_two) = fake::ring(4096, 0);
        one.push(&frame(10, 1), 0);
        two.push(&frame(60, 3), 0);
        let mut stream = RingStream::new(vec![ring_one, ring_two]);
        assert_eq!(tags(&mut stream, 50), [1]);
        one.push(&frame(55, 2), 0);
        assert_eq!(tags(&mut stream, 100), [2, 3]);
    }

    #[test]
    fn a_record_that_is_being_written_holds_up_its_ring_and_is_told() {
        let (mut one, ring_one) = fake::ring(4096, 0);
        let (mut two, ring_two) = fake::ring(4096, 0);
        one.push(&frame(10, 1), BUSY);
        one.push(&frame(20, 2), 0);
        two.push(&frame(30, 3), 0);
        let mut stream = RingStream::new(vec![ring_one, ring_two]);
        assert!(tags(&mut stream, 5).is_empty());
        assert!(stream.is_held_up());
        assert_eq!(tags(&mut stream, 100), [3]);
        assert!(stream.is_held_up());
        let (mut three, ring_three) = fake::ring(4096, 0);
        three.push(&frame(40, 4), 0);
        let mut stream = RingStream::new(vec![ring_three]);
        assert_eq!(tags(&mut stream, 100), [4]);
        assert!(!stream.is_held_up());
    }

    #[test]
    fn room_that_is_held_is_given_back_up_to_where_it_is_asked_for() {
        let (mut one, ring) = fake::ring(4096, 0);
        for tag in 1..=3 {
            one.push(&frame(tag.into(), tag), 0);
        }
        let mut stream = RingStream::new(vec![ring]);
        let mut ends = Vec::new();
        stream.drain_held(100, |_, end, _| {
            ends.push(end);
            true
        });
        assert_eq!((stream.is_empty(), one.consumed()), (true, 0));
        stream.release_to(0, ends[1]);
        assert_eq!(one.consumed(), ends[1]);
        // Another reader would begin with what was not released.
        stream.release_to(0, ends[0]);
        assert_eq!(one.consumed(), ends[1], "room is not taken back");
    }

    #[test]
    fn room_is_given_back_all_the_same_when_more_than_half_a_ring_is_held() {
        let (mut one, ring) = fake::ring(4096, 0);
        let mut stream = RingStream::new(vec![ring]);
        let mut ends = Vec::new();
        for tag in 0..52 {
            one.push(&frame(tag.into(), tag), 0);
            stream.drain_held(100, |_, end, _| {
                ends.push(end);
                true
            });
        }
        let mut given_up = ends.iter().take(1);
        stream.relieve(|| given_up.next().map(|end| Some((0, *end))));
        assert_eq!(one.consumed(), ends[0], "the first one was enough");
        stream.relieve(|| None);
        assert_eq!(one.consumed(), ends[0]);
        one.push(&frame(100, 100), 0);
        stream.drain_held(100, |_, _, _| true);
        stream.relieve(|| None);
        assert_eq!(one.consumed(), ends[51] + 40);
    }

    #[test]
    fn a_position_that_another_process_has_written_is_put_back() {
        let (mut one, ring) = fake::ring(4096, 0);
        let mut stream = RingStream::new(vec![ring]);
        one.push(&frame(10, 1), 0);
        assert_eq!(tags(&mut stream, 100), [1]);
        let released = one.consumed();
        for written in [u64::MAX, 0] {
            one.consume_to(written);
            one.push(&frame(20, 2), 0);
            stream.drain_held(100, |_, _, _| true);
            stream.relieve(|| None);
            assert!(stream.restore());
            assert_eq!(one.consumed(), released);
            assert!(!stream.restore());
        }
    }

    #[test]
    fn a_reader_that_stops_loses_nothing() {
        let (mut one, ring) = fake::ring(4096, 0);
        for tag in 1..=3 {
            one.push(&frame(tag.into(), tag), 0);
        }
        let mut stream = RingStream::new(vec![ring]);
        let mut first = Vec::new();
        stream.drain(100, |_, frame| {
            first.push(frame[31]);
            false
        });
        assert_eq!(first, [1]);
        assert_eq!(tags(&mut stream, 100), [2, 3]);
    }
}
