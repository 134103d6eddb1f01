//! Judges `tests/vm/ancestors`: what the log says of ancestors and labels is what the processes know themselves.

use std::path::Path;

use anyhow::{ensure, Result};
use testkit::ancestors;

/// Fewest processes of a log.
const PROCESSES_MIN: u64 = 1000;
/// Most numbers that the kernel can have given them: `pid_max` of the guest.
const PIDS_MAX: u64 = 600;

/// Judges the log of each engine.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let mut said = Vec::new();
    for engine in ["tracepoint", "trampoline"] {
        let log = dir.join(format!("{engine}.log"));
        let judged = ancestors::judge(&log, Path::new("/tmp/programs"));
        let judged = judged.map_err(|wrong| anyhow::anyhow!("{engine}: {wrong}"))?;
        ensure!(
            judged.partial == 0
                && judged.unlabelled == 0
                && judged.labels > 0
                && judged.processes >= PROCESSES_MIN
                && judged.pids < PIDS_MAX,
            "{engine}: {judged}"
        );
        said.push(format!("{engine}: {judged}"));
    }

    Ok(said.join("\n"))
}
