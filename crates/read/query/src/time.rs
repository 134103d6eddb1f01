//! Dates and times as ausearch takes and prints them: in the locale and the time zone of the
//! process, by the C library, since no other library agrees with its strptime(3) and strftime(3).

use crate::Dialect;
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::thread::LocalKey;

/// End of the range for which a time is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `-ts`.
    Start,
    /// `-te`.
    End,
}

impl Bound {
    fn name(self) -> &'static str {
        match self {
            Bound::Start => "start",
            Bound::End => "end",
        }
    }
}

/// Words for times.
const WORDS: [&str; 9] = [
    "now",
    "recent",
    "boot",
    "today",
    "yesterday",
    "this-week",
    "week-ago",
    "this-month",
    "this-year",
];

/// Whether ausearch has this word for a time.
pub fn is_word(text: &str) -> bool {
    WORDS.contains(&text)
}

/// Parts of the locale, each of which is a file or two that a program has to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locale {
    /// Dates and times.
    Dates,
    /// Also error texts, and letters and their order.
    Texts,
    /// All, as audit's programs take: if one cannot be used, none is.
    All,
}

impl Locale {
    /// The parts that a command depends on.
    pub fn of(dialect: Dialect) -> Locale {
        match dialect {
            Dialect::Own => Locale::Texts,
            _ => Locale::All,
        }
    }

    fn categories(self) -> &'static [libc::c_int] {
        match self {
            Locale::Dates => &[libc::LC_TIME],
            Locale::Texts => &[
                libc::LC_TIME,
                libc::LC_CTYPE,
                libc::LC_COLLATE,
                libc::LC_MESSAGES,
            ],
            Locale::All => &[libc::LC_ALL],
        }
    }
}

/// Takes parts of the locale, and the time zone, from the environment. Call this before threads are started.
pub fn use_environment(locale: Locale) {
    // SAFETY: the arguments are valid categories and C strings; no other thread runs.
    unsafe {
        for category in locale.categories() {
            libc::setlocale(*category, c"".as_ptr());
        }
        tzset();
    }
}

extern "C" {
    fn tzset();
}

/// The time of one or two words: a date, a time of day, both in any order, or a word such as `today`. Without `--compat`
/// also seconds since 1970, a date or date and time of ISO 8601, a time before now (`90s`, `30m`, `2h`, `7d`, `2w`), and
/// years of four digits.
///
/// # Errors
/// The message for the user.
pub fn of_words(
    bound: Bound,
    first: &str,
    second: Option<&str>,
    dialect: Dialect,
) -> Result<i64, String> {
    if !dialect.is_compat() {
        if let Some(at_s) = exact(bound, first, second) {
            return Ok(at_s);
        }
    }
    let midnight = Some("00:00:00");
    let (date, time) = match second {
        Some(second) if first.contains(':') => (Some(second), Some(first)),
        Some(second) => (Some(first), Some(second)),
        None if is_word(first) => (Some(first), midnight),
        None if first.contains(':') => (None, Some(first)),
        None if bound == Bound::Start => (Some(first), midnight),
        None => (Some(first), None),
    };
    if !dialect.is_compat() {
        let with_short_year = date.and_then(short_year);
        return parse(bound, with_short_year.as_deref().or(date), time);
    }
    parse(bound, date, time)
}

/// `11/14/2023` as `11/14/23`, which the locale reads.
fn short_year(date: &str) -> Option<String> {
    let (rest, year) = date.rsplit_once('/')?;
    let is_year = year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    is_year.then(|| format!("{rest}/{}", &year[2..]))
}

/// Seconds since 1970 of a time that no locale writes: a number, ISO 8601, or a time before now.
fn exact(bound: Bound, first: &str, second: Option<&str>) -> Option<i64> {
    let (date, time) = match second {
        Some(second) if first.contains(':') && !first.contains('T') => (second, Some(first)),
        second => (first, second),
    };
    if time.is_none() {
        let whole = date.split_once('.').map_or(date, |(whole, _)| whole);
        if whole.len() >= 9 && whole.bytes().all(|byte| byte.is_ascii_digit()) {
            return whole.parse().ok();
        }
        if let Some(ago_s) = seconds_ago(date) {
            return Some(now() - ago_s);
        }
    }
    let (date, time) = match (date.split_once('T'), time) {
        (Some((date, time)), None) => (date, Some(time)),
        (None, time) => (date, time),
        (Some(_), Some(_)) => return None,
    };
    iso(bound, date, time)
}

/// `90s`, `30m`, `2h`, `7d`, `2w`.
fn seconds_ago(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_s = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number
        .parse::<i64>()
        .ok()
        .filter(|_| is_number)?
        .checked_mul(unit_s)
}

/// `2023-11-14`, `22:13[:20[.5]]` and `Z` or `+01:00`. Without a time of day, the day's first or last second.
fn iso(bound: Bound, date: &str, time: Option<&str>) -> Option<i64> {
    let numbers = |text: &str, mark: char| {
        let parts = text.split(mark).map(|part| part.parse::<i32>().ok());
        parts.collect::<Option<Vec<i32>>>()
    };
    let [year, month, day] = numbers(date, '-')?.try_into().ok()?;
    let zone_at = time.and_then(|time| time.find(['Z', '+', '-']));
    let (clock, zone) = match (time, zone_at) {
        (Some(time), Some(at)) => (Some(&time[..at]), Some(&time[at..])),
        (time, _) => (time, None),
    };
    let [hour, minute, second] = match clock {
        None if bound == Bound::Start => [0, 0, 0],
        None => [23, 59, 59],
        Some(clock) => {
            let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
            match numbers(clock, ':')?[..] {
                [hour, minute] => [hour, minute, 0],
                [hour, minute, second] => [hour, minute, second],
                _ => return None,
            }
        }
    };
    let is_valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_valid {
        return None;
    }
    let mut tm = empty();
    (tm.tm_year, tm.tm_mon, tm.tm_mday) = (year - 1900, month - 1, day);
    (tm.tm_hour, tm.tm_min, tm.tm_sec, tm.tm_isdst) = (hour, minute, second, -1);
    let Some(zone) = zone else {
        return Some(make(&mut tm));
    };
    // SAFETY: `tm` is a valid object.
    let at_s = unsafe { libc::timegm(&mut tm) };
    let east_s = match zone {
        "Z" => 0,
        zone => {
            let (sign, zone) = zone.split_at(1);
            let [hours, minutes] = numbers(zone, ':')?.try_into().ok()?;
            let east_s = i64::from(hours * 3600 + minutes * 60);
            if sign == "-" {
                -east_s
            } else {
                east_s
            }
        }
    };
    Some(at_s - east_s)
}

/// The time of a date and a time of day, one of which may be missing, in seconds since 1970.
///
/// `date` is a word of ausearch or a date of the locale (`%x`), `time` a time of the locale (`%X`)
/// without or with seconds. Without a date it is today; without a time now.
///
/// # Errors
/// The message of ausearch.
pub fn parse(bound: Bound, date: Option<&str>, time: Option<&str>) -> Result<i64, String> {
    let name = bound.name();
    let mut tm = empty();
    match date {
        None => set_clock(&mut tm, now(), true),
        Some(word) if is_word(word) => {
            set_word(&mut tm, word)?;
            let is_now = matches!(word, "now" | "recent" | "boot")
                || (bound == Bound::End && word == "today");
            if bound == Bound::End && word == "today" {
                set_clock(&mut tm, now(), true);
            }
            if is_now && time.is_none_or(|time| time == "00:00:00") {
                return seconds(&mut tm, name);
            }
        }
        Some(date) => {
            let rest = scan(date, c"%x", &mut tm).ok_or_else(|| {
                format!("Invalid {name} date ({date}). Month, Day, and Year are required.")
            })?;
            if rest != 0 {
                return Err(format!("Error parsing {name} date ({date})"));
            }
            // Finds out whether summer time is in force.
            make(&mut tm);
        }
    }
    match time {
        Some(time) => set_time(&mut tm, time, name)?,
        None => {
            let now = local(now());
            (tm.tm_hour, tm.tm_min, tm.tm_sec) = (now.tm_hour, now.tm_min, now.tm_sec);
            tm.tm_isdst = now.tm_isdst;
        }
    }
    if tm.tm_year < 104 {
        return Err(format!("Error - year is {}", i64::from(tm.tm_year) + 1900));
    }
    seconds(&mut tm, name)
}

fn set_time(tm: &mut libc::tm, time: &str, name: &str) -> Result<(), String> {
    let whole = match time.len() {
        0..=5 => format!("{time}:00"),
        _ => time.chars().take(63).collect(),
    };
    let rest = scan(&whole, c"%X", tm).ok_or_else(|| {
        format!("Invalid {name} time ({time}). Hour, Minute, and Second are required.")
    })?;
    match rest {
        0 => Ok(()),
        _ => Err(format!("Error parsing {name} time ({time})")),
    }
}

fn set_word(tm: &mut libc::tm, word: &str) -> Result<(), String> {
    const DAY_S: i64 = 24 * 60 * 60;
    let now = now();
    match word {
        "now" => set_clock(tm, now, true),
        "recent" => set_clock(tm, now - 600, true),
        "boot" => set_clock(tm, now - uptime_s()?, true),
        "yesterday" => set_clock(tm, now - DAY_S, false),
        "this-week" => {
            let days = i64::from(local(now).tm_wday);
            set_clock(tm, now - days * DAY_S, false);
        }
        "week-ago" => set_clock(tm, now - 7 * DAY_S, false),
        _ => set_clock(tm, now, false),
    }
    match word {
        "this-month" => tm.tm_mday = 1,
        "this-year" => (tm.tm_mday, tm.tm_mon, tm.tm_isdst) = (1, 0, 0),
        _ => {}
    }
    Ok(())
}

fn uptime_s() -> Result<i64, String> {
    let text = std::fs::read_to_string("/proc/uptime")
        .map_err(|error| format!("Can't read uptime ({error})"))?;
    let seconds: f64 = text
        .split(' ')
        .next()
        .and_then(|text| text.parse().ok())
        .ok_or("Can't read uptime (not a number)")?;
    Ok((seconds + 0.5) as i64)
}

fn empty() -> libc::tm {
    // SAFETY: `tm` is of integers and a pointer that may be null.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn now() -> i64 {
    // SAFETY: null asks for no copy.
    unsafe { libc::time(std::ptr::null_mut()) }
}

/// Sets the date, and the time of day if it `has_time`.
fn set_clock(tm: &mut libc::tm, at_s: i64, has_time: bool) {
    let from = local(at_s);
    if has_time {
        (tm.tm_hour, tm.tm_min, tm.tm_sec) = (from.tm_hour, from.tm_min, from.tm_sec);
    }
    (tm.tm_mday, tm.tm_mon, tm.tm_year) = (from.tm_mday, from.tm_mon, from.tm_year);
    (tm.tm_isdst, tm.tm_wday, tm.tm_yday) = (from.tm_isdst, from.tm_wday, from.tm_yday);
}

/// Local time; all zero for a year that it cannot hold.
fn local(at_s: i64) -> libc::tm {
    try_local(at_s).unwrap_or_else(empty)
}

fn try_local(at_s: i64) -> Option<libc::tm> {
    let mut tm = empty();
    // SAFETY: both point to valid objects.
    let result = unsafe { libc::localtime_r(&at_s, &mut tm) };
    (!result.is_null()).then_some(tm)
}

fn make(tm: &mut libc::tm) -> i64 {
    // SAFETY: points to a valid object.
    unsafe { libc::mktime(tm) }
}

fn seconds(tm: &mut libc::tm, name: &str) -> Result<i64, String> {
    match make(tm) {
        -1 => Err(format!("Error converting {name} time")),
        at_s => Ok(at_s),
    }
}

/// Reads `text` by strptime(3). Returns how many bytes are left, or `None` if it does not fit.
fn scan(text: &str, format: &CStr, tm: &mut libc::tm) -> Option<usize> {
    let text = CString::new(text).ok()?;
    // SAFETY: two C strings and a valid object; the result points into `text` or is null.
    unsafe {
        let end = libc::strptime(text.as_ptr(), format.as_ptr(), tm);
        (!end.is_null()).then(|| CStr::from_ptr(end).count_bytes())
    }
}

fn put(tm: &libc::tm, format: &CStr, out: &mut Vec<u8>) {
    let mut text = [0_u8; 128];
    // SAFETY: the buffer has the length that is given, the others are valid.
    let length =
        unsafe { libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), tm) };
    out.extend_from_slice(&text[..length]);
}

/// A time of day, and what was written for it last.
struct Written {
    at_s: u64,
    text: Vec<u8>,
}

impl Written {
    const fn nothing() -> RefCell<Option<Written>> {
        RefCell::new(None)
    }
}

/// Appends what `write` writes for a time: from `last` if that is of the same second, as most events are, because the C
/// library takes longer for a time than all else does for an event.
fn write_cached(
    last: &'static LocalKey<RefCell<Option<Written>>>,
    at_s: u64,
    out: &mut Vec<u8>,
    write: impl Fn(u64, &mut Vec<u8>),
) {
    last.with_borrow_mut(|last| match last {
        Some(last) if last.at_s == at_s => out.extend_from_slice(&last.text),
        _ => {
            let start = out.len();
            write(at_s, out);
            let text = out[start..].to_vec();
            *last = Some(Written { at_s, text });
        }
    });
}

/// Appends a time as ctime(3) does, with the newline. That is in English in every locale.
pub fn write_ctime(at_s: u64, out: &mut Vec<u8>) {
    thread_local!(static LAST: RefCell<Option<Written>> = const { Written::nothing() });
    write_cached(&LAST, at_s, out, ctime);
}

fn ctime(at_s: u64, out: &mut Vec<u8>) {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let tm = i64::try_from(at_s).ok().and_then(try_local);
    let text = match tm {
        Some(tm) => format!(
            "{} {}{:3} {:02}:{:02}:{:02} {}\n",
            DAYS.get(tm.tm_wday as usize).unwrap_or(&"???"),
            MONTHS.get(tm.tm_mon as usize).unwrap_or(&"???"),
            tm.tm_mday,
            tm.tm_hour,
            tm.tm_min,
            tm.tm_sec,
            i64::from(tm.tm_year) + 1900,
        ),
        None => "(null)".to_owned(),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends date and time of the locale (`%x %T`), or `?` for a year that the C library does not know.
pub fn write_date_time(at_s: u64, out: &mut Vec<u8>) {
    thread_local!(static LAST: RefCell<Option<Written>> = const { Written::nothing() });
    write_cached(&LAST, at_s, out, |at_s, out| put_local(at_s, c"%x %T", out));
}

/// Appends time and date of the locale (`%T %x`), or `?` for a year that the C library does not know.
pub(crate) fn write_time_date(at_s: u64, out: &mut Vec<u8>) {
    thread_local!(static LAST: RefCell<Option<Written>> = const { Written::nothing() });
    write_cached(&LAST, at_s, out, |at_s, out| put_local(at_s, c"%T %x", out));
}

fn put_local(at_s: u64, format: &CStr, out: &mut Vec<u8>) {
    match i64::try_from(at_s).ok().and_then(try_local) {
        Some(tm) => put(&tm, format, out),
        None => out.push(b'?'),
    }
}

/// Appends date and time in columns, with their parts if `has_parts`.
pub(crate) fn write_columns(
    at_s: u64,
    msec: u32,
    has_parts: bool,
    dialect: Dialect,
    out: &mut Vec<u8>,
) {
    thread_local!(static LAST: RefCell<Option<Written>> = const { Written::nothing() });
    write_cached(&LAST, at_s, out, |at_s, out| {
        let tm = i64::try_from(at_s).ok().and_then(try_local);
        column(tm.as_ref(), c"%x", out);
        column(tm.as_ref(), c"%T", out);
    });
    if has_parts {
        write_parts(at_s, msec, dialect, out);
    }
}

fn column(tm: Option<&libc::tm>, format: &CStr, out: &mut Vec<u8>) {
    if let Some(tm) = tm {
        put(tm, format, out);
    }
    out.push(b',');
}

/// Appends the parts of a time in columns.
fn write_parts(at_s: u64, msec: u32, dialect: Dialect, out: &mut Vec<u8>) {
    let tm = i64::try_from(at_s).ok().and_then(try_local);
    for format in [c"%Y", c"%m", c"%d", c"%u", c"%k"] {
        column(tm.as_ref(), format, out);
    }
    out.extend_from_slice(format!("{msec},").as_bytes());
    if let Some(tm) = &tm {
        let offset_s = tm.tm_gmtoff.unsigned_abs();
        let sign = if tm.tm_gmtoff < 0 { '-' } else { '+' };
        // ausearch takes the remainder of the seconds for the minutes.
        let minute = match dialect {
            Dialect::Own => offset_s % 3600 / 60,
            _ => offset_s % 60,
        };
        let hour = offset_s / 3600;
        out.extend_from_slice(format!("{sign}{hour:02}:{minute:02}").as_bytes());
    }
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_the_locale_are_read_and_printed() {
        // Test programs do not call `use_environment`, so the locale is C.
        let start = parse(Bound::Start, Some("11/21/26"), Some("02:53")).expect("a time");
        let mut text = Vec::new();
        write_date_time(start as u64, &mut text);
        assert_eq!(text, b"11/21/26 02:53:00");
        text.clear();
        write_ctime(start as u64, &mut text);
        assert_eq!(text, b"Sat Nov 21 02:53:00 2026\n");
    }

    #[test]
    fn times_without_a_locale_are_read() {
        let read = |first, second| of_words(Bound::Start, first, second, Dialect::Own);
        let at = |hours: i64| Ok(1_699_920_000 + hours * 3600);
        std::env::set_var("TZ", "UTC");
        assert_eq!(read("2023-11-14", None), at(0));
        assert_eq!(read("2023-11-14", Some("22:00:00")), at(22));
        assert_eq!(read("22:00", Some("2023-11-14")), at(22));
        assert_eq!(read("2023-11-14T22:00:00.5", None), at(22));
        assert_eq!(read("2023-11-14T22:00:00+01:00", None), at(21));
        assert_eq!(read("2023-11-14T22:00:00Z", None), at(22));
        assert_eq!(read("1699920000", None), at(0));
        assert_eq!(read("1699920000.123", None), at(0));
        assert_eq!(read("11/14/2023", None), at(0));
        let end = of_words(Bound::End, "2023-11-14", None, Dialect::Own);
        assert_eq!(end, Ok(1_699_920_000 + 86_399));
        let ago = read("2h", None).expect("a time");
        assert!((now() - 7200 - ago).abs() < 2);
        for wrong in [
            "2023-13-14",
            "2023-11-14T25:00",
            "h",
            "1699920",
            "-2h",
            "2023-11",
        ] {
            assert!(read(wrong, None).is_err(), "{wrong}");
        }
        assert!(of_words(Bound::Start, "2023-11-14", None, Dialect::Compat).is_err());
    }

    #[test]
    fn wrong_times_have_the_messages_of_ausearch() {
        let parse = |date, time| parse(Bound::End, Some(date), time);
        assert_eq!(
            parse("11/24/2026", None),
            Err("Error parsing end date (11/24/2026)".to_owned())
        );
        assert_eq!(
            parse("x", None),
            Err("Invalid end date (x). Month, Day, and Year are required.".to_owned())
        );
        assert_eq!(
            parse("11/24/26", Some("9")),
            Err("Invalid end time (9). Hour, Minute, and Second are required.".to_owned())
        );
        assert_eq!(
            parse("11/24/99", Some("09:00")),
            Err("Error - year is 1999".to_owned())
        );
    }
}
