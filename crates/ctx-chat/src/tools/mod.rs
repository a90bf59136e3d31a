//! The tools of a conversation. They work in the folder in which it was started.

mod bash;
mod output;
mod read;
mod working_folder;
mod write;

use std::path::Path;

use async_trait::async_trait;
use ctx_core::{Error, ErrorKind, RawJson, Result, ToolCall, ToolOutput, ToolSpec, Toolbox};
use serde::de::DeserializeOwned;

use working_folder::{Located, WorkingFolder};

/// A tool of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Runs a command.
    Bash,
}

/// An action of a tool that may be denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolAction {
    pub(crate) tool: Tool,
    /// The command, or the path.
    pub(crate) subject: String,
    /// A description of the action.
    pub(crate) words: String,
    /// A preview of the change, line by line: `+` is added, `-` removed.
    pub(crate) preview: Vec<String>,
    /// Whether it affects anything outside of the folder.
    pub(crate) is_outside: bool,
}

/// Decides what tools may do.
#[async_trait]
pub(crate) trait Approver: Send + Sync {
    /// Fails with the reason, which is sent to the model.
    async fn ask(&self, action: ToolAction) -> Result<(), String>;
}

/// Decides without a user: tools may act within the folder, and nowhere else.
pub(crate) struct NoUser;

#[async_trait]
impl Approver for NoUser {
    async fn ask(&self, action: ToolAction) -> Result<(), String> {
        match action.is_outside {
            true => {
                let reason = "outside the working folder, and no user is present to allow it";
                Err(reason.to_owned())
            }
            false => Ok(()),
        }
    }
}

/// `read`, `write` and `bash`, if the model may use them.
pub(crate) struct Tools {
    specs: Vec<ToolSpec>,
    place: WorkingFolder,
    approver: Box<dyn Approver>,
}

impl Tools {
    /// Creates these tools, to work in `folder`.
    pub(crate) fn new(tools: &[Tool], folder: &Path, approver: Box<dyn Approver>) -> Result<Self> {
        // In a fixed order: another order would break the provider's cache.
        let all =
            [(Tool::Read, read::spec()), (Tool::Write, write::spec()), (Tool::Bash, bash::spec())];
        let known = all.into_iter().filter(|(tool, _)| tools.contains(tool));
        let specs = known.map(|(_, (name, description, parameters))| ToolSpec {
            name: name.to_owned(),
            description,
            parameters: RawJson::from_text(parameters),
        });
        Ok(Self { specs: specs.collect(), place: WorkingFolder::new(folder)?, approver })
    }

    /// Also allows reading stored tool results in this folder.
    pub(crate) fn with_results(self, folder: &Path) -> Self {
        Self { place: self.place.with_results(folder), ..self }
    }

    /// Whether the model may use no tool.
    pub(crate) fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Returns the folder they work in.
    pub(crate) fn folder(&self) -> &Path {
        self.place.folder()
    }

    /// Resolves a path. Asks for permission if `content` will be written, or if the path is outside.
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
        self.ask_permission(ToolAction { tool, subject: shown, words, preview, is_outside })
            .await?;
        Ok(located)
    }

    async fn ask_permission(&self, action: ToolAction) -> Result<(), String> {
        let asked = self.approver.ask(action).await;
        asked.map_err(|reason| format!("not done: {reason}"))
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
            other => Err(format!("unknown tool {other}")),
        };
        done.unwrap_or_else(ToolOutput::error)
    }
}

/// Parses the arguments of a call; errors are returned to the model.
fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    serde_json::from_str(call.arguments.as_str())
        .map_err(|error| format!("invalid arguments: {error}"))
}

/// Runs disk work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err("interrupted".to_owned()))
}

/// Returns a function that formats an error of a file for the model.
fn file_error(shown: &str) -> impl Fn(std::io::Error) -> String + use<'_> {
    move |error| format!("{shown}: {error}")
}

/// Returns the error for an unusable folder.
fn no_folder(folder: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "cannot use the working folder")
        .with("path", folder.display())
        .source(error)
        .hint("change to a folder that exists and that you may read")
}

#[cfg(test)]
mod tests;
