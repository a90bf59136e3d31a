//! What becomes of engines when their host ends: they end as well.
//!
//! A host that is told to end calls [`end_processes`] before it does. One that is killed, or
//! crashes, can do nothing any more: for it, a shell waits beside each engine, until the host ends
//! the engine itself.

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use super::child::State;

/// Reads from a pipe whose other end the host has, and so waits until there is no host.
const WATCH: &str = r#"trap '' HUP INT QUIT TERM; read -r _; kill -9 "-$0""#;

/// A shell that kills a process group when the host has ended.
pub(super) struct Guard(Child);

impl Guard {
    /// Starts it. Without a shell the engine runs as well.
    pub(super) fn over(leader: &Child) -> Option<Self> {
        if !cfg!(unix) {
            return None;
        }
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", WATCH, &leader.id().to_string()]).env_clear().current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // What a terminal sends to the host is not for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        match shell.spawn() {
            Ok(shell) => Some(Self(shell)),
            Err(error) => {
                tracing::debug!(%error, "no shell watches over an engine");
                None
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // While it is alive its stdin is open, so it has done nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The engines that run, and whether they may.
static RUNNING: Mutex<Running> = Mutex::new(Running { groups: Vec::new(), is_ending: false });

struct Running {
    groups: Vec<Weak<Mutex<State>>>,
    is_ending: bool,
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that an engine runs. Whether it may.
pub(super) fn note(group: Weak<Mutex<State>>) -> bool {
    let mut running = running();
    running.groups.retain(|group| group.strong_count() > 0);
    running.groups.push(group);
    !running.is_ending
}

/// Whether the host ends, and its engines were ended for it.
pub(super) fn is_ending() -> bool {
    running().is_ending
}

/// Kills every process engine of this program with all that it started and that did not leave its
/// process group: for a host that is about to end, by a signal for example. It waits for none.
///
/// The calls at work are not answered any more before their deadlines, so that nothing is made of
/// the end of their engines, and no engine starts from here on.
pub fn end_processes() {
    let groups = {
        let mut running = running();
        running.is_ending = true;
        std::mem::take(&mut running.groups)
    };
    for group in groups.iter().filter_map(Weak::upgrade) {
        // Who holds it kills it.
        if let Ok(mut state) = group.try_lock() {
            state.kill();
        }
    }
}
