//! The running system, looked up by helper processes.

use crate::cgroups;
use crate::client::Client;
use crate::counts::Counts;
use crate::digest::{self, DigestQuestion};
use crate::kernel;
use crate::label_files::LabelFiles;
use crate::message::{is_path, objects, Content, Question, DIRECTORIES_MAX};
use crate::names::Names;
use crate::program::{Program, Role};
use compose::{directories_above, Cgroup, ExecutedFile, KernelFile, Sign, System};
use event::record::Inode;
use event::{ContainerNames, Digests, NameAnswer, NoDigest};
use plan::ObjectId;
use rustix::process::Pid;
use spawn::Launcher;
use std::ffi::CStr;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of helpers that run at a time.
pub const HELPERS: usize = 3;

/// The running system. Helpers look up objects at paths, names, and if they are wanted digests; the
/// kernel answers everything else.
pub struct Remote {
    files: Mutex<Client>,
    names: Mutex<Names>,
    hashes: Mutex<Hashes>,
    labels: LabelFiles,
    kernel_has: fn(Sign<'_>) -> bool,
}

/// The helper for digests.
struct Hashes {
    client: Client,
    /// Size up to which files are hashed; `None` if digests are not wanted.
    bytes_max: Option<u64>,
}

impl Remote {
    /// Starts the helper for objects through `launcher`. The helper for names is started when a
    /// name is first needed. `kernel_has` answers [`System::kernel_has`].
    ///
    /// # Errors
    /// No helper can be started now; each question tries again.
    pub fn start(launcher: Launcher, kernel_has: fn(Sign<'_>) -> bool) -> (Remote, io::Result<()>) {
        let program = |role| Box::new(Program(launcher.clone(), role));
        let mut files = Client::new(program(Role::Files));
        let started = files.prepare();
        let remote = Remote {
            files: Mutex::new(files),
            names: Mutex::new(Names::new(program(Role::Names))),
            hashes: Mutex::new(Hashes {
                client: Client::new(program(Role::Hashes)),
                bytes_max: None,
            }),
            labels: LabelFiles::default(),
            kernel_has,
        };
        (remote, started)
    }

    /// Calls `follow` with the place (below [`HELPERS`]) and process id of each helper that is
    /// started, and with `None` when it is killed; at once for those that run.
    pub fn follow(&self, follow: impl Fn(usize, Option<u32>) + Clone + Send + 'static) {
        let (names, hashes) = (follow.clone(), follow.clone());
        self.files().follow(Box::new(move |pid| follow(0, pid)));
        self.names().follow(Box::new(move |pid| names(1, pid)));
        let client = &mut self.hashes().client;
        client.follow(Box::new(move |pid| hashes(2, pid)));
    }

    /// Sets whether executed files of at most this size are hashed. If they are, the helper for that
    /// is started, otherwise it is ended.
    ///
    /// # Errors
    /// The helper cannot be started now; each question tries again.
    pub fn set_hashes(&self, bytes_max: Option<u64>) -> io::Result<()> {
        let mut hashes = self.hashes();
        hashes.bytes_max = bytes_max;
        match bytes_max {
            Some(_) => hashes.client.prepare()?,
            None => hashes.client.stop(),
        }
        if bytes_max.is_some() {
            // Of events from before it runs, the helper tells no digests: wait until it does.
            let question = Question::MountNamespace(std::process::id());
            hashes.client.ask(question, |_| Some(()));
        }
        Ok(())
    }

    /// Starts other helpers for objects and digests. Call it when a `never,task` rule of the kernel's audit
    /// has come into force: older processes have an audit context, with which each open(2),
    /// whatever its flags, reads `security.capability` of the object (`audit_copy_fcaps()`,
    /// kernel/auditsc.c). The helper would then wait for a file system before it can announce that.
    ///
    /// # Errors
    /// No helper can be started now; each question tries again.
    pub fn renew(&self) -> io::Result<()> {
        self.files().renew()?;
        let mut hashes = self.hashes();
        match hashes.bytes_max {
            Some(_) => hashes.client.renew(),
            None => Ok(()),
        }
    }

    /// Reaps helpers that have ended. Call it about once a second.
    pub fn tend(&self) {
        self.files().tend();
        self.names().tend();
        self.hashes().client.tend();
    }

    /// Counts of what the helpers did since the start.
    pub fn counts(&self) -> Counts {
        let files = self.files().counts();
        let names = self.names();
        let hashes = self.hashes().client.counts();
        Counts {
            names_unanswered: names.unanswered,
            replaced: files.replaced + names.replaced + hashes.replaced,
            stuck: files.stuck + names.stuck() as u64 + hashes.stuck,
            ..files
        }
    }

    /// Process id of the helper that looks up objects.
    pub fn pid(&self) -> Option<Pid> {
        let pid = self.files().pid()?;
        Pid::from_raw(pid as i32)
    }

    /// The path of the program that a process runs, which a confined daemon may not see itself.
    pub fn executable(&self, pid: u32) -> Option<Vec<u8>> {
        self.files().ask(Question::Executable(pid), bytes)
    }

    fn files(&self) -> MutexGuard<'_, Client> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hashes(&self) -> MutexGuard<'_, Hashes> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T>(
        &self,
        path: &CStr,
        question: Question<'_>,
        take: impl FnOnce(Content<'_>) -> Option<T>,
    ) -> Option<T> {
        match is_path(path.to_bytes()) {
            true => self.files().ask(question, take),
            false => None,
        }
    }
}

fn bytes(content: Content<'_>) -> Option<Vec<u8>> {
    match content {
        Content::Bytes(bytes) => Some(bytes.to_vec()),
        _ => None,
    }
}

impl System for Remote {
    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode> {
        let question = Question::Inode {
            path: path.to_bytes(),
            follow,
        };
        self.ask(path, question, |content| match content {
            Content::Inode(inode) => Some(inode),
            _ => None,
        })
    }

    fn real_path(&self, path: &CStr) -> Option<Vec<u8>> {
        self.ask(path, Question::RealPath(path.to_bytes()), bytes)
    }

    fn file_capabilities(&self, path: &CStr, of: Option<ObjectId>) -> Option<Vec<u8>> {
        let question = Question::Capabilities(path.to_bytes(), of);
        self.ask(path, question, bytes)
    }

    fn digests(&self, file: &ExecutedFile<'_>) -> Digests {
        let mut hashes = self.hashes();
        let asked = hashes.bytes_max.filter(|_| is_path(file.path.to_bytes()));
        let found = asked.and_then(|bytes_max| {
            let question = DigestQuestion::of(file, bytes_max);
            let question = Question::Digests(question);
            hashes.client.ask(question, |content| match content {
                Content::Bytes(bytes) => digest::parse(bytes),
                _ => None,
            })
        });
        found.unwrap_or(Digests::none(NoDigest::Unanswered))
    }

    fn head(&self, path: &CStr, of: Option<ObjectId>, bytes_max: u32) -> Option<Vec<u8>> {
        let question = Question::Head(path.to_bytes(), of, bytes_max);
        self.ask(path, question, bytes)
    }

    fn directories_above(&self, path: &CStr, prefix: usize) -> Vec<ObjectId> {
        let dirs: Vec<&[u8]> = directories_above(path.to_bytes(), prefix).collect();
        let (mut found, mut from) = (Vec::new(), path.to_bytes());
        for piece in dirs.chunks(DIRECTORIES_MAX) {
            let Some(last) = piece.last() else {
                continue;
            };
            let question = Question::Above(from, last.len() as u32 - 1);
            let answer = self.ask(path, question, bytes);
            found.extend(objects(&answer.unwrap_or_default()));
            from = last;
        }
        found
    }

    fn file_system(&self, path: &CStr) -> Option<u32> {
        let question = Question::FileSystem(path.to_bytes());
        self.ask(path, question, |content| match content {
            Content::Number(kind) => Some(kind),
            _ => None,
        })
    }

    fn user(&self, uid: u32) -> NameAnswer {
        self.names().ask(false, uid)
    }

    fn group(&self, gid: u32) -> NameAnswer {
        self.names().ask(true, gid)
    }

    fn kernel_file(&self, file: KernelFile) -> Option<Vec<u8>> {
        match file {
            KernelFile::Label(Some(pid)) => self.labels.read(pid),
            _ => kernel::file(file),
        }
    }

    fn cgroups(&self, found: &mut dyn FnMut(u64, Cgroup)) -> bool {
        cgroups::all(found)
    }

    fn cgroup(&self, id: u64) -> Option<Cgroup> {
        cgroups::one(id)
    }

    fn container_names(&self, id: &[u8], pod: &[u8]) -> Option<ContainerNames> {
        let path = [b"/", id, b"/", pod].concat();
        if !is_path(&path) {
            return None;
        }
        let found = self.files().ask(Question::Container(&path), bytes)?;
        ContainerNames::from_bytes(&found)
    }

    fn mount_namespace(&self, pid: Option<u32>) -> Option<u64> {
        // A confined daemon cannot see the namespace of another process.
        let Some(pid) = pid else {
            return kernel::mount_namespace(None);
        };
        self.files()
            .ask(Question::MountNamespace(pid), |content| match content {
                Content::Number(number) => Some(number.into()),
                _ => None,
            })
    }

    fn monotonic_ns(&self) -> u64 {
        kernel::monotonic_ns()
    }

    fn realtime_ns(&self) -> u64 {
        kernel::realtime_ns()
    }

    fn release(&self) -> (u32, u32) {
        kernel::release()
    }

    fn kernel_has(&self, sign: Sign<'_>) -> bool {
        (self.kernel_has)(sign)
    }
}
