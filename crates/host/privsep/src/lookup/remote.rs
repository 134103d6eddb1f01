//! The running system, looked up by helper processes.

use crate::lookup::budget::{Budgets, Limit};
use crate::lookup::cgroups;
use crate::lookup::client::{Client, Refused};
use crate::lookup::counts::Counts;
use crate::lookup::kernel;
use crate::lookup::label_files::LabelFiles;
use crate::lookup::message::{is_path, Asker, Content, DigestQuestion, Question};
use crate::lookup::names::Names;
use crate::lookup::program::{Program, Role};
use crate::spawn::Launcher;
use compose::{Cgroup, ExecutedFile, KernelFile, Origin, Sign, System};
use plan::ObjectId;
use record::record::Inode;
use record::{ContainerNames, Digests, NameAnswer, NoDigest};
use rustix::process::Pid;
use std::ffi::CStr;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of helpers that run at a time.
pub const HELPERS: usize = 3;
/// Time for the digests of an event, which have a budget of their own in the helper: a little more than that.
const DIGESTS: Duration = Duration::from_millis(25);

/// The running system. Helpers look up objects at paths, names, and if they are wanted digests; the
/// kernel answers everything else.
pub struct Remote {
    files: Mutex<Client>,
    names: Mutex<Names>,
    hashes: Mutex<Hashes>,
    labels: LabelFiles,
    kernel_has: fn(Sign<'_>) -> bool,
    event: Mutex<Event>,
}

/// The event for which look-ups are made.
#[derive(Default)]
struct Event {
    budgets: Budgets,
    /// The process that saw the paths, and the path of its root directory.
    seen_by: Option<(u32, Vec<u8>)>,
    /// Whether every look-up is refused.
    is_closed: bool,
}

impl Event {
    /// Who asks about `path`, with this much time.
    fn asker(&self, path: &[u8], within: Option<Duration>) -> Asker {
        let limit_us = within.map_or(0, |time| time.as_micros().max(1) as u32);
        let (pid, root) = match &self.seen_by {
            Some((pid, root)) => (*pid, &root[..]),
            None => (0, &b""[..]),
        };
        let below = path.strip_prefix(root);
        let is_below = below.is_some_and(|below| matches!(below.first(), None | Some(b'/')));
        Asker {
            limit_us,
            pid,
            prefix: if is_below { root.len() as u32 } else { 0 },
        }
    }

    fn limit(&mut self) -> Limit {
        if self.is_closed {
            Limit::Over
        } else {
            self.budgets.limit(kernel::monotonic_ns())
        }
    }
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
            event: Mutex::default(),
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
            let _ = hashes.client.ask(question, Asker::default(), |_| Some(()));
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
            out_of_time: self.event().budgets.over,
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
        let question = Question::Executable(pid);
        let found = self.files().ask(question, Asker::default(), bytes);
        found.ok().flatten()
    }

    /// Does work of the daemon's own, of which nothing takes longer than a helper may take and all together half a second.
    /// Returns its result, unless something could not be looked up in time.
    pub fn in_time<T>(&self, work: impl FnOnce(&Remote) -> T) -> Option<T> {
        let unanswered = self.files().counts().unanswered;
        self.event().budgets.begin_own();
        let found = work(self);
        let mut event = self.event();
        let is_over = event.budgets.is_over();
        event.budgets.end();
        drop(event);
        let is_all = !is_over && self.files().counts().unanswered == unanswered;
        is_all.then_some(found)
    }

    /// Refuses every look-up from now on, so that the end of the recording takes no longer than it has to.
    pub fn close(&self) {
        self.event().is_closed = true;
    }

    fn event(&self) -> MutexGuard<'_, Event> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The answer to a question about `path`, within the budget of the event, if there is one.
    fn ask<T>(
        &self,
        path: &[u8],
        question: Question<'_>,
        take: impl FnOnce(Content<'_>) -> Option<T>,
    ) -> Option<T> {
        if path.first() != Some(&b'/') || path.contains(&0) {
            return None;
        }

        let mut event = self.event();
        if !is_path(path) {
            event.budgets.refuse(false);
            return None;
        }
        let Ok(within) = event.limit().within() else {
            event.budgets.refuse(true);
            return None;
        };

        let asker = event.asker(path, within);
        drop(event);
        let before_ns = kernel::monotonic_ns();
        let found = self.files().ask(question, asker, take);
        let now_ns = kernel::monotonic_ns();
        let mut event = self.event();
        event.budgets.spent(now_ns - before_ns, now_ns);

        found.unwrap_or_else(|Refused| {
            let is_for_time = event.budgets.is_used_up();
            event.budgets.refuse(is_for_time);
            None
        })
    }

    /// The name of a user or group, within the budget of the event, if there is one.
    fn name(&self, is_group: bool, id: u32) -> NameAnswer {
        let limit = self.event().limit();
        let before_ns = kernel::monotonic_ns();
        let answer = self.names().ask(is_group, id, limit);
        let now_ns = kernel::monotonic_ns();
        self.event().budgets.spent(now_ns - before_ns, now_ns);
        answer
    }
}

fn bytes(content: Content<'_>) -> Option<Vec<u8>> {
    match content {
        Content::Bytes(bytes) => Some(bytes.into_owned()),
        _ => None,
    }
}

impl System for Remote {
    fn begin_event(&self, origin: Origin) {
        let mut event = self.event();
        event.budgets.begin(origin);
        event.seen_by = None;
    }

    fn end_event(&self) {
        let mut event = self.event();
        event.budgets.end();
        event.seen_by = None;
    }

    fn refusals(&self) -> u32 {
        self.event().budgets.refusals()
    }

    fn seen_by(&self, pid: u32, prefix: &[u8]) {
        self.event().seen_by = Some((pid, prefix.to_vec()));
    }

    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode> {
        let question = Question::Inode {
            path: path.to_bytes(),
            follow,
        };
        self.ask(path.to_bytes(), question, |content| match content {
            Content::Inode(inode) => Some(inode),
            _ => None,
        })
    }

    fn real_path(&self, path: &CStr) -> Option<Vec<u8>> {
        self.ask(path.to_bytes(), Question::RealPath(path.to_bytes()), bytes)
    }

    fn file_capabilities(&self, path: &CStr, of: Option<ObjectId>) -> Option<Vec<u8>> {
        let question = Question::Capabilities(path.to_bytes(), of);
        self.ask(path.to_bytes(), question, bytes)
    }

    fn digests(&self, file: &ExecutedFile<'_>) -> Digests {
        let path = file.path.to_bytes();
        let mut event = self.event();
        let within = event.limit().within();
        let asker = event.asker(path, within.unwrap_or_default().map(|_| DIGESTS));
        drop(event);
        let mut hashes = self.hashes();
        let bytes_max = if within.is_ok() && is_path(path) {
            hashes.bytes_max
        } else {
            None
        };
        let before_ns = kernel::monotonic_ns();
        let found = bytes_max.map(|bytes_max| {
            let question = Question::Digests(DigestQuestion::of(file, bytes_max));
            hashes.client.ask(question, asker, |content| match content {
                Content::Digests(digests) => Some(digests),
                _ => None,
            })
        });

        let now_ns = kernel::monotonic_ns();
        self.event().budgets.charge(now_ns - before_ns, now_ns);
        let found = found.and_then(Result::ok).flatten();
        found.unwrap_or(Digests::none(NoDigest::Unanswered))
    }

    fn head(&self, path: &CStr, of: Option<ObjectId>, bytes_max: u32) -> Option<Vec<u8>> {
        let question = Question::Head(path.to_bytes(), of, bytes_max);
        self.ask(path.to_bytes(), question, bytes)
    }

    fn directories_above(&self, path: &CStr, prefix: usize) -> Vec<ObjectId> {
        // The helper is told of the prefix with whoever has seen the path.
        debug_assert!(prefix <= path.to_bytes().len());
        let steps_max = self.event().budgets.steps_left();
        let question = Question::Above(path.to_bytes(), steps_max);
        let found = self.ask(path.to_bytes(), question, |content| match content {
            Content::Above(above) => Some(above),
            _ => None,
        });
        let found = found.unwrap_or_default();
        let mut event = self.event();
        event.budgets.stepped(found.objects.len() as u32);

        if !found.is_all {
            event.budgets.refuse(true);
        }
        found.objects
    }

    fn file_system(&self, path: &CStr) -> Option<u32> {
        let question = Question::FileSystem(path.to_bytes());
        self.ask(path.to_bytes(), question, |content| match content {
            Content::Number(kind) => Some(kind),
            _ => None,
        })
    }

    fn user(&self, uid: u32) -> NameAnswer {
        self.name(false, uid)
    }

    fn group(&self, gid: u32) -> NameAnswer {
        self.name(true, gid)
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
        self.ask(&path, Question::Container(&path), |content| match content {
            Content::Container(names) => Some(names),
            _ => None,
        })
    }

    fn mount_namespace(&self, pid: Option<u32>) -> Option<u64> {
        // A confined daemon cannot see the namespace of another process.
        let Some(pid) = pid else {
            return kernel::mount_namespace(None);
        };

        self.ask(
            b"/",
            Question::MountNamespace(pid),
            |content| match content {
                Content::Number(number) => Some(number.into()),
                _ => None,
            },
        )
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
