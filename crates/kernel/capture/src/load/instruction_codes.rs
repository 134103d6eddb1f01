//! Parts of the code of an instruction: linux/bpf_common.h, linux/bpf.h.

pub(super) const CLASS: u8 = 0x07;
pub(super) const OPERATION: u8 = 0xf0;
pub(super) const BY_REGISTER: u8 = 0x08;
pub(super) const LOAD_ADDRESS: u8 = 0x18;
pub(super) const JUMP: u8 = 0x05;
pub(super) const JUMP_32: u8 = 0x06;
pub(super) const ALU: u8 = 0x04;
pub(super) const ALU_64: u8 = 0x07;
pub(super) const LOAD: u8 = 0x00;
pub(super) const LOAD_MEMORY: u8 = 0x01;
pub(super) const STORE: u8 = 0x02;
pub(super) const STORE_REGISTER: u8 = 0x03;
pub(super) const MODE: u8 = 0xe0;
pub(super) const ATOMIC: u8 = 0xc0;
pub(super) const ALWAYS: u8 = 0x00;
pub(super) const IF_EQUAL: u8 = 0x10;
pub(super) const IF_DIFFERENT: u8 = 0x50;
pub(super) const CALL: u8 = 0x80;
pub(super) const EXIT: u8 = 0x90;
pub(super) const IF_COUNTED: u8 = 0xe0;
pub(super) const MOVE: u8 = 0xb0;
pub(super) const AND: u8 = 0x50;
pub(super) const OR: u8 = 0x40;
