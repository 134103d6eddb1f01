//! Labels of processes, as the log tells them. They are of letters, digits, `.`, `_` and `-`.

use crate::put;

/// Appends ` LABELS="A,B"`; `?` stands for others that the process may have.
pub(crate) fn enriched<'a>(
    out: &mut Vec<u8>,
    labels: impl Iterator<Item = &'a str>,
    is_partial: bool,
) {
    let mut mark = " LABELS=\"";
    for label in labels.chain(is_partial.then_some("?")) {
        put::text(out, mark);
        put::text(out, label);
        mark = ",";
    }
    if mark == "," {
        out.push(b'"');
    }
}

/// Appends `,"labels":["A","B"]`, and that the process may have others.
pub(crate) fn json<'a>(out: &mut Vec<u8>, labels: impl Iterator<Item = &'a str>, is_partial: bool) {
    let mut labels = labels.peekable();
    if labels.peek().is_none() && !is_partial {
        return;
    }

    put::text(out, ",\"labels\":[");
    for (place, label) in labels.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        put::quoted(out, label.as_bytes());
    }

    out.push(b']');
    if is_partial {
        put::text(out, ",\"labels_partial\":true");
    }
}
