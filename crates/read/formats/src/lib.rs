//! Forms of events for other programs: ECS, OCSF, JSON.
//!
//! A format is a pure function from the lines of one event to bytes: the same lines give the same bytes, since a batch
//! that the forwarder could not send is made again from the log.

mod account;
mod act;
mod changes;
mod direct;
mod ecs;
mod facts;
mod item;
mod json;
mod lineage;
mod mapped;
mod ocsf;
mod parsed;
mod peer;
mod raw;
mod rest;
mod row;
mod value;
mod verdict;
mod which;

pub use json::Json;
pub use raw::Raw;

use mapped::Mapped;

/// One event of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogEvent<'a> {
    /// Lines of the event as in the log (RAW, ENRICHED or JSON), each with its newline.
    pub lines: &'a [u8],
    /// Place of the event, if the log is one that positions are kept for.
    pub place: Option<Place>,
    /// Name of the host if no line has `node=`; empty if it is not known.
    pub host: &'a str,
    /// Time and serial of the event.
    pub stamp: Stamp,
}

impl LogEvent<'_> {
    /// Identifier of the event that no other event of any host has: its place, else its host, time and serial.
    fn uid(&self, host: &str) -> String {
        let Stamp { sec, msec, serial } = self.stamp;
        match self.place {
            Some(place) => format!("{:016x}/{}/{}", place.series, place.file, place.start),
            None => format!("{host}/{sec}.{msec:03}:{serial}"),
        }
    }
}

/// Place of an event in the numbered log files of a host.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The series of the file: one numbering of log files.
    pub series: u64,
    /// Number of the log file in the series.
    pub file: u64,
    /// First byte of the event in its file.
    pub start: u64,
}

/// Time and serial of an event: `msg=audit(SEC.MSEC:SERIAL)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds since 1970.
    pub sec: u64,
    /// Milliseconds.
    pub msec: u32,
    /// Serial number.
    pub serial: u64,
}

/// Reason why an event has no form in a format. The event goes to the dead-letter file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// A form of events at the destination.
pub trait Format: Send {
    /// Name as the configuration has it.
    fn name(&self) -> &'static str;

    /// Media type of the bytes, such as `application/json`.
    fn content_type(&self) -> &'static str;

    /// Whether the log's own bytes travel, so that seals of the log can be checked at the destination.
    fn carries_seals(&self) -> bool {
        false
    }

    /// Appends the event to `out`, without a newline at its end.
    ///
    /// # Errors
    /// The event cannot be expressed. What was appended is taken away by the caller.
    fn event(&mut self, event: &LogEvent<'_>, out: &mut Vec<u8>) -> Result<(), Refused>;
}

/// Names of the formats, as `format =` takes them.
pub const FORMATS: &[&str] = &["raw", "json", "ecs", "ecs-auditbeat", "ocsf"];

/// The format with this name; `None` if there is none.
pub fn format(name: &str) -> Option<Box<dyn Format>> {
    match name {
        "raw" => Some(Box::new(Raw)),
        "json" => Some(Box::<Json>::default()),
        "ecs" => Some(Box::new(Mapped::new("ecs", ecs::map))),
        "ecs-auditbeat" => Some(Box::new(Mapped::new(
            "ecs-auditbeat",
            ecs::map_as_auditbeat,
        ))),
        "ocsf" => Some(Box::new(Mapped::new("ocsf", ocsf::map))),
        _ => None,
    }
}
