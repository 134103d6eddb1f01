//! The stamp that identifies an event.

use crate::put;

/// Time and serial, which together identify an event: `audit(SEC.MSEC:SERIAL)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Seconds since 1970.
    pub sec: u64,
    /// Milliseconds, 0 to 999.
    pub msec: u16,
    /// Unique together with the time.
    pub serial: u32,
}

impl Stamp {
    /// The stamp of a time given in nanoseconds since 1970 (CLOCK_REALTIME).
    pub fn from_unix_ns(unix_ns: u64, serial: u32) -> Stamp {
        let (sec, below_ns) = (unix_ns / 1_000_000_000, unix_ns % 1_000_000_000);
        Stamp {
            sec,
            msec: (below_ns / 1_000_000) as u16,
            serial,
        }
    }

    /// Appends `audit(SEC.MSEC:SERIAL): `.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        self.write_time(out);
        self.write_serial(out);
    }

    pub(crate) fn write_time(self, out: &mut Vec<u8>) {
        put::text(out, "audit(");
        put::decimal(out, self.sec);
        out.push(b'.');
        put::padded(out, self.msec.into(), 3);
        out.push(b':');
    }

    /// Appends `SEC.MSEC:SERIAL`, by which a record names another event.
    pub(crate) fn write_id(self, out: &mut Vec<u8>) {
        put::decimal(out, self.sec);
        out.push(b'.');
        put::padded(out, self.msec.into(), 3);
        out.push(b':');
        put::decimal(out, self.serial.into());
    }

    pub(crate) fn write_serial(self, out: &mut Vec<u8>) {
        put::decimal(out, self.serial.into());
        put::text(out, "): ");
    }
}
