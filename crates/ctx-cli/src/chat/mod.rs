//! A conversation at a terminal, or one message of it for a script.

mod bar;
mod demo;
mod edit;
mod interactive;
mod interrupt;
mod models;
mod once;
mod person;
mod show;
mod tools;

use ctx_core::{Error, ErrorKind};
use ctx_runtime::Runtime;
use ctx_session::key::SessionKey;

use crate::failure::misuse;

pub(crate) use demo::Demo;
pub(crate) use interactive::run as interactive;
pub(crate) use interrupt::Interrupt;
pub(crate) use models::{Models, connect};
pub(crate) use once::run as once;
pub(crate) use person::Person;
pub(crate) use tools::{Nobody, Permits, Tools};

/// What a conversation is held with.
pub(crate) struct Talk<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) key: &'a SessionKey,
    pub(crate) tools: &'a Tools,
    /// The model that answers first.
    pub(crate) model: &'a str,
    pub(crate) verbose: bool,
    /// Whether the window was given on the command line.
    pub(crate) has_window: bool,
}

impl Talk<'_> {
    /// An error of a turn, as one of the arguments where it is that.
    fn told(&self, error: Error) -> anyhow::Error {
        match error.kind() {
            ErrorKind::WindowTooSmall if self.has_window => misuse(error),
            _ => error.into(),
        }
    }
}

/// Runs a future on threads that go on working while this one waits for a person.
fn on_runtime<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(waiting_runtime()?.block_on(future))
}

fn waiting_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    built.map_err(|error| {
        let said = Error::new(ErrorKind::Io, "the program cannot be set up to wait for answers");
        said.hint("see whether the limit of open files is reached: `ulimit -n`")
            .source(error)
            .into()
    })
}
