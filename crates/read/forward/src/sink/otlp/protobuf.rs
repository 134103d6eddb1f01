//! Messages of protobuf: fields are written one after the other, and read as far as they can be.

/// Whether the bytes are fields of a message up to the last, and the first field is a message where it is there.
pub(super) fn is_whole(body: &[u8]) -> bool {
    let mut rest = body;
    while !rest.is_empty() {
        match take_field(&mut rest) {
            Some((1, Value::Bytes(_))) => {}
            Some((number, _)) if number > 1 => {}
            _ => return false,
        }
    }
    true
}

/// Value of a field. Fixed numbers are bytes.
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, as far as they can be read.
pub(super) fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || take_field(&mut rest))
}

pub(super) fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let tag = take_varint(rest)?;
    let value = match tag & 7 {
        0 => Value::Number(take_varint(rest)?),
        2 => {
            let length = usize::try_from(take_varint(rest)?).ok()?;
            Value::Bytes(take(rest, length)?)
        }
        1 => Value::Bytes(take(rest, 8)?),
        5 => Value::Bytes(take(rest, 4)?),
        _ => return None,
    };

    Some((tag >> 3, value))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

pub(super) fn attribute(number: u64, key: &str, value: &str, out: &mut Vec<u8>) {
    let (mut pair, mut any) = (Vec::with_capacity(64), Vec::with_capacity(48));
    text(1, key.as_bytes(), &mut pair);
    text(1, value.as_bytes(), &mut any);
    field(2, &any, &mut pair);
    field(number, &pair, out);
}

/// A field of bytes, text or a message.
pub(super) fn field(number: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

pub(super) fn text(number: u64, value: &[u8], out: &mut Vec<u8>) {
    field(number, value, out);
}

pub(super) fn fixed64(number: u64, value: u64, out: &mut Vec<u8>) {
    varint(number << 3 | 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
