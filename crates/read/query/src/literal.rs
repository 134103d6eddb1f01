//! A text that lines of every matching event have: by it, blocks and events are excluded before they are parsed.

use memchr::memmem::{find, Finder};

/// Fewer bytes are in every block of a log.
const BYTES_MIN: usize = 3;

/// A text, and its hex form where a value may be written so.
#[derive(Clone)]
pub(crate) struct Literal {
    plain: Finder<'static>,
    hex: Option<Hex>,
}

/// Hex digits of either case.
#[derive(Clone)]
struct Hex {
    /// All digits, in upper case.
    digits: Vec<u8>,
    /// Parts of the digits with at most one letter, in each case that the letter may have.
    anchors: Vec<Finder<'static>>,
    /// Position of the anchor in the digits.
    at: usize,
}

impl Literal {
    /// The longest of these texts that can be used. With `true`, a text may be in hex.
    pub(crate) fn longest<'t>(texts: impl Iterator<Item = (&'t [u8], bool)>) -> Option<Literal> {
        let (text, may_be_hex) = texts
            .filter(|(text, _)| is_usable(text))
            .max_by_key(|(text, _)| text.len())?;
        if may_be_hex {
            Literal::of_text(text)
        } else {
            Some(Literal {
                plain: Finder::new(text).into_owned(),
                hex: None,
            })
        }
    }

    /// A text that may be in hex. `None` if too little of it is certain.
    pub(crate) fn of_text(text: &[u8]) -> Option<Literal> {
        let hex = is_usable(text).then(|| Hex::of(text))??;
        Some(Literal {
            plain: Finder::new(text).into_owned(),
            hex: Some(hex),
        })
    }

    /// Whether text of a log has the literal.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.plain.find(text).is_some() || self.hex.as_ref().is_some_and(|hex| hex.is_in(text))
    }

    /// Bytes of the longer form; `None` if the literal is so short that most blocks have it.
    pub(crate) fn overlap_bytes(&self) -> Option<usize> {
        let plain = self.plain.needle().len();
        let hex = self.hex.as_ref().map_or(0, |hex| hex.digits.len());
        (plain >= BYTES_MIN).then_some(plain.max(hex))
    }
}

/// Values that stand for a field without one are no text of the log.
fn is_usable(text: &[u8]) -> bool {
    let none = [&b"(null)"[..], b"(none)"];
    !text.is_empty() && none.iter().all(|none| find(none, text).is_none())
}

/// Whether a host is not an address, nor part of one: SOCKADDR has those in binary.
pub(crate) fn is_host_name(host: &[u8]) -> bool {
    host.iter()
        .any(|byte| !byte.is_ascii_hexdigit() && !matches!(byte, b'.' | b':'))
}

/// The part of a file's name that stands in one piece in the log. A name that begins with `..` or `./` is joined to the
/// working directory by a slash.
pub(crate) fn part_of_file(file: &[u8]) -> &[u8] {
    let may_be_joined = file.last() == Some(&b'/') || find(file, b"/.").is_some();
    if may_be_joined {
        file.split(|byte| *byte == b'/')
            .max_by_key(|part| part.len())
            .unwrap_or_default()
    } else {
        file
    }
}

impl Hex {
    /// The digits of `text`. `None` if there are too few to tell anything.
    fn of(text: &[u8]) -> Option<Hex> {
        // An odd number of digits gives a last byte that ends in 0.
        let text = match text {
            [rest @ .., last] if last & 15 == 0 => rest,
            _ => text,
        };
        let half = |half: u8| b"0123456789ABCDEF"[usize::from(half)];
        let digits: Vec<u8> = text
            .iter()
            .flat_map(|byte| [half(byte >> 4), half(byte & 15)])
            .collect();
        let (at, anchor) = anchor(&digits);

        let upper = Finder::new(anchor).into_owned();
        let lower = anchor.to_ascii_lowercase();
        let mut anchors = vec![upper];
        if lower != anchor {
            anchors.push(Finder::new(&lower).into_owned());
        }

        (digits.len() >= BYTES_MIN).then_some(Hex {
            digits,
            anchors,
            at,
        })
    }

    fn is_in(&self, text: &[u8]) -> bool {
        let is_here = |at: usize| {
            let start = at.checked_sub(self.at);
            start
                .and_then(|start| text.get(start..start + self.digits.len()))
                .is_some_and(|found| found.eq_ignore_ascii_case(&self.digits))
        };
        self.anchors
            .iter()
            .any(|anchor| anchor.find_iter(text).any(is_here))
    }
}

/// The longest part of `digits` that has no letter, or else one, and where it stands.
fn anchor(digits: &[u8]) -> (usize, &[u8]) {
    let is_letter = |at: &usize| digits[*at].is_ascii_uppercase();
    let longest = |letters_max: usize| {
        let (mut best, mut start, mut letters) = (0..0, 0, 0);
        for end in 0..digits.len() {
            letters += usize::from(is_letter(&end));
            while letters > letters_max {
                letters -= usize::from(is_letter(&start));
                start += 1;
            }
            if end + 1 - start > best.len() {
                best = start..end + 1;
            }
        }
        best
    };

    // A letter takes a second search.
    let plain = longest(0);
    let part = if plain.len() >= 4 { plain } else { longest(1) };
    (part.start, &digits[part])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_as_it_is_and_in_hex_of_either_case() {
        for word in ["kill", "jklmno", "nothing-has-this", "0000", "jjj"] {
            let literal = Literal::of_text(word.as_bytes()).expect("a literal");
            let upper: String = word.bytes().map(|byte| format!("{byte:02X}")).collect();
            for text in [word.to_owned(), upper.clone(), upper.to_lowercase()] {
                let text = format!("key=\"0{text}6 x");
                assert!(literal.is_in(text.as_bytes()), "{word} in {text}");
            }
            assert!(!literal.is_in(b"key=\"6b696c\" 6a6b6c"), "{word}");
        }
    }

    #[test]
    fn the_slash_that_joins_a_name_to_its_directory_is_in_no_literal() {
        assert_eq!(part_of_file(b"/etc/shadow"), b"/etc/shadow");
        assert_eq!(part_of_file(b"home/user/"), b"user");
        assert_eq!(part_of_file(b"user/./relative"), b"relative");
        assert_eq!(part_of_file(b"/../x"), b"..");
    }

    #[test]
    fn addresses_and_values_of_missing_fields_are_no_literals() {
        assert!(!is_host_name(b"192.168.1.10") && !is_host_name(b"fe80::1"));
        assert!(is_host_name(b"far.example"));
        assert!(Literal::longest([(&b"none)"[..], false), (b"", true)].into_iter()).is_none());
        let literal = Literal::longest([(&b"pts0"[..], false), (b"abc", true)].into_iter());
        assert!(literal.is_some_and(|literal| literal.hex.is_none()));
    }
}
