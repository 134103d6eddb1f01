//! Splits a line into words, and the words into options as getopt_long(3) does.

/// One word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The bytes of the word, with escapes resolved.
    pub(crate) bytes: Vec<u8>,
    /// Offset of the word in the line, in bytes.
    pub(crate) start: usize,
    /// Length of the word in the line, in bytes, escapes included.
    pub(crate) len: usize,
}

impl Word {
    /// The part of the word that starts at byte `from` and has at most `len` bytes.
    pub(crate) fn part(&self, from: usize, len: usize) -> Word {
        let from = from.min(self.bytes.len());
        let end = (from + len).min(self.bytes.len());
        let bytes = self.bytes[from..end].to_vec();
        // Once escapes are resolved, offsets in the word no longer match offsets in the line.
        if self.bytes.len() == self.len {
            Word {
                start: self.start + from,
                len: bytes.len(),
                bytes,
            }
        } else {
            Word { bytes, ..*self }
        }
    }

    /// The word as text, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Splits a line of a rules file at blanks and tabs. `\ ` is a blank and `\\` a backslash inside
/// a word; any other backslash stands for itself (auditctl(8), "-R").
pub(crate) fn split(line: &[u8]) -> Vec<Word> {
    let is_separator = |byte: u8| byte == b' ' || byte == b'\t';
    let mut words = Vec::new();
    let mut at = 0;
    while at < line.len() {
        if is_separator(line[at]) {
            at += 1;
            continue;
        }
        let start = at;
        let mut bytes = Vec::new();
        while at < line.len() && !is_separator(line[at]) {
            match (line[at], line.get(at + 1)) {
                (b'\\', Some(&escaped @ (b' ' | b'\\'))) => {
                    bytes.push(escaped);
                    at += 2;
                }
                (byte, _) => {
                    bytes.push(byte);
                    at += 1;
                }
            }
        }
        words.push(Word {
            bytes,
            start,
            len: at - start,
        });
    }

    words
}

/// Makes words of separate arguments, and the line that they form when joined by blanks.
pub(crate) fn join<T: AsRef<[u8]>>(args: &[T]) -> (Vec<Word>, String) {
    let mut line = String::new();
    let mut words = Vec::new();
    for arg in args {
        if !line.is_empty() {
            line.push(' ');
        }
        let start = line.len();
        line.push_str(&String::from_utf8_lossy(arg.as_ref()));
        words.push(Word {
            bytes: arg.as_ref().to_vec(),
            start,
            len: line.len() - start,
        });
    }

    (words, line)
}

/// An option that auditctl knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    /// A letter.
    Short(u8),
    /// `--loginuid-immutable`
    LoginuidImmutable,
    /// `--backlog_wait_time`
    BacklogWaitTime,
    /// `--reset-lost`
    ResetLost,
    /// `--reset_backlog_wait_time_actual`
    ResetBacklogWaitTimeActual,
    /// `--signal`
    Signal,
}

/// Option letters without an argument, then those with one.
const PLAIN: &[u8] = b"hicslDvt";
const WITH_ARGUMENT: &[u8] = b"CefrbaAdSFmRwWkpq";

/// Long options: name, flag, and whether they take an argument.
const LONG: [(&str, Flag, bool); 6] = [
    ("help", Flag::Short(b'h'), false),
    ("loginuid-immutable", Flag::LoginuidImmutable, false),
    ("backlog_wait_time", Flag::BacklogWaitTime, true),
    ("reset-lost", Flag::ResetLost, false),
    (
        "reset_backlog_wait_time_actual",
        Flag::ResetBacklogWaitTimeActual,
        false,
    ),
    ("signal", Flag::Signal, true),
];

/// Result of one step of [`Options`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An option, its word, and its argument if it takes one.
    Option(Flag, Word, Option<Word>),
    /// A word that is no valid option, or an option whose argument is missing.
    Bad(Word),
}

/// Iterates over the options; words that are neither options nor arguments are set aside.
pub(crate) struct Options<'a> {
    words: &'a [Word],
    at: usize,
    /// Index of the next letter in a word of bundled letters (`-vt`); 0 between words.
    inside: usize,
    /// Words that were set aside.
    pub(crate) extra: Vec<&'a Word>,
}

impl<'a> Options<'a> {
    pub(crate) fn new(words: &'a [Word]) -> Options<'a> {
        Options {
            words,
            at: 0,
            inside: 0,
            extra: Vec::new(),
        }
    }

    /// The words that have not been read yet: those after the last option and its argument.
    pub(crate) fn rest(&self) -> &'a [Word] {
        &self.words[self.at.min(self.words.len())..]
    }

    fn long(&mut self, word: &'a Word) -> Found {
        let body = &word.bytes[2..];
        let (name, value) = match body.iter().position(|&byte| byte == b'=') {
            Some(at) => (&body[..at], Some(word.part(at + 3, body.len()))),
            None => (body, None),
        };
        let exact = LONG.iter().find(|row| row.0.as_bytes() == name);
        let mut starting = LONG.iter().filter(|row| row.0.as_bytes().starts_with(name));
        let row = match (exact, starting.next(), starting.next()) {
            (Some(row), _, _) | (None, Some(row), None) => row,
            _ => return Found::Bad(word.clone()),
        };

        match (row.2, value) {
            (false, None) => Found::Option(row.1, word.clone(), None),
            (false, Some(_)) => Found::Bad(word.clone()),
            (true, Some(value)) => Found::Option(row.1, word.clone(), Some(value)),
            (true, None) => self.with_next(row.1, word),
        }
    }

    fn short(&mut self, word: &'a Word) -> Found {
        let letter = word.bytes[self.inside];
        self.inside += 1;
        let is_last = self.inside >= word.bytes.len();
        if PLAIN.contains(&letter) {
            if is_last {
                self.inside = 0;
            }
            return Found::Option(Flag::Short(letter), word.clone(), None);
        }

        let attached = self.inside;
        self.inside = 0;
        if !WITH_ARGUMENT.contains(&letter) {
            Found::Bad(word.clone())
        } else if is_last {
            self.with_next(Flag::Short(letter), word)
        } else {
            let argument = word.part(attached, word.bytes.len());
            Found::Option(Flag::Short(letter), word.clone(), Some(argument))
        }
    }

    fn with_next(&mut self, flag: Flag, word: &Word) -> Found {
        match self.words.get(self.at) {
            Some(next) => {
                self.at += 1;
                Found::Option(flag, word.clone(), Some(next.clone()))
            }
            None => Found::Bad(word.clone()),
        }
    }
}

impl Iterator for Options<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if self.inside > 0 {
            let word = &self.words[self.at - 1];
            return Some(self.short(word));
        }

        loop {
            let word = self.words.get(self.at)?;
            self.at += 1;
            match word.bytes.as_slice() {
                b"--" => {
                    self.extra.extend(&self.words[self.at..]);
                    self.at = self.words.len();
                    return None;
                }
                [b'-', b'-', ..] => return Some(self.long(word)),
                [b'-', _, ..] => {
                    self.inside = 1;
                    return Some(self.short(word));
                }
                _ => self.extra.push(word),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line.as_bytes()).iter().map(Word::text).collect()
    }

    #[test]
    fn escapes_keep_blanks_and_backslashes() {
        assert_eq!(texts(r"-w /a\ b -k x"), ["-w", "/a b", "-k", "x"]);
        assert_eq!(texts(r"-w /a\\b \x"), ["-w", r"/a\b", r"\x"]);
        assert_eq!(texts("  -F\t key=tabs  "), ["-F", "key=tabs"]);
        assert_eq!(texts(r"trailing\"), [r"trailing\"]);
        assert_eq!(texts(r"a\\ b"), [r"a\", "b"]);
    }

    #[test]
    fn words_know_their_places() {
        let words = split(b"-F  uid=x");
        assert_eq!((words[1].start, words[1].len), (4, 5));
        let part = words[1].part(4, 1);
        assert_eq!((part.start, part.len, part.text().as_str()), (8, 1, "x"));
    }

    fn shapes(line: &str) -> (Vec<String>, usize) {
        let words = split(line.as_bytes());
        let mut options = Options::new(&words);
        let found = options
            .by_ref()
            .map(|found| match found {
                Found::Option(flag, _, argument) => {
                    format!(
                        "{flag:?} {}",
                        argument.map(|word| word.text()).unwrap_or_default()
                    )
                }
                Found::Bad(word) => format!("bad {}", word.text()),
            })
            .collect();
        (found, options.extra.len())
    }

    #[test]
    fn options_are_found_as_getopt_finds_them() {
        assert_eq!(
            shapes("-Sopen -k x extra"),
            (vec!["Short(83) open".into(), "Short(107) x".into()], 1)
        );
        assert_eq!(
            shapes("-vt"),
            (vec!["Short(118) ".into(), "Short(116) ".into()], 0)
        );
        assert_eq!(
            shapes("--backlog_wait 5"),
            (vec!["BacklogWaitTime 5".into()], 0)
        );
        assert_eq!(shapes("--signal=HUP"), (vec!["Signal HUP".into()], 0));
        assert_eq!(shapes("--reset"), (vec!["bad --reset".into()], 0));
        assert_eq!(
            shapes("--reset-lost=1"),
            (vec!["bad --reset-lost=1".into()], 0)
        );
        assert_eq!(shapes("-x -S"), (vec!["bad -x".into(), "bad -S".into()], 0));
        assert_eq!(shapes("-t -- -t"), (vec!["Short(116) ".into()], 1));
        assert_eq!(shapes("- foo"), (vec![], 2));
    }
}
