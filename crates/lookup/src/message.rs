//! The messages between the daemon and a helper: datagrams with a fixed header and a text, in the
//! machine's byte order.
//!
//! A request gets at most one [`Reply`] with the same number; before it, the helper may announce
//! what it [waits for](Content::Waits). Anything that is not exactly as laid out here is refused.

use crate::bytes::{long, word};
use crate::digest::{DigestQuestion, ANSWER_BYTES_MAX, OWN_BYTES};
use event::record::Inode;
use event::HashedFile;
use plan::ObjectId;

/// Length of the longest path in a question, in bytes. It is eight times PATH_MAX, so that a long
/// path below a long current directory has room.
pub const PATH_BYTES_MAX: usize = 32 * 1024;
/// Longest text of a reply.
const TEXT_BYTES_MAX: usize = PATH_BYTES_MAX;
/// Bytes of a request before its path.
const REQUEST_HEAD: usize = 24;
/// Bytes of a reply before its content.
const REPLY_HEAD: usize = 8;
/// Bytes of the longest message.
pub const BYTES_MAX: usize = REQUEST_HEAD + OWN_BYTES + PATH_BYTES_MAX;

const FOLLOW: u8 = 1;
const MAY_WAIT: u8 = 2;
const OF: u8 = 4;
const SCRIPT: u8 = 8;
/// Kind of a request for digests, which has more than the header before its path.
const DIGESTS: u8 = 11;
const CONTAINER: u8 = 12;

/// Something to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// The object at a path; a symbolic link at its end itself unless `follow`.
    Inode {
        /// Absolute, here and below.
        path: &'a [u8],
        /// Whether a symbolic link at the end is followed.
        follow: bool,
    },
    /// The path without symbolic links.
    RealPath(&'a [u8]),
    /// The extended attribute `security.capability` of the object at a path.
    Capabilities(&'a [u8], Option<ObjectId>),
    /// The first bytes of the regular file at a path.
    Head(&'a [u8], Option<ObjectId>, u32),
    /// `f_type` of the file system at a path.
    FileSystem(&'a [u8]),
    /// The directories above a path, below as many bytes of it: see [`compose::directories_above`].
    Above(&'a [u8], u32),
    /// The name of a user.
    User(u32),
    /// The name of a group.
    Group(u32),
    /// The inode number of a process's mount namespace.
    MountNamespace(u32),
    /// The path of the program that a process runs.
    Executable(u32),
    /// The names of a container and its pod: `/ID/UID`.
    Container(&'a [u8]),
    /// The digests of an executed file.
    Digests(DigestQuestion<'a>),
}

impl<'a> Question<'a> {
    /// The path in the question; `None` if it is about a name.
    pub(crate) fn path(&self) -> &'a [u8] {
        match *self {
            Question::Inode { path, .. }
            | Question::RealPath(path)
            | Question::Capabilities(path, _)
            | Question::Head(path, ..)
            | Question::FileSystem(path)
            | Question::Above(path, _)
            | Question::Container(path)
            | Question::Digests(DigestQuestion { path, .. }) => path,
            Question::User(_)
            | Question::Group(_)
            | Question::MountNamespace(_)
            | Question::Executable(_) => b"",
        }
    }
}

/// Message from the daemon to a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Look this up.
    Ask {
        /// Number of the request, which the reply repeats.
        number: u32,
        /// Whether the helper may wait for the answer; otherwise it only asks for what the kernel
        /// has in memory.
        may_wait: bool,
        /// The question.
        question: Question<'a>,
    },
    /// Wait for nothing on the file system with this device number for a while. There is no reply.
    Avoid {
        /// Device number, in the kernel's own encoding.
        dev: u32,
        /// Duration, in milliseconds.
        ms: u32,
    },
}

/// Message from a helper to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Number of the request.
    pub number: u32,
    /// The content.
    pub content: Content<'a>,
}

/// The content of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The answer follows when the file system with this device number has answered.
    Waits(u32),
    /// Answer to [`Question::Inode`].
    Inode(Inode),
    /// Answer to questions for a text or bytes.
    Bytes(&'a [u8]),
    /// Answer to [`Question::FileSystem`] and [`Question::MountNamespace`].
    Number(u32),
    /// There is no such thing.
    Missing,
    /// The answer would need a wait for a file system that must not be waited for.
    NotNow,
}

impl Content<'_> {
    /// Whether this can answer `question`.
    pub fn answers(&self, question: &Question<'_>) -> bool {
        let most = match question {
            Question::Inode { .. } => return matches!(self, Content::Inode(_)) || self.is_empty(),
            Question::FileSystem(_) | Question::MountNamespace(_) => {
                return matches!(self, Content::Number(_)) || self.is_empty()
            }
            Question::Above(..) => {
                let is_whole = |bytes: &[u8]| bytes.len().is_multiple_of(OBJECT_BYTES);
                let is_list = matches!(self, Content::Bytes(bytes) if is_whole(bytes));
                return is_list || self.is_empty();
            }
            Question::Digests(_) => ANSWER_BYTES_MAX,
            Question::Capabilities(..) => CAPABILITIES_BYTES,
            Question::Head(_, _, bytes_max) => *bytes_max as usize,
            Question::RealPath(_)
            | Question::User(_)
            | Question::Group(_)
            | Question::Container(_)
            | Question::Executable(_) => TEXT_BYTES_MAX,
        };
        self.is_empty() || matches!(self, Content::Bytes(bytes) if bytes.len() <= most)
    }

    fn is_empty(&self) -> bool {
        matches!(self, Content::Missing | Content::NotNow)
    }
}

/// Size of an object in the answer to [`Question::Above`], in bytes.
const OBJECT_BYTES: usize = 12;
/// Limit of the directories in the answer to [`Question::Above`].
pub(crate) const DIRECTORIES_MAX: usize = 2048;

/// Appends an object to the answer to [`Question::Above`].
pub(crate) fn put_object(id: ObjectId, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.ino.to_ne_bytes());
    out.extend_from_slice(&id.dev.to_ne_bytes());
}

/// The objects of the answer to [`Question::Above`].
pub(crate) fn objects(bytes: &[u8]) -> Vec<ObjectId> {
    let object = |bytes| {
        Some(ObjectId {
            ino: long(bytes, 0)?,
            dev: word(bytes, 8)?,
        })
    };
    bytes
        .chunks_exact(OBJECT_BYTES)
        .filter_map(object)
        .collect()
}

/// `XATTR_CAPS_SZ` of linux/capability.h.
pub(crate) const CAPABILITIES_BYTES: usize = 24;

/// The header of a request, as it is sent. Members that a kind does not use are 0.
#[derive(Default, PartialEq, Eq)]
struct Head {
    kind: u8,
    flags: u8,
    number: u32,
    value: u32,
    dev: u32,
    ino: u64,
}

impl Head {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, self.flags, 0, 0]);
        for word in [self.number, self.value, self.dev] {
            out.extend_from_slice(&word.to_ne_bytes());
        }
        out.extend_from_slice(&self.ino.to_ne_bytes());
    }

    fn take(bytes: &[u8]) -> Option<(Head, &[u8])> {
        let (head, rest) = bytes.split_at_checked(REQUEST_HEAD)?;
        let head = Head {
            kind: head[0],
            flags: head[1],
            number: word(head, 4)?,
            value: word(head, 8)?,
            dev: word(head, 12)?,
            ino: long(head, 16)?,
        };
        (bytes[2..4] == [0, 0]).then_some((head, rest))
    }

    fn of(&self) -> Option<ObjectId> {
        (self.flags & OF != 0).then_some(ObjectId {
            dev: self.dev,
            ino: self.ino,
        })
    }

    /// Takes over what the header has place for. Returns kind and path of the request.
    fn with_digests<'a>(&mut self, question: &DigestQuestion<'a>) -> (u8, &'a [u8]) {
        self.flags |= OF;
        self.flags |= match question.file {
            HashedFile::Exe => 0,
            HashedFile::Script => SCRIPT,
        };
        self.value = question.pid;
        (self.dev, self.ino) = (question.object.dev, question.object.ino);
        (DIGESTS, question.path)
    }

    /// The part of a question for digests that is in the header.
    fn digests<'a>(&self, path: &'a [u8]) -> DigestQuestion<'a> {
        DigestQuestion {
            path,
            object: ObjectId {
                dev: self.dev,
                ino: self.ino,
            },
            file: match self.flags & SCRIPT {
                0 => HashedFile::Exe,
                _ => HashedFile::Script,
            },
            pid: self.value,
            mnt_ns: 0,
            time_ns: 0,
            bytes_max: 0,
        }
    }
}

impl<'a> Request<'a> {
    /// Appends the message. A path is one that [`Request::parse`] takes.
    pub fn put(&self, out: &mut Vec<u8>) {
        let (head, path) = self.parts();
        head.put(out);
        if let Request::Ask {
            question: Question::Digests(question),
            ..
        } = self
        {
            question.put_own(out);
        }
        out.extend_from_slice(path);
    }

    fn parts(&self) -> (Head, &'a [u8]) {
        let (number, may_wait, question) = match *self {
            Request::Avoid { dev, ms } => {
                let head = Head {
                    value: ms,
                    dev,
                    ..Head::default()
                };
                return (head, b"");
            }
            Request::Ask {
                number,
                may_wait,
                question,
            } => (number, may_wait, question),
        };
        let mut head = Head {
            flags: if may_wait { MAY_WAIT } else { 0 },
            number,
            ..Head::default()
        };
        let mut of = None;
        let path;
        (head.kind, path) = match question {
            Question::Inode { path, follow } => {
                head.flags |= if follow { FOLLOW } else { 0 };
                (1, path)
            }
            Question::RealPath(path) => (2, path),
            Question::Capabilities(path, object) => {
                of = object;
                (3, path)
            }
            Question::Head(path, object, bytes_max) => {
                (of, head.value) = (object, bytes_max);
                (4, path)
            }
            Question::FileSystem(path) => (5, path),
            Question::Above(path, prefix) => {
                head.value = prefix;
                (8, path)
            }
            Question::User(uid) => {
                head.value = uid;
                (6, &b""[..])
            }
            Question::Group(gid) => {
                head.value = gid;
                (7, &b""[..])
            }
            Question::MountNamespace(pid) => {
                head.value = pid;
                (9, &b""[..])
            }
            Question::Executable(pid) => {
                head.value = pid;
                (10, &b""[..])
            }
            Question::Container(path) => (CONTAINER, path),
            Question::Digests(question) => head.with_digests(&question),
        };
        if let Some(ObjectId { dev, ino }) = of {
            head.flags |= OF;
            (head.dev, head.ino) = (dev, ino);
        }
        (head, path)
    }

    /// The request in a datagram; `None` if it is not one.
    pub fn parse(bytes: &'a [u8]) -> Option<Request<'a>> {
        let (head, rest) = Head::take(bytes)?;
        let (own, path) = match head.kind {
            DIGESTS => rest.split_at_checked(OWN_BYTES)?,
            _ => (&b""[..], rest),
        };
        let question = match head.kind {
            0 => None,
            1 => Some(Question::Inode {
                path,
                follow: head.flags & FOLLOW != 0,
            }),
            2 => Some(Question::RealPath(path)),
            3 => Some(Question::Capabilities(path, head.of())),
            4 => Some(Question::Head(path, head.of(), head.value)),
            5 => Some(Question::FileSystem(path)),
            6 => Some(Question::User(head.value)),
            7 => Some(Question::Group(head.value)),
            8 => Some(Question::Above(path, head.value)),
            9 => Some(Question::MountNamespace(head.value)),
            10 => Some(Question::Executable(head.value)),
            CONTAINER => Some(Question::Container(path)),
            DIGESTS => Some(Question::Digests(head.digests(path).with_own(own)?)),
            _ => return None,
        };
        let request = match question {
            None => Request::Avoid {
                dev: head.dev,
                ms: head.value,
            },
            Some(question) => Request::Ask {
                number: head.number,
                may_wait: head.flags & MAY_WAIT != 0,
                question,
            },
        };
        // Anything that the other side would not send, such as an unused flag, is refused.
        let has_path = matches!(head.kind, 1..=5 | 8 | DIGESTS | CONTAINER);
        let is_right = request.parts() == (head, path) && has_path == is_path(path);
        (is_right && (has_path || path.is_empty())).then_some(request)
    }
}

/// Whether a path can be in a question.
pub fn is_path(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && path.len() <= PATH_BYTES_MAX && !path.contains(&0)
}

impl<'a> Reply<'a> {
    /// Appends the message.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind: u8 = match self.content {
            Content::Waits(_) => 1,
            Content::Inode(_) => 2,
            Content::Bytes(_) => 3,
            Content::Number(_) => 4,
            Content::Missing => 5,
            Content::NotNow => 6,
        };
        out.extend_from_slice(&[kind, 0, 0, 0]);
        out.extend_from_slice(&self.number.to_ne_bytes());
        match self.content {
            Content::Waits(number) | Content::Number(number) => {
                out.extend_from_slice(&number.to_ne_bytes());
            }
            Content::Inode(inode) => {
                out.extend_from_slice(&inode.ino.to_ne_bytes());
                let mode = inode.mode.into();
                for word in [inode.dev, mode, inode.ouid, inode.ogid, inode.rdev] {
                    out.extend_from_slice(&word.to_ne_bytes());
                }
            }
            Content::Bytes(bytes) => out.extend_from_slice(bytes),
            Content::Missing | Content::NotNow => {}
        }
    }

    /// The reply in a datagram; `None` if it is not one.
    pub fn parse(bytes: &'a [u8]) -> Option<Reply<'a>> {
        let (head, rest) = bytes.split_at_checked(REPLY_HEAD)?;
        let number = || Some(u32::from_ne_bytes(rest.try_into().ok()?));
        let content = match head[0] {
            1 => Content::Waits(number()?),
            2 if rest.len() == 28 => Content::Inode(Inode {
                ino: long(rest, 0)?,
                dev: word(rest, 8)?,
                mode: word(rest, 12)?.try_into().ok()?,
                ouid: word(rest, 16)?,
                ogid: word(rest, 20)?,
                rdev: word(rest, 24)?,
            }),
            3 if rest.len() <= TEXT_BYTES_MAX => Content::Bytes(rest),
            4 => Content::Number(number()?),
            5 if rest.is_empty() => Content::Missing,
            6 if rest.is_empty() => Content::NotNow,
            _ => return None,
        };
        let number = word(head, 4)?;
        (head[1..4] == [0, 0, 0]).then_some(Reply { number, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: Option<ObjectId> = Some(ObjectId { dev: 3, ino: 4 });

    fn digests(file: HashedFile) -> Question<'static> {
        Question::Digests(DigestQuestion {
            path: b"/usr/bin/x",
            object: ObjectId { dev: 3, ino: 4 },
            file,
            pid: 5,
            mnt_ns: 6,
            time_ns: u64::MAX,
            bytes_max: 7,
        })
    }

    fn asked(question: Question<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        Request::Ask {
            number: 7,
            may_wait: true,
            question,
        }
        .put(&mut out);
        out
    }

    #[test]
    fn every_request_comes_back() {
        let path = b"/etc/passwd";
        for question in [
            Question::Inode { path, follow: true },
            Question::Inode {
                path,
                follow: false,
            },
            Question::RealPath(path),
            Question::Capabilities(path, OBJECT),
            Question::Head(path, None, 256),
            Question::FileSystem(path),
            Question::Above(path, 4),
            Question::User(1000),
            Question::Group(u32::MAX),
            Question::MountNamespace(1),
            Question::Executable(u32::MAX),
            digests(HashedFile::Exe),
            digests(HashedFile::Script),
        ] {
            let bytes = asked(question);
            let expected = Request::Ask {
                number: 7,
                may_wait: true,
                question,
            };
            assert_eq!(Request::parse(&bytes), Some(expected));
        }
        let avoid = Request::Avoid { dev: 9, ms: 10_000 };
        let mut bytes = Vec::new();
        avoid.put(&mut bytes);
        assert_eq!(Request::parse(&bytes), Some(avoid));
    }

    #[test]
    fn a_request_with_anything_that_it_does_not_use_is_refused() {
        let user = asked(Question::User(5));
        for at in [1, 2, 12, 16] {
            let mut other = user.clone();
            other[at] |= 0x80;
            assert_eq!(Request::parse(&other), None, "byte {at}");
        }
        let digests = asked(digests(HashedFile::Exe));
        for at in [1, REQUEST_HEAD + OWN_BYTES - 1] {
            let mut other = digests.clone();
            other[at] |= 0x80;
            assert_eq!(Request::parse(&other), None, "byte {at}");
        }
        for len in 0..REQUEST_HEAD + OWN_BYTES + 1 {
            assert_eq!(Request::parse(&digests[..len]), None);
        }
        let longer = [&user[..], b"/x"].concat();
        assert_eq!(Request::parse(&longer), None);
        assert_eq!(Request::parse(&user[..23]), None);
        let long = [b"/".as_slice(), &[b'x'; PATH_BYTES_MAX]].concat();
        for path in [&b"etc"[..], b"", b"/a\0b", &long] {
            assert_eq!(Request::parse(&asked(Question::RealPath(path))), None);
        }
    }

    #[test]
    fn every_reply_comes_back_and_a_cut_one_is_refused() {
        let inode = Inode {
            ino: u64::MAX,
            dev: 1,
            mode: 0o100644,
            ouid: 2,
            ogid: 3,
            rdev: 4,
        };
        for content in [
            Content::Waits(5),
            Content::Inode(inode),
            Content::Number(6),
            Content::Missing,
            Content::NotNow,
            Content::Bytes(b"text"),
        ] {
            let reply = Reply { number: 8, content };
            let mut bytes = Vec::new();
            reply.put(&mut bytes);
            assert_eq!(Reply::parse(&bytes), Some(reply));
            for len in 0..bytes.len() {
                let cut = Reply::parse(&bytes[..len]);
                assert!(cut.is_none() || matches!(content, Content::Bytes(_)));
            }
        }
        assert_eq!(Reply::parse(&[9, 0, 0, 0, 1, 0, 0, 0]), None);
        assert_eq!(Reply::parse(&[5, 1, 0, 0, 1, 0, 0, 0]), None);
    }

    #[test]
    fn an_answer_of_another_kind_is_none() {
        let question = Question::Head(b"/x", None, 3);
        assert!(Content::Bytes(b"abc").answers(&question));
        assert!(Content::Missing.answers(&question));
        assert!(!Content::Bytes(b"abcd").answers(&question));
        assert!(!Content::Number(3).answers(&question));
        assert!(!Content::Bytes(b"x").answers(&Question::FileSystem(b"/x")));
        assert!(!Content::Waits(3).answers(&question));
        let above = Question::Above(b"/x/y", 0);
        assert!(Content::Bytes(&[0; 24]).answers(&above));
        assert!(!Content::Bytes(&[0; 13]).answers(&above));
    }
}
