//! Ends engines when their host ends.
//!
//! A host that is asked to end calls [`end_processes`] first. A host that is killed or crashes
//! cannot call it. So a shell waits beside each engine, until the host ends the engine itself.

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use super::child::ChildState;

/// Reads from a pipe whose other end the host keeps open, and so waits until the host has ended.
const WATCH: &str = r#"trap '' HUP INT QUIT TERM; read -r _; kill -9 "-$0""#;

/// A shell that kills a process group when the host has ended.
pub(super) struct Guard(Child);

impl Guard {
    /// Starts the shell. Without one the engine runs unguarded.
    pub(super) fn over(leader: &Child) -> Option<Self> {
        if !cfg!(unix) {
            return None;
        }
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", WATCH, &leader.id().to_string()]).env_clear().current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Signals that a terminal sends to the host must not reach it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        match shell.spawn() {
            Ok(shell) => Some(Self(shell)),
            Err(error) => {
                tracing::debug!(%error, "cannot start a watchdog shell for an engine");
                None
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // While the shell is alive, its stdin is open and it has killed nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The running engines, and whether the host is ending.
static RUNNING: Mutex<Running> = Mutex::new(Running { groups: Vec::new(), is_ending: false });

struct Running {
    groups: Vec<Weak<Mutex<ChildState>>>,
    is_ending: bool,
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a running engine. Returns whether it may run.
pub(super) fn register(group: Weak<Mutex<ChildState>>) -> bool {
    let mut running = running();
    running.groups.retain(|group| group.strong_count() > 0);
    running.groups.push(group);
    !running.is_ending
}

/// Whether the host is ending and its engines were ended for that reason.
pub(super) fn is_ending() -> bool {
    running().is_ending
}

/// Kills every process engine of this program, with all descendants that did not leave its process
/// group: for a host that is about to end, for example by a signal. It does not wait for them.
///
/// Running calls are then not answered before their deadlines, so that the end of an engine is not
/// taken for a failure, and no engine can be started any more.
pub fn end_processes() {
    let groups = {
        let mut running = running();
        running.is_ending = true;
        std::mem::take(&mut running.groups)
    };
    for group in groups.iter().filter_map(Weak::upgrade) {
        // The thread that holds the lock kills the group.
        if let Ok(mut state) = group.try_lock() {
            state.kill();
        }
    }
}
