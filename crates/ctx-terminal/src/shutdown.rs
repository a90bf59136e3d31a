//! Cleans up before a signal ends the program: ends commands and removes temporary folders. Other uses
//! of Ctrl-C are registered here.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Folders to remove.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes a temporary folder even if a signal ends the program.
pub fn removes(folder: &Path) {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
}

/// From now on Ctrl-C calls `act` instead of ending the program, even if the program was started
/// with the signal ignored, or if other code (such as the line editor) handled it before.
pub fn on_interrupt(act: impl Fn() + Send + 'static) {
    // On failure, Ctrl-C behaves as before.
    let _ = ctrlc::set_handler(act);
}

type Act = Box<dyn Fn() + Send>;

static ON_TERM: Mutex<Option<Act>> = Mutex::new(None);

/// From now on SIGTERM calls `act` instead of ending the program.
pub fn on_term(act: impl Fn() + Send + 'static) {
    *ON_TERM.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
}

/// A command with all its processes, ended when this is dropped or the program ends.
pub struct ProcessGroup {
    id: Option<u32>,
}

/// Running groups.
static GROUPS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

impl ProcessGroup {
    /// Returns the group led by a process; an empty one if it has ended already.
    pub fn of(leader: Option<u32>) -> Self {
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).extend(leader);
        Self { id: leader }
    }

    /// Ends its remaining processes.
    pub fn end(&mut self) {
        if let Some(id) = self.id.take() {
            GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != id);
            kill(id);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// Asks a process to end.
#[cfg(unix)]
pub fn terminate(process: u32) -> std::io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    let id = id.ok_or(rustix::io::Errno::SRCH)?;
    Ok(kill_process(id, Signal::TERM)?)
}

/// Ends a process: this system has no request to end.
#[cfg(not(unix))]
pub fn terminate(process: u32) -> std::io::Result<()> {
    let process = process.to_string();
    let ended = std::process::Command::new("taskkill").args(["/F", "/PID", &process]).output()?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(std::io::Error::other(String::from_utf8_lossy(&ended.stderr).into_owned())),
    }
}

#[cfg(unix)]
fn kill(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let id = i32::try_from(group).ok().and_then(Pid::from_raw);
    // This fails if the group has ended or is inaccessible.
    let _ = id.map(|id| kill_process_group(id, Signal::KILL));
}

#[cfg(not(unix))]
fn kill(_: u32) {
    // Elsewhere, commands are killed one by one when dropped.
}

#[cfg(unix)]
mod signals {
    use std::sync::PoisonError;
    use std::sync::mpsc::channel;
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    use super::{FOLDERS, GROUPS, ON_TERM, kill};

    /// Before a signal ends the program, calls `first`, ends commands and removes folders.
    pub fn clean_up(first: fn()) {
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
                first();
                for group in GROUPS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                    kill(group);
                }
                let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
                for folder in folders.iter() {
                    // The folder may have been removed already.
                    let _ = std::fs::remove_dir_all(folder);
                }
                // The parent process sees which signal it was.
                let _ = emulate_default_handler(signal);
            }
        };
        // Without the thread, the system's default applies.
        if thread::Builder::new().name("ctx-signals".into()).spawn(watch).is_ok() {
            // Nothing is sent: it returns once the signals are caught.
            let _ = is_ready.recv();
        }
    }

    /// Whether the program was started with a signal ignored, as `nohup` does, and shells for
    /// background jobs.
    #[cfg(target_os = "linux")]
    fn is_ignored(signal: i32) -> bool {
        let status = ctx_disk::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }

    /// Other systems do not report ignored signals. `nohup` ignores SIGHUP, so it always counts as
    /// ignored.
    #[cfg(not(target_os = "linux"))]
    fn is_ignored(signal: i32) -> bool {
        signal == SIGHUP
    }
}

#[cfg(unix)]
pub use signals::clean_up;

/// Does nothing: this system has no signals.
#[cfg(not(unix))]
pub fn clean_up(_: fn()) {
    // Unused on other systems.
    let _ = (&FOLDERS, &GROUPS, &ON_TERM);
}
