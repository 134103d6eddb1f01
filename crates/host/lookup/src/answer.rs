//! Answers questions in the calling process.

use crate::containers::{self, Files};
use crate::devices::Devices;
use crate::digest::{self, Hasher};
use crate::files;
use crate::kernel;
use crate::message::{Asker, Content, Question};
use crate::object::Fault;
use crate::walk::{Access, Gate};
use nix::unistd::{Gid, Group, Uid, User};
use record::record::Inode;

/// Longest name of a user or group that is passed on: LOGIN_NAME_MAX of limits.h.
const NAME_BYTES_MAX: usize = 256;

/// The result of a look-up.
pub(crate) enum Answer {
    Inode(Inode),
    Bytes(Vec<u8>),
    Number(u32),
}

impl Answer {
    /// The content of a reply with this result.
    pub(crate) fn content(found: &Result<Answer, Fault>) -> Content<'_> {
        match found {
            Ok(Answer::Inode(inode)) => Content::Inode(*inode),
            Ok(Answer::Bytes(bytes)) => Content::Bytes(bytes),
            Ok(Answer::Number(number)) => Content::Number(*number),
            Err(Fault::Missing) => Content::Missing,
            Err(Fault::NotNow) => Content::NotNow,
            Err(Fault::Denied) => Content::Denied,
        }
    }
}

/// Looks up the answer to `question` of `asker`. Only with a `hasher` are there digests.
pub(crate) fn to(
    question: Question<'_>,
    asker: Asker,
    gate: &mut dyn Gate,
    devices: &mut Devices,
    hasher: Option<&mut Hasher>,
) -> Result<Answer, Fault> {
    if let Question::Digests(question) = question {
        let hasher = hasher.ok_or(Fault::NotNow)?;
        let found = hasher.digests(&question, asker, gate, devices);
        return Ok(Answer::Bytes(digest::answer(&found)));
    }
    if let Question::Container(path) = question {
        return container(path, &mut OnDisk { gate, devices });
    }
    let mut access = Access::of(question.path(), asker, gate, devices);
    let access = &mut access;
    Ok(match question {
        Question::Inode { path, follow } => Answer::Inode(files::inode(path, follow, access)?),
        Question::RealPath(path) => Answer::Bytes(files::real_path(path, access)?),
        Question::Capabilities(path, of) => Answer::Bytes(files::capabilities(path, of, access)?),
        Question::Head(path, of, bytes_max) => {
            Answer::Bytes(files::head(path, of, bytes_max, access)?)
        }
        Question::FileSystem(path) => Answer::Number(files::file_system(path, access)?),
        Question::Above(path, steps_max) => {
            Answer::Bytes(files::above(path, steps_max, access)?.to_bytes())
        }
        Question::User(uid) => Answer::Bytes(user(uid)?),
        Question::Group(gid) => Answer::Bytes(group(gid)?),
        Question::MountNamespace(pid) => {
            let number = kernel::mount_namespace(Some(pid)).and_then(|ino| ino.try_into().ok());
            Answer::Number(number.ok_or(Fault::Missing)?)
        }
        Question::Executable(pid) => Answer::Bytes(kernel::executable(pid).ok_or(Fault::Missing)?),
        Question::Digests(_) | Question::Container(_) => return Err(Fault::NotNow),
    })
}

/// The files of runtimes on this system.
struct OnDisk<'a> {
    gate: &'a mut dyn Gate,
    devices: &'a mut Devices,
}

impl Files for OnDisk<'_> {
    fn read(&mut self, path: &str) -> Result<Vec<u8>, Fault> {
        let path = path.as_bytes();
        let mut access = Access::to(path, self.gate, self.devices);
        files::read(path, None, containers::FILE_BYTES_MAX, &mut access)
    }

    fn list(&mut self, path: &str) -> Result<Vec<Vec<u8>>, Fault> {
        let path = path.as_bytes();
        let mut access = Access::to(path, self.gate, self.devices);
        files::entries(path, &mut access)
    }
}

/// The names of the container and pod in a question, `/ID/UID`.
fn container(path: &[u8], files: &mut dyn Files) -> Result<Answer, Fault> {
    let text = std::str::from_utf8(path).map_err(|_| Fault::Missing)?;
    let mut parts = text.split('/').skip(1);
    let (id, pod) = (parts.next(), parts.next());
    let names = containers::names(id.unwrap_or_default(), pod.unwrap_or_default(), files)?;
    Ok(Answer::Bytes(names.to_bytes()))
}

fn user(uid: u32) -> Result<Vec<u8>, Fault> {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    name(found.map(|user| user.name))
}

fn group(gid: u32) -> Result<Vec<u8>, Fault> {
    let found = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    name(found.map(|group| group.name))
}

fn name(found: Option<String>) -> Result<Vec<u8>, Fault> {
    let name = found.filter(|name| name.len() <= NAME_BYTES_MAX);
    name.map(String::into_bytes).ok_or(Fault::Missing)
}
