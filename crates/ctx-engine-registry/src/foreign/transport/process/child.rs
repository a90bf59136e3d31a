//! The process group of an engine: limited, ended, and always reaped.

use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ctx_core::Result;

use super::guard::{self, Guard};
#[cfg(unix)]
use super::pipes::start;

/// A child process that leads its process group.
pub(super) struct ProcessGroup {
    child: Arc<Mutex<ChildState>>,
    exited: Arc<Exited>,
    #[cfg(target_os = "linux")]
    pid: Option<rustix::process::Pid>,
}

pub(super) struct ChildState {
    child: Child,
    /// Set when the child is reaped: its pid may then be reused.
    status: Option<Option<ExitStatus>>,
    /// The thread that waits for its end.
    waiter: Option<JoinHandle<()>>,
    /// Kills the group when the host has ended.
    guard: Option<Guard>,
}

/// Whether the child has ended, reaped or not.
#[derive(Default)]
struct Exited {
    has: Mutex<bool>,
    changed: Condvar,
}

impl ProcessGroup {
    pub(super) fn of(child: Child) -> Self {
        #[cfg(target_os = "linux")]
        let pid = Some(rustix::process::Pid::from_child(&child));
        let guard = Guard::over(&child);
        let child = Arc::new(Mutex::new(ChildState { child, status: None, waiter: None, guard }));
        if !guard::register(Arc::downgrade(&child)) {
            lock(&child).kill();
        }
        Self {
            #[cfg(target_os = "linux")]
            pid,
            child,
            exited: Arc::default(),
        }
    }

    /// Calls `exited` when the child has ended or was killed.
    #[cfg(unix)]
    pub(super) fn watch(&self, exited: impl FnOnce() + Send + 'static) -> Result<()> {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let mut state = lock(&self.child);
        let pid = WaitId::Pid(Pid::from_child(&state.child));
        let (options, has_exited) =
            (WaitIdOptions::EXITED | WaitIdOptions::NOWAIT, self.exited.clone());
        // The child is reaped only after this thread is done, so the pid is valid.
        state.waiter = Some(start("ctx-engine-child", move || {
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

    /// Limits its memory, and disables core dumps.
    #[cfg(target_os = "linux")]
    pub(super) fn limit(&self, memory: Option<u64>) -> Result<()> {
        use ctx_core::{Error, ErrorKind};
        use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

        let bound = |resource, bytes: u64| {
            // The limit of ctx itself may be lower, and cannot be exceeded.
            let most = getrlimit(resource).maximum.map_or(bytes, |own| own.min(bytes));
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            prlimit(self.pid, resource, limit)
        };
        let bounded = bound(Resource::Core, 0)
            .and_then(|_| memory.map(|bytes| bound(Resource::Data, bytes)).transpose());
        match bounded {
            // The child has ended already, which its first call will report.
            Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => {
                Err(Error::new(ErrorKind::Io, "cannot limit the memory of the engine's process")
                    .with("reason", error)
                    .hint("ctx must be allowed to call prlimit(2) on processes that it starts"))
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn limit(&self, _: Option<u64>) -> Result<()> {
        Ok(())
    }

    /// Kills the group without waiting for it.
    pub(super) fn kill(&self) {
        lock(&self.child).kill();
    }

    /// Whether the child has ended within `time`. Does not reap it.
    pub(super) fn exits_within(&self, time: Duration) -> bool {
        if !cfg!(unix) {
            return true;
        }
        let waited =
            self.exited.changed.wait_timeout_while(lock(&self.exited.has), time, |has| !*has);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Kills the group and reaps the child. Returns a text with its exit status.
    pub(super) fn end(&self) -> String {
        let mut state = lock(&self.child);
        if state.status.is_none() {
            state.kill();
            // A panic of that thread does not matter here.
            let _ = state.waiter.take().map(JoinHandle::join);
            // As long as the guard exists, the pid must be the child's.
            state.guard = None;
            state.status = Some(state.child.wait().ok());
        }
        match state.status.flatten() {
            Some(status) => status.to_string(),
            None => "unknown exit status".into(),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

impl ChildState {
    /// Kills the child and its group, unless it is already reaped.
    pub(super) fn kill(&mut self) {
        if self.status.is_some() {
            return;
        }
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            // It may be gone already; no other error is possible for our own child.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        let _ = self.child.kill();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
