//! What a step of a script is made of.

use ctx_core::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api::Api;
use super::failure::Failure;

/// Which requests take a step; all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct When {
    /// The API.
    pub api: Option<Api>,
    /// The model's name.
    pub model: Option<String>,
    /// Whether a stream is asked for.
    pub stream: Option<bool>,
    /// A part of the prompt's text.
    pub contains: Option<String>,
    /// A part of what was said since the model spoke last.
    pub newest: Option<String>,
    /// Whether a tool's result came since the model spoke last.
    pub after_tool: Option<bool>,
    /// The name of a tool on offer.
    pub tool: Option<String>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// A summary in six sections, made of the lines of the prompt that hold paths, identifiers,
    /// numbers and instructions, no longer than the request allows.
    Summary,
    /// The newest text of the user, no longer than the request allows.
    Echo,
    /// A text.
    Text(String),
    /// A text, tool calls, how it ends and what it cost.
    Answer(Box<Answer>),
    /// An error in the words of a provider.
    Error(Failure),
    /// Any HTTP response.
    Raw(Raw),
    /// Bytes that are not HTTP.
    Garbage,
}

/// What a model says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Answer {
    /// Its reasoning.
    pub thinking: String,
    /// Its text.
    pub text: String,
    /// Its tool calls.
    pub calls: Vec<Call>,
    /// Why it ends. Default: by itself, or for the tool calls.
    pub finish: Option<Finish>,
    /// What it cost. Default: computed.
    pub usage: Report,
    /// Whether the last bit of it is repeated for ever; where no stream is asked for, white space
    /// without end follows the beginning of the answer. Default: false.
    pub endless: bool,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments. A string goes out as it is, so that arguments that are no JSON can be sent.
    #[serde(default)]
    pub arguments: Value,
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Finish {
    /// By itself.
    Stop,
    /// At its length limit.
    Length,
    /// For tool calls.
    ToolCalls,
    /// It was filtered or refused.
    ContentFilter,
    /// The window is full, said in the finish reason and not by an error (z.ai, Anthropic).
    WindowFull,
}

/// What the provider says an answer cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Report {
    /// Characters over four, the part of the prompt that was there before as read from the cache.
    #[default]
    Computed,
    /// These numbers.
    Given(Usage),
    /// Nothing, as some servers do.
    Nothing,
}

/// Any HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Raw {
    /// Its status. Default: 200.
    pub status: u16,
    /// Its headers; `content-type` is `application/json` where it is not given.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: String,
}

impl Default for Raw {
    fn default() -> Self {
        Self { status: 200, headers: Vec::new(), body: String::new() }
    }
}

/// What an answer waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Wait {
    /// Nothing.
    #[default]
    No,
    /// The test: see [`FakeProvider::release`](super::FakeProvider::release).
    Release,
    /// So many milliseconds.
    Millis(u64),
    /// It never comes.
    Forever,
}

/// A point in the delivery of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Moment {
    /// Before the status line.
    #[default]
    BeforeHeaders,
    /// After the headers, before the body.
    AfterHeaders,
    /// After so many events of the body; a body that is no stream is one event.
    AfterEvents(usize),
}

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// Before anything is sent.
    BeforeHeaders,
    /// In the middle of the headers.
    InHeaders,
    /// After the headers.
    AfterHeaders,
    /// After so many events.
    AfterEvents(usize),
    /// In the middle of the event after so many others; 0 is the first.
    InEvent(usize),
    /// Before the last event: `[DONE]`, `response.completed`, `message_stop`.
    BeforeLastEvent,
}
