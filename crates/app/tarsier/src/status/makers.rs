//! `tarsier status --by`: who fills the log.

use super::amounts::{short, time};
use anyhow::{bail, Context, Result};
use cli::{StatusArgs, StatusBy, StatusSort};
use daemon::protocol::{Answer, MakerCost, MakerCosts, MakerKind, MakerOrder, Request};
use record::without_controls;
use std::io::Write;

/// The request for what is asked.
pub(super) fn request(args: &StatusArgs, by: StatusBy) -> Request {
    Request::MakerCosts {
        by: match by {
            StatusBy::Unit => MakerKind::Unit,
            StatusBy::Container => MakerKind::Container,
            StatusBy::Uid => MakerKind::Uid,
            StatusBy::Exe => MakerKind::Exe,
        },
        order: match args.sort {
            StatusSort::Bytes => MakerOrder::Bytes,
            StatusSort::Events => MakerOrder::Events,
            StatusSort::Time => MakerOrder::Time,
        },
        top: args.top,
        recent: args.recent,
    }
}

/// Reads the daemon's answer.
///
/// # Errors
/// The daemon refused the request.
pub(super) fn answer(text: &str) -> Result<MakerCosts> {
    if let Ok(costs) = serde_json::from_str(text) {
        return Ok(costs);
    }
    let answer: Answer =
        serde_json::from_str(text).context("the daemon's answer cannot be read")?;
    match answer.error {
        Some(error) => bail!(error),
        None => bail!("the daemon's answer cannot be read"),
    }
}

/// Prints a table. Names, which may be long, come last.
pub(super) fn print(out: &mut impl Write, costs: &MakerCosts) -> std::io::Result<()> {
    let is_lost_known = costs.total.lost.is_some();
    let lost = |text: String| {
        if is_lost_known {
            format!(" {text:>9}")
        } else {
            String::new()
        }
    };

    writeln!(
        out,
        "{:>9} {:>9} {:>9} {:>10}{}  {}",
        "events",
        "bytes",
        "bytes/s",
        "time",
        lost("lost".to_owned()),
        costs.by.name()
    )?;
    let line = |out: &mut dyn Write, row: &MakerCost| {
        let mut name = Vec::new();
        without_controls(&mut name, row.name.as_bytes(), b"");
        write!(
            out,
            "{:>9} {:>9} {:>9} {:>10}{}  ",
            short(row.events),
            short(row.bytes),
            short(row.bytes_per_s),
            time(row.spent_ns),
            lost(short(row.lost.unwrap_or(0)))
        )?;
        out.write_all(&name)?;
        writeln!(out)
    };

    costs.rows.iter().try_for_each(|row| line(out, row))?;
    line(out, &costs.total)?;
    writeln!(
        out,
        "\n{} of at most {} names, in {:.0} s",
        costs.names, costs.names_max, costs.period_s
    )?;

    if costs.names_replaced > 0 {
        let missing = costs.rows.iter().map(|row| row.missing_bytes_max).max();
        writeln!(
            out,
            "{} times a new name took the place of the one with the fewest bytes.\n\
             A name that is not counted has at most {} bytes.\n\
             A row may lack {} bytes at most, which are among those of (others).",
            short(costs.names_replaced),
            short(costs.unseen_bytes_max),
            short(missing.unwrap_or(0))
        )?;
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(name: &str, events: u64) -> MakerCost {
        MakerCost {
            name: name.to_owned(),
            events,
            bytes: events * 1000,
            bytes_per_s: 10,
            spent_ns: events * 2000,
            ..MakerCost::default()
        }
    }

    fn printed(costs: &MakerCosts) -> String {
        let mut out = Vec::new();
        print(&mut out, costs).expect("a table");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_table_names_everybody_and_no_control_reaches_the_terminal() {
        let costs = MakerCosts {
            by: MakerKind::Exe,
            period_s: 12.4,
            total: cost("(total)", 3000),
            rows: vec![cost("/bin/\u{1b}[2Jx\n", 2999), cost("(others)", 1)],
            names: 1,
            names_max: 1024,
            ..MakerCosts::default()
        };
        assert_eq!(
            printed(&costs),
            "   events     bytes   bytes/s       time  exe\n     \
             2999     3.0 M        10     6.0 ms  /bin/\\033[2Jx\\012\n        \
             1      1000        10     2.0 µs  (others)\n     \
             3000     3.0 M        10     6.0 ms  (total)\n\
             \n1 of at most 1024 names, in 12 s\n"
        );
    }

    #[test]
    fn losses_and_what_a_row_may_lack_are_told_where_they_are_known() {
        let lost = |name, events, lost| MakerCost {
            lost: Some(lost),
            missing_bytes_max: 7,
            ..cost(name, events)
        };
        let costs = MakerCosts {
            by: MakerKind::Uid,
            total: lost("(total)", 3, 4),
            rows: vec![lost("1000", 3, 4)],
            names_replaced: 5,
            unseen_bytes_max: 8,
            ..MakerCosts::default()
        };
        let text = printed(&costs);
        assert!(text.contains("      lost  uid\n"), "{text}");
        assert!(text.contains("         4  1000\n"), "{text}");
        assert!(text.contains("at most 8 bytes"), "{text}");
        assert!(text.contains("lack 7 bytes"), "{text}");
    }

    #[test]
    fn a_refusal_is_an_error_with_its_reason() {
        let refusal = Answer {
            error: Some("no cgroups".to_owned()),
            ..Answer::default()
        };
        let text = serde_json::to_string(&refusal).expect("JSON");
        let error = answer(&text).expect_err("a refusal");
        assert_eq!(error.to_string(), "no cgroups");
    }
}
