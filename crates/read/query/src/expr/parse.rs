//! Parses the words of an expression into nodes, as section EXPRESSION SYNTAX of ausearch-expression(5) describes.

use super::regex::Regex;
use super::token::{tokens, Token};
use super::{ExprError, Node, Order};
use crate::{kind, Dialect};

/// Deepest nesting of an expression, so that parsing cannot run out of stack.
const DEPTH_MAX: usize = 200;

struct Parser<'t> {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
    text: &'t str,
}

pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
        text,
    };
    let node = parser.either()?;
    match parser.tokens.get(parser.next) {
        None => Ok(node),
        Some((at, _)) => Err(ExprError::new(*at, "expected && or || or the end")),
    }
}

impl Parser<'_> {
    fn at(&self) -> usize {
        self.tokens
            .get(self.next)
            .map_or(self.text.len(), |(at, _)| *at)
    }

    fn error(&self, message: impl Into<String>) -> ExprError {
        ExprError::new(self.at(), message)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_it =
            matches!(self.tokens.get(self.next), Some((_, Token::Sign(found))) if *found == sign);
        self.next += usize::from(is_it);
        is_it
    }

    fn string(&mut self, what: &str) -> Result<Vec<u8>, ExprError> {
        match self.tokens.get(self.next) {
            Some((_, Token::Text(text))) => {
                self.next += 1;
                Ok(text.clone())
            }
            _ => Err(self.error(format!("expected {what}"))),
        }
    }

    fn either(&mut self) -> Result<Node, ExprError> {
        let mut node = self.both()?;
        while self.take("||") {
            node = Node::Or(Box::new(node), Box::new(self.both()?));
        }
        Ok(node)
    }

    fn both(&mut self) -> Result<Node, ExprError> {
        let mut node = self.single()?;
        while self.take("&&") {
            node = Node::And(Box::new(node), Box::new(self.single()?));
        }
        Ok(node)
    }

    fn single(&mut self) -> Result<Node, ExprError> {
        if self.depth == DEPTH_MAX || self.tokens.len() > 10 * DEPTH_MAX {
            return Err(self.error("nested too deeply, or too long"));
        }

        self.depth += 1;
        let node = if self.take("!") {
            self.single().map(|node| Node::Not(Box::new(node)))
        } else if self.take("(") {
            self.either().and_then(|node| {
                if self.take(")") {
                    Ok(node)
                } else {
                    Err(self.error("expected )"))
                }
            })
        } else if self.take("\\") {
            self.virtual_field()
        } else {
            self.field()
        };

        self.depth -= 1;
        node
    }

    fn field(&mut self) -> Result<Node, ExprError> {
        let name = self.string("a field, !, ( or \\")?;
        for (sign, is_raw, is_equal) in [
            ("r=", true, true),
            ("r!=", true, false),
            ("i=", false, true),
            ("i!=", false, false),
        ] {
            if self.take(sign) {
                let value = self.string(
                    "a value; put it in double quotes if it has other characters than \
                    letters, digits and _",
                )?;
                return Ok(if is_raw {
                    Node::Raw(name, is_equal, value)
                } else {
                    Node::Meaning(name, is_equal, value)
                });
            }
        }

        Err(self.error("expected r=, r!=, i= or i!=: fields of records are compared as texts"))
    }

    fn order(&mut self) -> Result<Order, ExprError> {
        let orders = [
            ("<=", Order::LessOrEqual),
            ("<", Order::Less),
            ("==", Order::Equal),
            (">=", Order::GreaterOrEqual),
            (">", Order::Greater),
            ("!==", Order::NotEqual),
        ];

        for (sign, order) in orders {
            if self.take(sign) {
                return Ok(order);
            }
        }

        Err(self.error("expected one of < <= == > >= !=="))
    }

    fn virtual_field(&mut self) -> Result<Node, ExprError> {
        let at = self.at();
        let name = self.string("timestamp, timestamp_ex, record_type or regexp")?;
        match &name[..] {
            b"regexp" => self.regex(),
            b"timestamp" | b"timestamp_ex" => {
                let order = self.order()?;
                let at = self.at();
                let value = self.string("a time")?;
                let has_serial = name.len() > 9;
                let form = if has_serial {
                    "\"ts:SECONDS.MILLI:SERIAL\""
                } else {
                    "\"ts:SECONDS.MILLI\""
                };
                let time = time(&value, has_serial);
                time.map(|time| Node::Time(order, time))
                    .ok_or_else(|| ExprError::new(at, format!("expected {form}")))
            }
            b"record_type" => {
                let order = self.order()?;
                let at = self.at();
                let value = self.string("a record type")?;
                match kind::number(&value, Dialect::Own) {
                    -1 => Err(ExprError::new(
                        at,
                        "expected the name or number of a record type",
                    )),
                    number => Ok(Node::Kind(order, number)),
                }
            }
            _ => Err(ExprError::new(
                at,
                "expected timestamp, timestamp_ex, record_type or regexp",
            )),
        }
    }

    fn regex(&mut self) -> Result<Node, ExprError> {
        let at = self.at();
        let text = match self.tokens.get(self.next) {
            Some((_, Token::Text(text) | Token::Regex(text))) => text.clone(),
            _ => return Err(self.error("expected a regular expression in // or \"\"")),
        };
        self.next += 1;
        Regex::new(&text)
            .map(Node::Regex)
            .map_err(|message| ExprError::new(at, format!("regular expression: {message}")))
    }
}

fn time(text: &[u8], has_serial: bool) -> Option<(u64, u32, Option<u64>)> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix("ts:")?;
    let (sec, rest) = text.split_once('.')?;
    let (msec, serial) = if has_serial {
        let (msec, serial) = rest.split_once(':')?;
        (msec, Some(serial.parse().ok()?))
    } else {
        (rest, None)
    };
    let msec = msec.parse().ok().filter(|msec| *msec <= 999)?;
    Some((sec.parse().ok()?, msec, serial))
}
