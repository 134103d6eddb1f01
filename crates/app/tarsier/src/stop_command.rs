//! `tarsier stop`.

use crate::ctl;
use anyhow::{bail, Context, Result};
use cli::messages::report;
use cli::StopArgs;
use daemon::protocol::socket_path;
use daemon::protocol::{Answer, Request};
use daemon::{remove_left, Instance, Removed};

pub(crate) fn stop(args: &StopArgs) -> Result<u8> {
    if !rustix::process::geteuid().is_root() {
        bail!("you must be root to run this");
    }

    let run_dir = &args.run_dir;
    if Instance::is_running(run_dir) {
        let request = Request::Stop { keep: args.keep };
        let text = ctl::ask(&socket_path(run_dir), &request)
            .with_context(|| format!("the daemon of {} does not answer", run_dir.display()))?;
        let answer: Answer =
            serde_json::from_str(&text).context("the daemon's answer cannot be read")?;
        if let Some(error) = answer.error {
            bail!("{error}");
        }
        Instance::wait_for_end(run_dir)?;
        if let Some(note) = answer.note {
            report!("tarsier: {note}");
        }
    } else if !args.disarm {
        bail!(
            "no tarsier runs with {}: --disarm removes what one may have left, or give another --run-dir",
            run_dir.display()
        );
    }

    if args.disarm {
        match remove_left(run_dir)? {
            Removed::Nothing => {}
            Removed::Capture { unread_bytes } => {
                report!("tarsier: removed a capture without daemon; {unread_bytes} bytes in its rings are gone");
            }
        }
    }

    Ok(0)
}
