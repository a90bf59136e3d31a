//! The process group of an engine: bounded, ended, and always reaped.

use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ctx_core::Result;

/// A child at the head of its process group.
pub(super) struct Group {
    child: Mutex<State>,
    #[cfg(unix)]
    pid: Option<rustix::process::Pid>,
}

struct State {
    child: Child,
    /// Set when it is reaped: its number may then be another process's.
    status: Option<Option<ExitStatus>>,
}

impl Group {
    pub(super) fn of(child: Child) -> Self {
        Self {
            #[cfg(unix)]
            pid: Some(rustix::process::Pid::from_child(&child)),
            child: Mutex::new(State { child, status: None }),
        }
    }

    /// Bounds its memory, and has it leave no memory image when it crashes.
    #[cfg(target_os = "linux")]
    pub(super) fn limit(&self, memory: Option<u64>) -> Result<()> {
        use ctx_core::{Error, ErrorKind};
        use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

        let bound = |resource, bytes: u64| {
            // What ctx itself is bound to may be less, and cannot be exceeded.
            let most = getrlimit(resource).maximum.map_or(bytes, |own| own.min(bytes));
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            prlimit(self.pid, resource, limit)
        };
        let bounded = bound(Resource::Core, 0)
            .and_then(|_| memory.map(|bytes| bound(Resource::Data, bytes)).transpose());
        match bounded {
            // It has ended already, which its first call will show.
            Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(Error::new(
                ErrorKind::Io,
                "the memory of the engine's process cannot be bounded",
            )
            .with("reason", error)
            .hint("ctx must be allowed to call prlimit(2) on processes that it starts")),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn limit(&self, _: Option<u64>) -> Result<()> {
        Ok(())
    }

    /// Kills the group. Does not wait for it.
    pub(super) fn kill(&self) {
        kill(&mut self.lock());
    }

    /// Waits until the child has ended by itself or was killed. Does not reap it.
    #[cfg(unix)]
    pub(super) fn wait(&self) {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let Some(pid) = self.pid else { return };
        if self.lock().status.is_some() {
            return;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // Without the lock: who kills it needs it. Only this thread reaps, so the child is there.
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
    }

    #[cfg(not(unix))]
    pub(super) fn wait(&self) {}

    /// Kills the group and reaps the child. How it ended, for people.
    pub(super) fn end(&self) -> String {
        let mut state = self.lock();
        if state.status.is_none() {
            kill(&mut state);
            state.status = Some(state.child.wait().ok());
        }
        match state.status.flatten() {
            Some(status) => status.to_string(),
            None => "its status is not known".into(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Kills the child and its group, unless it was reaped.
fn kill(state: &mut State) {
    if state.status.is_some() {
        return;
    }
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It may be gone already, and nothing else can go wrong with a child of ours.
        let _ = kill_process_group(Pid::from_child(&state.child), Signal::KILL);
    }
    let _ = state.child.kill();
}
