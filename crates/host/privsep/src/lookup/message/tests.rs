//! Tests of messages: they come back as they were sent, and nothing else is taken.

use super::*;
use record::{NoDigest, Verity};

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
        assert_eq!(Request::parse(&bytes), Ok(expected));
    }
    let avoid = Request::Avoid { dev: 9, ms: 10_000 };
    let mut bytes = Vec::new();
    avoid.put(&mut bytes);
    assert_eq!(Request::parse(&bytes), Ok(avoid));
}

#[test]
fn a_request_that_is_cut_or_longer_or_has_another_path_is_refused() {
    let refused = Err(FrameError::Malformed);
    for question in [Question::User(5), digests(HashedFile::Exe)] {
        let bytes = asked(question);
        for len in 0..bytes.len() {
            assert_eq!(Request::parse(&bytes[..len]), refused, "{len} bytes");
        }
        let longer = [&bytes[..], b"/x"].concat();
        assert_eq!(Request::parse(&longer), refused);
    }
    // The file of a request for digests, which has two values.
    let mut other = asked(digests(HashedFile::Exe));
    let script = asked(digests(HashedFile::Script));
    let at = other.iter().zip(&script).position(|(a, b)| a != b);
    other[at.expect("they differ")] = 2;
    assert_eq!(Request::parse(&other), refused);
    let long = [b"/".as_slice(), &[b'x'; PATH_BYTES_MAX]].concat();
    for path in [&b"etc"[..], b"", b"/a\0b", &long] {
        assert_eq!(Request::parse(&asked(Question::RealPath(path))), refused);
    }
}

#[test]
fn the_longest_message_has_room() {
    let path = [b"/".as_slice(), &[b'x'; PATH_BYTES_MAX - 1]].concat();
    let object = ObjectId {
        dev: u32::MAX,
        ino: u64::MAX,
    };
    let question = Question::Digests(DigestQuestion {
        path: &path,
        object,
        file: HashedFile::Script,
        pid: u32::MAX,
        mnt_ns: u32::MAX,
        time_ns: u64::MAX,
        bytes_max: u64::MAX,
    });
    let mut bytes = Vec::new();
    let request = Request::Ask {
        number: u32::MAX,
        may_wait: true,
        asker: Asker {
            limit_us: u32::MAX,
            pid: u32::MAX,
            prefix: u32::MAX,
        },
        question,
    };
    request.put(&mut bytes);
    assert_eq!(Request::parse(&bytes), Ok(request));
    assert!(bytes.len() <= BYTES_MAX, "{} bytes", bytes.len());
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
        label: 0,
    };
    let above = Above {
        objects: OBJECT.into_iter().collect(),
        is_all: true,
    };
    let names = ContainerNames {
        container: Some("web".to_owned()),
        image: Some("nginx\" UID=\"root".to_owned()),
        pod: None,
        namespace: Some("shop".to_owned()),
    };
    let contents = [
        Content::Waits(5),
        Content::Inode(inode),
        Content::Number(6),
        Content::Above(above),
        Content::Container(names),
        Content::Missing,
        Content::NotNow,
        Content::Denied,
        Content::Bytes(b"text".into()),
    ];
    for content in contents.into_iter().chain(every_digests()) {
        let reply = Reply { number: 8, content };
        let mut bytes = Vec::new();
        reply.put(&mut bytes);
        assert_eq!(Reply::parse(&bytes), Ok(reply));
        for len in 0..bytes.len() {
            assert_eq!(Reply::parse(&bytes[..len]), Err(FrameError::Malformed));
        }
        bytes.push(0);
        assert_eq!(Reply::parse(&bytes), Err(FrameError::Malformed));
    }
    // No such content, and no such reason why there is no digest.
    assert_eq!(Reply::parse(&[1, 8, 10]), Err(FrameError::Malformed));
    assert_eq!(
        Reply::parse(&[1, 8, 6, 1, 10, 0]),
        Err(FrameError::Malformed)
    );
}

/// Digests of every kind.
fn every_digests() -> impl Iterator<Item = Content<'static>> {
    let sha256 = NoDigest::ALL.map(Err).into_iter().chain([Ok([5; 32])]);
    let verities = [
        None,
        Some(Verity::Sha256([3; 32])),
        Some(Verity::Sha512([4; 64])),
    ];
    sha256
        .flat_map(move |sha256| verities.map(|verity| Content::Digests(Digests { sha256, verity })))
}

#[test]
fn an_answer_of_another_kind_is_none() {
    fn text(bytes: &[u8]) -> Content<'_> {
        Content::Bytes(bytes.into())
    }
    let question = Question::Head(b"/x", None, 3);
    assert!(text(b"abc").answers(&question));
    assert!(Content::Missing.answers(&question));
    assert!(!text(b"abcd").answers(&question));
    assert!(!Content::Number(3).answers(&question));
    assert!(!text(b"x").answers(&Question::FileSystem(b"/x")));
    assert!(!Content::Waits(3).answers(&question));
    let above = Question::Above(b"/x/y", 0);
    assert!(Content::Above(Above::default()).answers(&above));
    assert!(!text(&[0; 25]).answers(&above));
    assert!(!Content::Above(Above::default()).answers(&question));
    assert!(!text(b"x").answers(&digests(HashedFile::Exe)));
}
