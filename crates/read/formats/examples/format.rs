//! Writes the events of a log as a format has them, one a line: `format FORMAT < LOG`. For `tests/siem`, which makes JSON
//! logs of ENRICHED ones.

use formats::{format, Format, LogEvent, Stamp};
use query::{Assembler, Dialect};
use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(mut format) = format(&name) else {
        return Err(io::Error::other(format!(
            "no format {name:?}: give one of {:?}",
            formats::FORMATS
        )));
    };

    let mut log = Vec::new();
    io::stdin().read_to_end(&mut log)?;
    let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
    let mut out = io::BufWriter::new(io::stdout());
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        if line.first() == Some(&b'{') {
            // A line of a JSON log is an event.
            one(line, stamp(line)?, format.as_mut(), &mut out)?;
            continue;
        }
        assembler.add(line);
        write(&mut assembler, format.as_mut(), &mut out)?;
    }

    assembler.finish();
    write(&mut assembler, format.as_mut(), &mut out)?;
    out.flush()
}

/// Time and serial of a line of a JSON log.
fn stamp(line: &[u8]) -> io::Result<Stamp> {
    let event: serde_json::Value = serde_json::from_slice(line)?;
    let seconds = event["time"].as_f64().unwrap_or_default();
    Ok(Stamp {
        sec: seconds as u64,
        msec: (seconds.fract() * 1000.0).round() as u32,
        serial: event["serial"].as_u64().unwrap_or_default(),
    })
}

/// Writes the events that are complete.
fn write(
    assembler: &mut Assembler,
    format: &mut dyn Format,
    out: &mut impl Write,
) -> io::Result<()> {
    while let Some(event) = assembler.pop() {
        let key = event.key();
        let stamp = Stamp {
            sec: key.sec,
            msec: key.msec,
            serial: key.serial,
        };
        one(event.text(), stamp, format, out)?;
    }
    Ok(())
}

fn one(
    lines: &[u8],
    stamp: Stamp,
    format: &mut dyn Format,
    out: &mut impl Write,
) -> io::Result<()> {
    let given = LogEvent {
        lines,
        place: None,
        host: "web1",
        stamp,
    };
    let mut line = Vec::new();
    format.event(&given, &mut line).map_err(io::Error::other)?;
    line.push(b'\n');
    out.write_all(&line)
}
