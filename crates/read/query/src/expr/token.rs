//! The words of an expression: the section LEXICAL STRUCTURE of ausearch-expression(5).

use super::ExprError;

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A parenthesis, `\`, or an operator.
    Sign(&'static str),
    /// A text, with or without quotes.
    Text(Vec<u8>),
    /// A text between slashes.
    Regex(Vec<u8>),
}

/// Operators, longer ones before those that they begin with.
const SIGNS: [&str; 14] = [
    "!==", "&&", "||", "<=", ">=", "==", "i!=", "r!=", "i=", "r=", "<", ">", "!", "(",
];
const OTHER_SIGNS: [&str; 2] = [")", "\\"];

/// The words of `text`, each with the place where it begins.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExprError> {
    let bytes = text.as_bytes();
    let (mut at, mut tokens) = (0, Vec::new());
    while at < bytes.len() {
        if matches!(bytes[at], b' ' | b'\t' | b'\n') {
            at += 1;
            continue;
        }
        let rest = &bytes[at..];
        let (token, length) = match rest[0] {
            b'"' | b'/' => quoted(rest, at)?,
            _ => match sign(rest) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => word(rest, at)?,
            },
        };
        tokens.push((at, token));
        at += length;
    }

    Ok(tokens)
}

fn sign(rest: &[u8]) -> Option<&'static str> {
    SIGNS
        .into_iter()
        .chain(OTHER_SIGNS)
        .find(|sign| rest.starts_with(sign.as_bytes()))
}

fn word(rest: &[u8], at: usize) -> Result<(Token, usize), ExprError> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    match rest.iter().take_while(is_part).count() {
        0 => Err(ExprError::new(
            at,
            "a character that no word has; put texts in double quotes",
        )),
        length => Ok((Token::Text(rest[..length].to_vec()), length)),
    }
}

/// A text in quotes or slashes, in which `\` takes the next character as it is.
fn quoted(rest: &[u8], at: usize) -> Result<(Token, usize), ExprError> {
    let (mut text, mut place) = (Vec::new(), 1);
    while let Some(byte) = rest.get(place) {
        if *byte == rest[0] {
            let token = if *byte == b'"' {
                Token::Text
            } else {
                Token::Regex
            };
            return Ok((token(text), place + 1));
        }
        match rest.get(place + 1) {
            Some(next) if *byte == b'\\' && (*next == rest[0] || *next == b'\\') => {
                text.push(*next);
                place += 2;
            }
            _ => {
                text.push(*byte);
                place += 1;
            }
        }
    }

    Err(ExprError::new(at, "the text that begins here has no end"))
}
