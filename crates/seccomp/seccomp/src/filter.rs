//! A program that the kernel accepts as a filter.

use crate::validate::{validate, Invalid};
use crate::Insn;
use std::sync::Arc;

/// A valid seccomp filter. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    insns: Arc<[Insn]>,
}

impl Filter {
    /// Takes a program that follows the kernel's rules.
    ///
    /// # Errors
    /// The first instruction that breaks a rule, and which rule it is.
    pub fn new(insns: impl Into<Arc<[Insn]>>) -> Result<Filter, Invalid> {
        let insns = insns.into();
        validate(&insns)?;
        Ok(Filter { insns })
    }

    /// Takes a program in its binary form: 8 bytes per instruction, little endian.
    ///
    /// # Errors
    /// The length is not a multiple of 8, or the program breaks a rule.
    pub fn from_bytes(bytes: &[u8]) -> Result<Filter, Invalid> {
        if !bytes.len().is_multiple_of(8) {
            return Err(Invalid::size(bytes.len()));
        }

        let insns: Vec<Insn> = bytes
            .chunks_exact(8)
            .map(|b| Insn {
                code: u16::from_le_bytes([b[0], b[1]]),
                jt: b[2],
                jf: b[3],
                k: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
            })
            .collect();

        Filter::new(insns)
    }

    /// The program in the form that [`Filter::from_bytes`] takes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.insns.len() * 8);
        for insn in self.insns.iter() {
            bytes.extend(insn.code.to_le_bytes());
            bytes.extend([insn.jt, insn.jf]);
            bytes.extend(insn.k.to_le_bytes());
        }
        bytes
    }

    /// The instructions, at least one and at most 4096.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }
}
