//! The program to run, and its limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::foreign::transport::MAX_ANSWER_BYTES;

/// The environment variables passed to a program, if they are set. They contain no key or token of
/// the user: engines reach models through the host.
const ENVIRONMENT: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT"];

/// Default memory limit of a program, in bytes: 1 GiB.
const MEMORY_LIMIT: u64 = 1 << 30;

/// A program that is an engine.
#[derive(Clone, Debug)]
#[must_use]
pub struct Program {
    pub(super) command: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) folder: Option<PathBuf>,
    pub(super) memory_limit: Option<u64>,
    pub(super) max_answer_bytes: usize,
}

impl Program {
    /// Creates a program from its path.
    pub fn new(command: impl Into<PathBuf>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            folder: None,
            memory_limit: Some(MEMORY_LIMIT),
            max_answer_bytes: MAX_ANSWER_BYTES,
        }
    }

    /// Appends arguments.
    pub fn with_args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets its working directory. Default: the host's.
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets its memory limit, in bytes; `None` for no limit. Default: 1 GiB.
    ///
    /// On Linux, this limits the memory that a process writes to (`RLIMIT_DATA`), from just after
    /// its start. The address space is not limited, because Node.js and other runtimes reserve far
    /// more than they use. Each process that the program starts has a limit of its own, of the same
    /// size. On other systems there is no limit.
    pub fn with_memory_limit(mut self, bytes: Option<u64>) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Sets the maximum size of an answer, beyond which the program is killed. Default: 32 MiB.
    pub fn with_max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = bytes;
        self
    }

    /// Returns the command, in a new process group.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.command);
        command.args(&self.args).env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}
