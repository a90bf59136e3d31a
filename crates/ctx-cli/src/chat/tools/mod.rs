//! The tools of a conversation: they work in the folder it is started in.

mod bash;
mod output;
mod place;
mod read;
mod write;

use std::path::Path;

use async_trait::async_trait;
use ctx_core::{Error, ErrorKind, RawJson, Result, ToolCall, ToolOutput, ToolSpec, Toolbox};
use serde::de::DeserializeOwned;

use crate::args::Tool;
use place::{Located, Place};

/// What a tool is about to do, and somebody may forbid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    pub(crate) tool: Tool,
    /// The command, or the path.
    pub(crate) subject: String,
    /// What it comes to, in words.
    pub(crate) words: String,
    /// What will be written, line by line: `+` is new, `-` goes.
    pub(crate) preview: Vec<String>,
    /// Whether it reaches out of the folder.
    pub(crate) is_outside: bool,
}

/// Whether a tool may do what it is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Granted,
    /// Not for this reason, which the model is told.
    Refused(String),
}

/// Who says what tools may do.
#[async_trait]
pub(crate) trait Permits: Send + Sync {
    async fn ask(&self, deed: Deed) -> Leave;
}

/// Nobody is there: what the tools were given for is granted, within the folder.
pub(crate) struct Nobody;

#[async_trait]
impl Permits for Nobody {
    async fn ask(&self, deed: Deed) -> Leave {
        match deed.is_outside {
            true => Leave::Refused(
                "it is outside of the working folder, and nobody is there to \
                                    allow it"
                    .to_owned(),
            ),
            false => Leave::Granted,
        }
    }
}

/// `read`, `write` and `bash`, as many of them as the model may use.
pub(crate) struct Tools {
    specs: Vec<ToolSpec>,
    place: Place,
    permits: Box<dyn Permits>,
}

impl Tools {
    /// The tools, in that folder.
    pub(crate) fn new(tools: &[Tool], folder: &Path, permits: Box<dyn Permits>) -> Result<Self> {
        // An order that changes breaks the provider's cache.
        let all =
            [(Tool::Read, read::spec()), (Tool::Write, write::spec()), (Tool::Bash, bash::spec())];
        let known = all.into_iter().filter(|(tool, _)| tools.contains(tool));
        let specs = known.map(|(_, (name, description, parameters))| ToolSpec {
            name: name.to_owned(),
            description,
            parameters: RawJson::from_text(parameters),
        });
        Ok(Self { specs: specs.collect(), place: Place::new(folder)?, permits })
    }

    /// The same, which may also read what is kept of results in this folder.
    pub(crate) fn with_results(self, folder: &Path) -> Self {
        Self { place: self.place.with_results(folder), ..self }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// The folder they work in.
    pub(crate) fn folder(&self) -> &Path {
        self.place.folder()
    }

    /// Finds a path, and asks whether the tool may touch it: what is outside is always asked for, and
    /// what writes `content`.
    async fn allowed(
        &self,
        tool: Tool,
        path: &str,
        content: Option<&str>,
    ) -> Result<Located, String> {
        let located = self.place.find(path)?;
        let is_free = !located.is_outside || (tool == Tool::Read && self.place.is_result(&located));
        if is_free && content.is_none() {
            return Ok(located);
        }
        let shown = self.place.shown(&located);
        let (words, preview) = match content {
            Some(content) => write::preview(&located.path, &shown, content),
            None => (format!("read {shown}"), Vec::new()),
        };
        let is_outside = located.is_outside;
        self.leave(Deed { tool, subject: shown, words, preview, is_outside }).await?;
        Ok(located)
    }

    async fn leave(&self, deed: Deed) -> Result<(), String> {
        match self.permits.ask(deed).await {
            Leave::Granted => Ok(()),
            Leave::Refused(reason) => Err(format!("not done: {reason}")),
        }
    }
}

#[async_trait]
impl Toolbox for Tools {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    async fn run(&self, call: &ToolCall) -> ToolOutput {
        let done = match call.name.as_str() {
            read::NAME => self.read(call).await,
            write::NAME => self.write(call).await,
            bash::NAME => self.bash(call).await,
            other => Err(format!("there is no tool {other}")),
        };
        done.unwrap_or_else(ToolOutput::error)
    }
}

/// The arguments of a call; what is wrong with them is for the model to read.
fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    serde_json::from_str(call.arguments.as_str())
        .map_err(|error| format!("the arguments make no sense: {error}"))
}

/// Runs what waits for the disk where it holds up nobody else.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err("it was cut short".to_owned()),
    }
}

/// What goes wrong with a file, for the model to read.
fn of_file(shown: &str) -> impl Fn(std::io::Error) -> String + use<'_> {
    move |error| format!("{shown}: {error}")
}

/// The error of a folder that cannot be worked in.
fn no_folder(folder: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "the working folder cannot be used")
        .with("path", folder.display())
        .source(error)
        .hint("change to a folder that exists and that you may read")
}

#[cfg(test)]
mod tests;
