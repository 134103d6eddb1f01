//! Numbers and times as a report writes them.

use journal::seal::time_text;

/// A number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Date and time in UTC, to the second.
pub(super) fn stamp(time_ms: u64) -> String {
    time_text(time_ms - time_ms % 1000)
        .replace('T', " ")
        .replace('Z', "")
}

/// Two times, the date of the second only if it differs.
pub(super) fn range(first_ms: u64, last_ms: u64) -> String {
    let (first, last) = (stamp(first_ms), stamp(last_ms));
    match (first.split_once(' '), last.split_once(' ')) {
        _ if first == last => first,
        (Some((day, _)), Some((other, time))) if day == other => format!("{first} – {time}"),
        _ => format!("{first} – {last}"),
    }
}

/// A span of time in words.
pub(super) fn span_text(seconds: u64) -> String {
    let (unit_s, unit) = match seconds {
        0..=119 => (1, "second"),
        120..=7199 => (60, "minute"),
        7200..=172_799 => (3600, "hour"),
        _ => (86_400, "day"),
    };
    let number = seconds / unit_s;
    let about = if seconds.is_multiple_of(unit_s) {
        ""
    } else {
        "about "
    };

    let plural = if number == 1 { "" } else { "s" };
    format!("{about}{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_easy_to_read() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [1, 120, 130, 7200].map(span_text),
            ["1 second", "2 minutes", "about 2 minutes", "2 hours"]
        );
        assert_eq!(stamp(1_795_229_629_588), "2026-11-21 02:53:49");
        let (first, later) = (1_795_229_629_588, 1_795_229_629_588 + 90_000);
        assert_eq!(range(first, later), "2026-11-21 02:53:49 – 02:55:19");
        assert_eq!(range(first, first), "2026-11-21 02:53:49");
    }
}
