//! Decodes the frames of the BPF programs, encodes records as log lines, and parses log lines. No I/O.
//!
//! * [`wire`]: the frames that BPF programs write, checked and borrowed.
//! * [`record`]: the records that Tarsier itself writes, with the kernel's field order, spelling and encodings.
//! * [`Encoder`]: makes complete log lines of records, in one [`Format`]: RAW, ENRICHED or JSON.
//! * [`text`]: parses log lines and the kernel's netlink messages into fields and typed records.
//! * [`human`]: one line per event, for people.
//!
//! Encoding an event allocates nothing once the reused buffers have grown (see `tests/allocation.rs`).

mod container_names;
mod controls;
mod encode;
mod enrich;
mod hashes;
pub mod human;
mod interpretations;
mod json;
mod labels;
mod names;
mod pending;
mod process;
pub mod put;
pub mod record;
mod remembered;
mod sockaddr;
mod stamp;
mod tasks;
pub mod text;
pub mod wire;
mod workload;

pub use abi::RecordType;
pub use container_names::ContainerNames;
pub use controls::without_controls;
pub use encode::{Encoder, EventWriter, Format};
pub use hashes::{Digests, FileHash, HashedFile, NoDigest, Verity, SHA256_BYTES};
pub use names::{NameAnswer, NameCache, NameTable, Names, NoNames};
pub use process::{Ancestor, AncestorsText, ProcessText, Program};
pub use sockaddr::Sockaddr as SockaddrView;
pub use stamp::Stamp;
pub use workload::WorkloadText;
