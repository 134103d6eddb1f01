//! Reads the facts of an event from its records: as ausearch and aureport do, or without `--compat`.

use crate::event::{Event, EventView, Record};
use crate::facts::{Facts, Wanted};
use crate::walk::{Malformed, Walk};
use crate::{avc, calls, messages, own, Dialect};

impl<'e> Facts<'e> {
    /// Reads the wanted facts. In the dialect of ausearch, `None` if a record lacks a field that it requires,
    /// because it drops such events. Otherwise, the facts that could be read.
    pub fn read(event: &'e Event, wanted: &Wanted, dialect: Dialect) -> Option<Facts<'e>> {
        Facts::read_view(event.view(), wanted, dialect)
    }

    /// Like [`Facts::read`], for a borrowed event.
    pub fn read_view(event: EventView<'e>, wanted: &Wanted, dialect: Dialect) -> Option<Facts<'e>> {
        if !dialect.is_compat() {
            return Some(own::read(event, wanted));
        }
        let mut facts = Facts::default();
        for record in event.records() {
            facts.record(record, wanted, dialect).ok()?;
        }
        Some(facts)
    }

    fn record(
        &mut self,
        record: Record<'e>,
        wanted: &Wanted,
        dialect: Dialect,
    ) -> Result<(), Malformed> {
        let walk = Walk::new(record.text);
        match record.kind {
            1300 => calls::syscall(self, walk, wanted),
            1307 => calls::cwd(self, calls::behind_head(record), wanted),
            1402 => calls::avc_path(self, walk, wanted),
            1302 => calls::path(self, calls::behind_head(record), wanted),
            1005 | 1100..=1106 | 1108..=1199 | 2100..=2999 => {
                messages::user(self, walk, record.kind, wanted, None)
            }
            1306 => calls::sockaddr(self, walk, wanted, dialect),
            1006 => messages::login(self, walk, wanted),
            1303 | 1318 => {
                calls::object(self, walk, wanted);
                Ok(())
            }
            1200..=1203 | 1205 | 1206 => messages::daemon(self, walk, wanted),
            1207 | 1208 => messages::daemon_connection(self, walk, wanted),
            1305 => {
                let result = messages::simple(self, walk, true, wanted);
                // Only newer kernels name a path here.
                let _ = calls::avc_path(self, walk, wanted);
                result
            }
            1400 | 1107 => avc::avc(self, walk, record.kind, wanted),
            1324 => calls::packet(self, walk, wanted),
            1336 => calls::uring(self, walk, wanted),
            1328 | 1338 | 1702 => calls::task(self, walk, wanted),
            1326 | 1700 | 1701 => messages::kernel_anomaly(self, walk, record.kind, wanted),
            1403..=1417 => messages::simple(self, walk, false, wanted),
            1800..=1805 => messages::integrity(self, walk, wanted, dialect),
            1325 | 1335 => calls::kernel(self, walk, wanted),
            1319 => messages::tty(self, walk, wanted, dialect),
            _ => Ok(()),
        }
    }
}
