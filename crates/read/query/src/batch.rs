//! Complete events that another thread looks at.

use crate::event::{EventView, RecordSpan};

/// Events in the order in which they were complete, in memory that is used again.
#[derive(Debug, Default)]
pub struct Batch {
    text: Vec<u8>,
    places: Vec<RecordSpan>,
    objects: Vec<u8>,
    events: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    time: (u64, u32, u64),
    /// Length of the node's name, which comes before the lines.
    node_bytes: Option<usize>,
    text_end: usize,
    places_end: usize,
    objects_end: usize,
}

impl Batch {
    /// Adds an event.
    pub fn push(&mut self, event: EventView<'_>) {
        self.text.extend_from_slice(event.node.unwrap_or_default());
        self.text.extend_from_slice(event.text);
        self.places.extend_from_slice(event.places);
        self.objects.extend_from_slice(event.objects);
        self.events.push(Entry {
            time: event.time(),
            node_bytes: event.node.map(<[u8]>::len),
            text_end: self.text.len(),
            places_end: self.places.len(),
            objects_end: self.objects.len(),
        });
    }

    /// Bytes of the events' lines.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.objects.len()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Forgets the events.
    pub fn clear(&mut self) {
        self.text.clear();
        self.places.clear();
        self.objects.clear();
        self.events.clear();
    }

    /// The events.
    pub fn events(&self) -> impl Iterator<Item = EventView<'_>> {
        let (mut text_at, mut place_at, mut object_at) = (0, 0, 0);
        self.events.iter().map(move |entry| {
            let text = &self.text[text_at..entry.text_end];
            let places = &self.places[place_at..entry.places_end];
            let objects = &self.objects[object_at..entry.objects_end];
            (text_at, place_at) = (entry.text_end, entry.places_end);
            object_at = entry.objects_end;
            let (node, text) = text.split_at(entry.node_bytes.unwrap_or(0));
            let (sec, msec, serial) = entry.time;
            EventView {
                sec,
                msec,
                serial,
                node: entry.node_bytes.map(|_| node),
                text,
                places,
                objects,
            }
        })
    }
}
