//! Answers questions in the calling process.

use crate::lookup::containers::{self, Files};
use crate::lookup::devices::Devices;
use crate::lookup::digest::Hasher;
use crate::lookup::files;
use crate::lookup::kernel;
use crate::lookup::message::{Asker, Content, Question};
use crate::lookup::object::Fault;
use crate::lookup::walk::{Access, Gate};
use nix::unistd::{Gid, Group, Uid, User};
use record::ContainerNames;

/// Longest name of a user or group that is passed on: LOGIN_NAME_MAX of limits.h.
const NAME_BYTES_MAX: usize = 256;

/// Looks up the answer to `question` of `asker`. Only with a `hasher` are there digests.
pub(crate) fn to(
    question: Question<'_>,
    asker: Asker,
    gate: &mut dyn Gate,
    devices: &mut Devices,
    hasher: Option<&mut Hasher>,
) -> Content<'static> {
    let answer = match question {
        Question::Digests(question) => match hasher {
            Some(hasher) => Ok(Content::Digests(
                hasher.digests(&question, asker, gate, devices),
            )),
            None => Err(Fault::NotNow),
        },
        Question::Container(path) => {
            container(path, &mut OnDisk { gate, devices }).map(Content::Container)
        }
        Question::User(uid) => user(uid),
        Question::Group(gid) => group(gid),
        Question::MountNamespace(pid) => {
            let number = kernel::mount_namespace(Some(pid)).and_then(|ino| ino.try_into().ok());
            number.map(Content::Number).ok_or(Fault::Missing)
        }
        Question::Executable(pid) => kernel::executable(pid).map(bytes).ok_or(Fault::Missing),
        Question::Inode { path, .. }
        | Question::RealPath(path)
        | Question::Capabilities(path, _)
        | Question::Head(path, ..)
        | Question::FileSystem(path)
        | Question::Above(path, _) => {
            at_path(question, &mut Access::of(path, asker, gate, devices))
        }
    };

    answer.unwrap_or_else(|fault| match fault {
        Fault::Missing => Content::Missing,
        Fault::NotNow => Content::NotNow,
        Fault::Denied => Content::Denied,
    })
}

/// Looks up what a question asks about the object at its path.
fn at_path(question: Question<'_>, access: &mut Access<'_>) -> Result<Content<'static>, Fault> {
    match question {
        Question::Inode { path, follow } => files::inode(path, follow, access).map(Content::Inode),
        Question::RealPath(path) => files::real_path(path, access).map(bytes),
        Question::Capabilities(path, of) => files::capabilities(path, of, access).map(bytes),
        Question::Head(path, of, bytes_max) => files::head(path, of, bytes_max, access).map(bytes),
        Question::FileSystem(path) => files::file_system(path, access).map(Content::Number),
        Question::Above(path, steps_max) => {
            files::above(path, steps_max, access).map(Content::Above)
        }
        _ => Err(Fault::NotNow),
    }
}

fn bytes(bytes: Vec<u8>) -> Content<'static> {
    Content::Bytes(bytes.into())
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
fn container(path: &[u8], files: &mut dyn Files) -> Result<ContainerNames, Fault> {
    let text = std::str::from_utf8(path).map_err(|_| Fault::Missing)?;
    let mut parts = text.split('/').skip(1);
    let (id, pod) = (parts.next(), parts.next());
    containers::names(id.unwrap_or_default(), pod.unwrap_or_default(), files)
}

fn user(uid: u32) -> Result<Content<'static>, Fault> {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    name(found.map(|user| user.name))
}

fn group(gid: u32) -> Result<Content<'static>, Fault> {
    let found = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    name(found.map(|group| group.name))
}

fn name(found: Option<String>) -> Result<Content<'static>, Fault> {
    let name = found.filter(|name| name.len() <= NAME_BYTES_MAX);
    let name = name.ok_or(Fault::Missing)?;
    Ok(bytes(name.into_bytes()))
}
