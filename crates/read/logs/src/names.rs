//! Names of the files of a log.

use std::cmp::Reverse;

/// Name of the live file where no configuration names another.
pub(crate) const LIVE: &str = "audit.log";
/// Suffixes of compressed files. What a file is, its content says.
const COMPRESSED: [&str; 7] = [".gz", ".xz", ".bz2", ".zst", ".lz4", ".lzma", ".Z"];

/// Kind of a file beside a log, by what follows the log's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rotated {
    /// `-20231114`, `.2023-11-14`…: as digits.
    Date(String),
    /// `.3`: the greater the older.
    Number(Reverse<u64>),
    Live,
}

/// The kind of a file with this name, and whether the name is of a compressed one. `None`: not part of the log.
pub(crate) fn rotated(name: &str, live: &str) -> Option<(Rotated, bool)> {
    let rest = name.strip_prefix(live)?;
    let plain = COMPRESSED.iter().find_map(|end| rest.strip_suffix(end));
    let (rest, is_compressed) = (plain.unwrap_or(rest), plain.is_some());
    if rest.is_empty() || rest == ".tailed" {
        return Some((Rotated::Live, is_compressed));
    }

    let number = rest.strip_prefix(['.', '-', '_'])?;
    let is_of_date = |c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | 'T' | ':' | '.');
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let kind = match number.parse() {
        Ok(number) if digits.len() < 6 => Rotated::Number(Reverse(number)),
        _ if digits.len() >= 6 && number.chars().all(is_of_date) => Rotated::Date(digits),
        _ => return None,
    };
    Some((kind, is_compressed))
}

/// Whether a file of an archive is a log: below `var/log/audit`, or where sos puts the end of a long one.
pub(crate) fn is_log_of_archive(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    rotated(file, LIVE).is_some() || file.ends_with("var.log.audit.audit.log.tailed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_files_are_known_by_their_names() {
        let kind = |name: &str| rotated(name, LIVE);
        let number = |number| Rotated::Number(Reverse(number));
        let date = |date: &str| Rotated::Date(date.to_owned());
        assert_eq!(kind("audit.log"), Some((Rotated::Live, false)));
        assert_eq!(kind("audit.log.gz"), Some((Rotated::Live, true)));
        assert_eq!(kind("audit.log.12"), Some((number(12), false)));
        assert_eq!(kind("audit.log.12.xz"), Some((number(12), true)));
        assert_eq!(kind("audit.log-20231114"), Some((date("20231114"), false)));
        assert_eq!(
            kind("audit.log-2023-11-14_03.bz2"),
            Some((date("2023111403"), true))
        );
        assert_eq!(
            kind("audit.log.20231114.zst"),
            Some((date("20231114"), true))
        );
        assert_eq!(
            kind("audit.log-1700000000.lz4"),
            Some((date("1700000000"), true))
        );
        for name in [
            "audit.log.bak",
            "audit.log.1.idx",
            "audit.logs",
            "other.log",
            "audit.log.1~",
        ] {
            assert_eq!(kind(name), None, "{name}");
        }
    }
}
