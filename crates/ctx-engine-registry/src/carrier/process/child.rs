//! The process group of an engine: bounded, ended, and always reaped.

use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ctx_core::Result;

use super::guard::{self, Guard};
#[cfg(unix)]
use super::pipes::start;

/// A child at the head of its process group.
pub(super) struct Group {
    child: Arc<Mutex<State>>,
    exited: Arc<Exited>,
    #[cfg(target_os = "linux")]
    pid: Option<rustix::process::Pid>,
}

pub(super) struct State {
    child: Child,
    /// Set when it is reaped: its number may then be another process's.
    status: Option<Option<ExitStatus>>,
    /// Waits for its end.
    waiter: Option<JoinHandle<()>>,
    /// Ends it when the host has ended.
    guard: Option<Guard>,
}

/// Whether the child has ended, reaped or not.
#[derive(Default)]
struct Exited {
    has: Mutex<bool>,
    changed: Condvar,
}

impl Group {
    pub(super) fn of(child: Child) -> Self {
        #[cfg(target_os = "linux")]
        let pid = Some(rustix::process::Pid::from_child(&child));
        let guard = Guard::over(&child);
        let child = Arc::new(Mutex::new(State { child, status: None, waiter: None, guard }));
        if !guard::note(Arc::downgrade(&child)) {
            lock(&child).kill();
        }
        Self {
            #[cfg(target_os = "linux")]
            pid,
            child,
            exited: Arc::default(),
        }
    }

    /// Calls `exited` when the child has ended, by itself or killed.
    #[cfg(unix)]
    pub(super) fn watch(&self, exited: impl FnOnce() + Send + 'static) -> Result<()> {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let mut state = lock(&self.child);
        let pid = WaitId::Pid(Pid::from_child(&state.child));
        let (options, has_exited) =
            (WaitIdOptions::EXITED | WaitIdOptions::NOWAIT, self.exited.clone());
        // It is reaped only after this thread is done, so the number is its own.
        state.waiter = Some(start("child", move || {
            while matches!(waitid(pid.clone(), options), Err(rustix::io::Errno::INTR)) {}
            *lock(&has_exited.has) = true;
            has_exited.changed.notify_all();
            exited();
        })?);
        Ok(())
    }

    #[cfg(not(unix))]
    pub(super) fn watch(&self, _: impl FnOnce() + Send + 'static) -> Result<()> {
        Ok(())
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
        lock(&self.child).kill();
    }

    /// Whether the child has ended by itself or was killed, within some time. Does not reap it.
    pub(super) fn exits_within(&self, time: Duration) -> bool {
        if !cfg!(unix) {
            return true;
        }
        let waited =
            self.exited.changed.wait_timeout_while(lock(&self.exited.has), time, |has| !*has);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Kills the group and reaps the child. How it ended, for people.
    pub(super) fn end(&self) -> String {
        let mut state = lock(&self.child);
        if state.status.is_none() {
            state.kill();
            // No panic of it is worth one here.
            let _ = state.waiter.take().map(JoinHandle::join);
            // As long as there is a guard, the number must be the child's.
            state.guard = None;
            state.status = Some(state.child.wait().ok());
        }
        match state.status.flatten() {
            Some(status) => status.to_string(),
            None => "its status is not known".into(),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    /// Kills the child and its group, unless it was reaped.
    pub(super) fn kill(&mut self) {
        if self.status.is_some() {
            return;
        }
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            // It may be gone already, and nothing else can go wrong with a child of ours.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        let _ = self.child.kill();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
