//! The helper's side: answers requests until the daemon is gone.

use crate::datagram;
use crate::lookup::answer;
use crate::lookup::devices::Devices;
use crate::lookup::digest::Hasher;
use crate::lookup::message::{Content, Reply, Request, BYTES_MAX};
use crate::lookup::walk::Gate;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::time::{Duration, Instant};

/// Answers the requests that come over `socket` until the other side closes it or sends something else.
pub fn serve(socket: impl AsFd) {
    serve_with(socket, None);
}

/// Like [`serve`]; with a `hasher`, also answers requests for digests.
pub(crate) fn serve_with(socket: impl AsFd, mut hasher: Option<Hasher>) {
    let socket = socket.as_fd();
    let (mut avoided, mut devices) = (Avoided::default(), Devices::default());
    let (mut buffer, mut out) = (vec![0; BYTES_MAX], Vec::new());

    loop {
        let len = match datagram::receive(socket, &mut buffer, RecvFlags::empty()) {
            Ok(len) if len > 0 => len,
            Err(Errno::INTR) => continue,
            // The daemon is gone, or what sends is not the daemon.
            _ => return,
        };
        let (number, may_wait, asker, question) = match Request::parse(&buffer[..len]) {
            Ok(Request::Ask {
                number,
                may_wait,
                asker,
                question,
            }) => (number, may_wait, asker, question),
            Ok(Request::Avoid { dev, ms }) => {
                avoided.add(dev, ms);
                continue;
            }
            Err(_) => return,
        };

        let limit = Duration::from_micros(asker.limit_us.into());
        let mut gate = Announcer {
            socket,
            number,
            may_wait,
            until: (asker.limit_us > 0).then(|| Instant::now() + limit),
            avoided: &mut avoided,
            announced: None,
        };
        let content = answer::to(question, asker, &mut gate, &mut devices, hasher.as_mut());
        if !put(socket, &mut out, number, content) {
            return;
        }
    }
}

/// Sends a reply. Returns whether the other side is still there.
fn put(socket: BorrowedFd<'_>, out: &mut Vec<u8>, number: u32, content: Content<'_>) -> bool {
    Reply { number, content }.put(out);
    datagram::send(socket, out, SendFlags::empty()).is_ok()
}

/// Announces to the daemon what it is about to wait for.
struct Announcer<'a> {
    socket: BorrowedFd<'a>,
    number: u32,
    may_wait: bool,
    /// Time from which no answer is wanted.
    until: Option<Instant>,
    avoided: &'a mut Avoided,
    /// The file system that was announced last.
    announced: Option<u32>,
}

impl Gate for Announcer<'_> {
    fn may_wait(&mut self, dev: u32) -> bool {
        if !self.may_wait || self.avoided.has(dev) {
            return false;
        }

        if self.announced != Some(dev) {
            self.announced = Some(dev);
            // If the daemon is gone, the next request shows it.
            put(
                self.socket,
                &mut Vec::new(),
                self.number,
                Content::Waits(dev),
            );
        }

        true
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// File systems that must not be waited for, each with the time until which this holds.
#[derive(Default)]
struct Avoided(Vec<(u32, Instant)>);

impl Avoided {
    fn add(&mut self, dev: u32, ms: u32) {
        self.0.retain(|&(other, _)| other != dev);
        let until = Instant::now() + Duration::from_millis(ms.into());
        self.0.push((dev, until));
    }

    fn has(&mut self, dev: u32) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let now = Instant::now();
        self.0.retain(|&(_, until)| until > now);
        self.0.iter().any(|&(avoided, _)| avoided == dev)
    }
}
