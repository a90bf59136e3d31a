//! What is done before a signal ends the program: engines do not outlive it, and copies of them do
//! not stay behind.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Folders that are removed.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Has a temporary folder removed also if a signal ends the program.
pub(crate) fn removes(folder: &Path) {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
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

    use super::FOLDERS;

    /// Ends engines and removes folders before a signal that asks the program to end does end it.
    pub(crate) fn clean_up() {
        let (ready, is_ready) = channel::<()>();
        let watch = move || {
            let caught =
                [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
            let Ok(mut signals) = Signals::new(caught) else { return };
            drop(ready);
            for signal in &mut signals {
                end_processes();
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
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
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
    let _ = &FOLDERS;
}
