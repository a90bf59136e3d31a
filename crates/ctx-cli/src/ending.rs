//! What is done before a signal ends the program: engines and commands do not outlive it, and copies
//! of engines do not stay behind. Who has a use of its own for Ctrl-C says so here.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Folders that are removed.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Has a temporary folder removed also if a signal ends the program.
pub(crate) fn removes(folder: &Path) {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
}

/// From now on Ctrl-C does this, and does not end the program. So it is also where who started the program
/// had it ignore the signal, and where something else took it for itself before: an editor of lines does.
pub(crate) fn on_interrupt(act: impl Fn() + Send + 'static) {
    // Where it cannot be had, Ctrl-C does what it did before.
    let _ = ctrlc::set_handler(act);
}

type Act = Box<dyn Fn() + Send>;

static ON_TERM: Mutex<Option<Act>> = Mutex::new(None);

/// From now on a SIGTERM does this, and does not end the program.
pub(crate) fn on_term(act: impl Fn() + Send + 'static) {
    *ON_TERM.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
}

/// A command with all that it starts, which ends with this value, or with the program.
pub(crate) struct Group {
    id: Option<u32>,
}

/// Those that run.
static GROUPS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

impl Group {
    /// The group that a process leads; none where it has ended already.
    pub(crate) fn of(leader: Option<u32>) -> Self {
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).extend(leader);
        Self { id: leader }
    }

    /// Ends what is left of it.
    pub(crate) fn end(&mut self) {
        if let Some(id) = self.id.take() {
            GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != id);
            kill(id);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(unix)]
fn kill(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let id = i32::try_from(group).ok().and_then(Pid::from_raw);
    // It is gone already, or not ours any more.
    let _ = id.map(|id| kill_process_group(id, Signal::KILL));
}

#[cfg(not(unix))]
fn kill(_: u32) {
    // Commands are killed one by one there, when they are dropped.
}

#[cfg(unix)]
mod signals {
    use std::sync::PoisonError;
    use std::sync::mpsc::channel;
    use std::thread;

    use ctx_engine_registry::carrier::end_processes;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    use super::{FOLDERS, GROUPS, ON_TERM, kill};

    /// Ends engines and removes folders before a signal that asks the program to end does end it.
    pub(crate) fn clean_up() {
        let (ready, is_ready) = channel::<()>();
        let watch = move || {
            let caught =
                [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
            let Ok(mut signals) = Signals::new(caught) else { return };
            drop(ready);
            for signal in &mut signals {
                if signal == SIGTERM
                    && let Some(act) = &*ON_TERM.lock().unwrap_or_else(PoisonError::into_inner)
                {
                    act();
                    continue;
                }
                end_processes();
                for group in GROUPS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                    kill(group);
                }
                let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
                for folder in folders.iter() {
                    // It may be gone already.
                    let _ = std::fs::remove_dir_all(folder);
                }
                // Who started the program sees which signal it was.
                let _ = emulate_default_handler(signal);
            }
        };
        // Without the thread the system does what it does by default.
        if thread::Builder::new().name("ctx-signals".into()).spawn(watch).is_ok() {
            // Nothing is sent: it returns when the signals are caught.
            let _ = is_ready.recv();
        }
    }

    /// Whether who started the program has it ignore the signal, as `nohup` does and shells do for
    /// jobs in the background.
    #[cfg(target_os = "linux")]
    fn is_ignored(signal: i32) -> bool {
        let status = ctx_disk::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }

    /// Elsewhere that cannot be told: a hangup, which `nohup` has ignored, is left alone.
    #[cfg(not(target_os = "linux"))]
    fn is_ignored(signal: i32) -> bool {
        signal == SIGHUP
    }
}

#[cfg(unix)]
pub(crate) use signals::clean_up;

#[cfg(not(unix))]
pub(crate) fn clean_up() {
    // Nothing asks for it there.
    let _ = (&FOLDERS, &GROUPS, &ON_TERM);
}
