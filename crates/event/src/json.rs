//! stub
use crate::encode::Pending;
use crate::{RecordType, Stamp};
pub(crate) fn event(_out: &mut Vec<u8>, _node: &[u8], _stamp: Stamp, pending: &mut Pending) {
    pending.bodies.clear();
}
pub(crate) fn unparsed(_out: &mut Vec<u8>, _node: &[u8], _kind: RecordType, _message: &[u8]) {}
