//! The messages between the daemon and its helpers.

use privsep::frame::FrameError;
use privsep::lookup::message::{is_path, Asker, Question, Reply, Request, BYTES_MAX};

/// A datagram, as the helper and as the daemon take it. What is taken comes back as the same bytes.
pub(crate) fn lookups(data: &[u8]) {
    let mut out = Vec::new();
    let request = Request::parse(data);
    if let Ok(request) = request {
        request.put(&mut out);
        assert_eq!(out, data);
        assert!(data.len() <= BYTES_MAX);
    }
    if let Ok(reply) = Reply::parse(data) {
        reply.put(&mut out);
        assert_eq!(out, data);
        if let Ok(Request::Ask { question, .. }) = request {
            // Either will do.
            let _ = reply.content.answers(&question);
        }
    }
    asked_for(data);
}

/// Bytes as a path: a question for it is taken exactly if the daemon may send it.
fn asked_for(path: &[u8]) {
    let mut out = Vec::new();
    let request = Request::Ask {
        number: 1,
        may_wait: false,
        asker: Asker::default(),
        question: Question::RealPath(path),
    };
    request.put(&mut out);
    let expected = is_path(path).then_some(request);
    assert_eq!(Request::parse(&out), expected.ok_or(FrameError::Malformed));
}
