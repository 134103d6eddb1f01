//! Words as 32 conditions, and the arithmetic of filters on them.

use super::store::{Ref, Store, FALSE, TRUE};
use super::{variable, TooLarge};
use crate::insn::code;

/// A 32-bit value; index 0 is the least significant bit.
pub(crate) type Bits = [Ref; 32];

/// A constant.
pub(crate) fn constant(value: u32) -> Bits {
    std::array::from_fn(|bit| if value >> bit & 1 == 1 { TRUE } else { FALSE })
}

/// The value, if it is constant.
pub(crate) fn as_constant(bits: &Bits) -> Option<u32> {
    let mut value = 0;
    for (place, &bit) in bits.iter().enumerate() {
        match bit {
            TRUE => value |= 1 << place,
            FALSE => {}
            _ => return None,
        }
    }
    Some(value)
}

/// The word at `offset`.
pub(crate) fn word(store: &mut Store, offset: u32) -> Result<Bits, TooLarge> {
    let mut bits = [FALSE; 32];
    for (bit, place) in bits.iter_mut().zip(0..) {
        *bit = store.bit(variable(offset, place))?;
    }
    Ok(bits)
}

/// Condition that a conditional jump with code `jump` (without X) is taken.
pub(crate) fn condition(
    store: &mut Store,
    jump: u16,
    a: &Bits,
    operand: &Bits,
) -> Result<Ref, TooLarge> {
    // From the least significant bit up, that is, from the last variable to the first.
    let mut result = match jump {
        code::JEQ | code::JGE => TRUE,
        _ => FALSE,
    };
    for (&a, &b) in a.iter().zip(operand) {
        result = match jump {
            code::JSET => {
                let both = store.and(a, b)?;
                store.or(both, result)?
            }
            _ => {
                let differ = store.xor(a, b)?;
                // A higher bit in which they differ decides, whatever the lower bits are.
                let decided = if jump == code::JEQ { FALSE } else { a };
                store.ite(differ, decided, result)?
            }
        };
    }

    Ok(result)
}

/// A after an ALU operation, with the same results as `run::arithmetic`; the quotient of a division
/// by 0 is unspecified.
pub(crate) fn arithmetic(
    store: &mut Store,
    operation: u16,
    a: &Bits,
    b: &Bits,
) -> Result<Bits, TooLarge> {
    match operation {
        code::ADD => add(store, a, b, FALSE),
        code::SUB => {
            // Two's complement: a - b is a + !b + 1.
            let b = invert(store, b)?;
            add(store, a, &b, TRUE)
        }
        code::NEG => {
            let a = invert(store, a)?;
            add(store, &a, &constant(0), TRUE)
        }
        code::MUL => multiply(store, a, b),
        code::DIV => divide(store, a, b),
        code::LSH => shift(store, a, b, true),
        code::RSH => shift(store, a, b, false),
        _ => {
            let mut result = [FALSE; 32];
            for (place, result) in result.iter_mut().enumerate() {
                *result = match operation {
                    code::AND => store.and(a[place], b[place])?,
                    code::OR => store.or(a[place], b[place])?,
                    _ => store.xor(a[place], b[place])?,
                };
            }
            Ok(result)
        }
    }
}

fn invert(store: &mut Store, a: &Bits) -> Result<Bits, TooLarge> {
    let mut result = *a;
    for bit in &mut result {
        *bit = store.not(*bit)?;
    }
    Ok(result)
}

fn add(store: &mut Store, a: &Bits, b: &Bits, mut carry: Ref) -> Result<Bits, TooLarge> {
    let mut sum = [FALSE; 32];
    for place in 0..32 {
        let differ = store.xor(a[place], b[place])?;
        sum[place] = store.xor(differ, carry)?;
        carry = store.ite(differ, carry, a[place])?;
    }
    Ok(sum)
}

/// `yes` where `condition` holds, and `no` elsewhere.
fn select(store: &mut Store, condition: Ref, yes: &Bits, no: &Bits) -> Result<Bits, TooLarge> {
    let mut result = [FALSE; 32];
    for (place, result) in result.iter_mut().enumerate() {
        *result = store.ite(condition, yes[place], no[place])?;
    }
    Ok(result)
}

fn moved(a: &Bits, by: usize, left: bool) -> Bits {
    std::array::from_fn(|place| {
        let from = if left {
            place.checked_sub(by)
        } else {
            Some(place + by)
        };
        from.and_then(|from| a.get(from)).copied().unwrap_or(FALSE)
    })
}

fn shift(store: &mut Store, a: &Bits, b: &Bits, left: bool) -> Result<Bits, TooLarge> {
    let mut result = *a;
    // As in `run`, only the lower five bits of the distance count.
    for (place, &bit) in b.iter().enumerate().take(5) {
        let shifted = moved(&result, 1 << place, left);
        result = select(store, bit, &shifted, &result)?;
    }
    Ok(result)
}

fn multiply(store: &mut Store, a: &Bits, b: &Bits) -> Result<Bits, TooLarge> {
    let mut product = constant(0);
    for (place, &bit) in b.iter().enumerate() {
        if bit != FALSE {
            let more = add(store, &product, &moved(a, place, true), FALSE)?;
            product = select(store, bit, &more, &product)?;
        }
    }
    Ok(product)
}

/// Long division, one bit of the quotient at a time.
fn divide(store: &mut Store, a: &Bits, b: &Bits) -> Result<Bits, TooLarge> {
    let (mut quotient, mut rest) = (constant(0), constant(0));
    let minus_b = invert(store, b)?;
    for place in (0..32).rev() {
        // The bit that the shift pushes out: with it the remainder is larger than any divisor.
        let above = rest[31];
        rest = moved(&rest, 1, true);
        rest[0] = a[place];
        let enough = condition(store, code::JGE, &rest, b)?;
        let fits = store.or(above, enough)?;
        let less = add(store, &rest, &minus_b, TRUE)?;
        rest = select(store, fits, &less, &rest)?;
        quotient[place] = fits;
    }

    Ok(quotient)
}
