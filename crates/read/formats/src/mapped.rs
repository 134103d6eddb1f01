//! Formats that map each event to one JSON object.

use super::parsed::Reader;
use super::value::Value;
use super::{Format, LogEvent, Refused};

/// Makes the object of an event.
type Map = fn(&mut Reader, &LogEvent<'_>) -> Value;

/// One object per event.
pub(super) struct Mapped {
    name: &'static str,
    map: Map,
    reader: Reader,
}

impl Mapped {
    pub(super) fn new(name: &'static str, map: Map) -> Mapped {
        Mapped {
            name,
            map,
            reader: Reader::default(),
        }
    }
}

impl Format for Mapped {
    fn name(&self) -> &'static str {
        self.name
    }

    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn event(&mut self, event: &LogEvent<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        let document = (self.map)(&mut self.reader, event);
        serde_json::to_writer(out, &document).map_err(|error| Refused(error.to_string()))
    }
}
