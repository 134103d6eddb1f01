//! Programs that root runs because a configuration names them.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::ptr;

use crate::error::{Fault, TrustError};
use crate::walk::{self, Links};

/// A program that only root can change, held by its directory.
pub struct Program {
    directory: OwnedFd,
    name: CString,
    path: CString,
    mode: u32,
}

impl Program {
    /// Finds a program, and checks that it is an executable file that only root can change.
    ///
    /// # Errors
    /// There is no such file, it is not a program, or somebody else can change it.
    pub fn find(path: &Path) -> Result<Program, TrustError> {
        let found = walk::find(path, Links::Follow)?;
        found.demand(Fault::of_program(&found.stat))?;
        let text = |bytes: &[u8]| {
            CString::new(bytes)
                .map_err(|_| TrustError::io(path, "execve", io::ErrorKind::InvalidInput))
        };
        Ok(Program {
            name: text(found.name.as_bytes())?,
            path: text(path.as_os_str().as_bytes())?,
            mode: found.stat.st_mode & 0o7777,
            directory: found.directory,
        })
    }

    /// The permissions of its mode.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// A command that runs the very entry of the directory that was checked, whatever the path
    /// names by then, with the path as `argv[0]`, these arguments and an empty environment, as
    /// auditd does. `prepare` adds to the command. Do not change it afterwards.
    ///
    /// A script is run by its path, because its interpreter opens that path; only root can change
    /// the directories on the way, so nobody else can replace the script.
    ///
    /// # Errors
    /// An argument contains NUL.
    pub fn command(
        self,
        args: &[String],
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Command> {
        let mut command = Command::new(OsStr::from_bytes(self.path.as_bytes()));
        command.args(args).env_clear();
        prepare(&mut command);
        let own = std::iter::once(Ok(self.path.clone()));
        let args = args.iter().map(|arg| CString::new(arg.as_bytes()));
        let args = own.chain(args).collect::<Result<Vec<CString>, _>>()?;
        let image = Image {
            argv: args
                .iter()
                .map(|arg| arg.as_ptr())
                .chain([ptr::null()])
                .collect(),
            _args: args,
            program: self,
        };

        // SAFETY: execveat(2) is async-signal-safe, and nothing is allocated.
        unsafe { command.pre_exec(move || image.execute()) };
        Ok(command)
    }
}

/// Everything that execveat(2) needs, made before the fork.
struct Image {
    argv: Vec<*const libc::c_char>,
    /// Strings that `argv` points to.
    _args: Vec<CString>,
    program: Program,
}

// SAFETY: the pointers lead to memory that this value owns and nobody changes.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Image {
    /// Becomes the program. Returns if that failed: the caller runs a file that is not a binary by
    /// its path.
    fn execute(&self) -> io::Result<()> {
        let no_environment = [ptr::null::<libc::c_char>()];
        // SAFETY: name, arguments and lists are NUL-terminated and live; the kernel only reads them.
        unsafe {
            libc::syscall(
                libc::SYS_execveat,
                self.program.directory.as_raw_fd(),
                self.program.name.as_ptr(),
                self.argv.as_ptr(),
                no_environment.as_ptr(),
                libc::AT_SYMLINK_NOFOLLOW,
            );
        }

        match io::Error::last_os_error() {
            // The descriptor is closed for the interpreter of a script (ENOENT), and a file without a
            // known format is one for the shell (ENOEXEC).
            error if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOEXEC)) => Ok(()),
            error => Err(error),
        }
    }
}
