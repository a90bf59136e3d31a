//! A small agent: a conversation at a terminal, or one message for a script, over the runtime of ctx.
//!
//! [`run`] talks with the models of a configuration, or with a built-in model of a few rules. The model may
//! read, write and run in the current folder; at a terminal the user is asked first. Answers go to stdout,
//! everything else to stderr.

#![forbid(unsafe_code)]

mod bar;
mod command_host;
mod confirm;
mod conversation;
mod demo;
mod edit;
mod input;
mod interactive;
mod interrupt;
mod models;
mod once;
mod show;
mod spinner;
mod tools;

use ctx_core::{Error, ErrorKind};
use ctx_runtime::Runtime;
use ctx_session::key::SessionKey;
use ctx_terminal::failure::{misuse, runtime_error};

use interrupt::Interrupt;
use spinner::Spinner;
use tools::Tools;

pub use command_host::host_command;
pub use conversation::{Options, run};
pub use demo::config as demo_config;
pub use tools::Tool;

/// The parts of a running conversation.
pub(crate) struct Talk<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) key: &'a SessionKey,
    pub(crate) tools: &'a Tools,
    /// The primary model.
    pub(crate) model: &'a str,
    /// What it waits in.
    pub(crate) threads: &'a Threads,
    /// The progress indicator.
    pub(crate) spinner: &'a Spinner,
    pub(crate) verbose: bool,
    /// Whether the window was given on the command line.
    pub(crate) has_window: bool,
}

impl Talk<'_> {
    /// Converts the error of a turn. A too small window is an argument error if the command line
    /// set it. A transcript error gets a hint.
    fn turn_error(&self, error: Error) -> anyhow::Error {
        match error.kind() {
            ErrorKind::WindowTooSmall if self.has_window => misuse(error),
            // Only a newer ctx can continue the session.
            ErrorKind::UnknownFormat if ctx_session::is_newer(&error) => error.into(),
            ErrorKind::UnknownFormat | ErrorKind::Corrupt | ErrorKind::InvalidInput => {
                with_transcript_hint(error).into()
            }
            _ => error.into(),
        }
    }
}

/// Adds a hint to the error of a transcript that cannot be continued.
fn with_transcript_hint(error: Error) -> Error {
    let is_transcript = |path: &&str| path.ends_with(".jsonl");
    let path = error.context().iter().find(|(key, _)| *key == "path");
    let Some(path) = path.map(|(_, path)| path.as_str()).filter(is_transcript) else {
        return error;
    };
    let path = path.to_owned();
    error.hint(format!(
        "/new begins another session under this key, and keeps the file; \
         `ctx check {path} --repair` writes a repaired copy"
    ))
}

/// A runtime whose threads keep working while the main thread waits for the user. Dropping it does
/// not wait for them: only maintenance can be left, and a later run continues it.
struct Threads(Option<tokio::runtime::Runtime>);

impl Threads {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let runtime = self.0.as_ref().expect("only `drop` takes the runtime");
        runtime.block_on(future)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn waiting_runtime() -> anyhow::Result<Threads> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    Ok(Threads(Some(built.map_err(runtime_error)?)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn dropping_the_runtime_does_not_wait_for_its_threads() {
        let (release, released) = channel::<()>();
        let (ended, has_ended) = channel();
        std::thread::spawn(move || {
            let threads = waiting_runtime().unwrap();
            let beside = move || released.recv();
            threads.block_on(async { drop(tokio::task::spawn_blocking(beside)) });
            drop(threads);
            ended.send(()).unwrap();
        });
        assert_eq!(has_ended.recv_timeout(Duration::from_secs(60)), Ok(()));
        drop(release);
    }
}
