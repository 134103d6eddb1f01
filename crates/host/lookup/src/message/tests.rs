//! Tests of messages: they come back as they were sent, and nothing else is taken.

use super::*;

const ASKER: Asker = Asker {
    limit_us: 20_000,
    pid: 7,
    prefix: 3,
};
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
        asker: ASKER,
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
            asker: ASKER,
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
    assert_eq!(Request::parse(&user[..REQUEST_HEAD - 1]), None);
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
        Content::Denied,
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
    assert!(Content::Bytes(&[0; 25]).answers(&above));
    assert!(!Content::Bytes(&[0; 24]).answers(&above));
    assert!(!Content::Bytes(&[2]).answers(&above));
    assert!(!Content::Bytes(&[]).answers(&above));
}
