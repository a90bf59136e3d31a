//! The parts of a script's step.

use ctx_core::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api::Api;
use super::failure::Failure;

/// Which requests take a step: those that meet all given conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct When {
    /// The API.
    pub api: Option<Api>,
    /// The model's name.
    pub model: Option<String>,
    /// Whether a stream is requested.
    pub stream: Option<bool>,
    /// A part of the prompt's text.
    pub contains: Option<String>,
    /// A part of the messages since the last answer of the model.
    pub newest: Option<String>,
    /// Whether there is a tool result since the last answer of the model.
    pub after_tool: Option<bool>,
    /// The name of an available tool.
    pub tool: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// A summary in six sections, made of the lines of the prompt that contain paths, identifiers,
    /// numbers and instructions, no longer than the request allows.
    Summary,
    /// A text.
    Text(String),
    /// Text, tool calls, finish reason and usage.
    Answer(Box<Answer>),
    /// An error with the wording of a provider.
    Error(Failure),
    /// Any HTTP response.
    Raw(Raw),
    /// Bytes that are not HTTP.
    Garbage,
}

/// The answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Answer {
    /// Its reasoning.
    pub thinking: String,
    /// Its text.
    pub text: String,
    /// Its tool calls.
    pub calls: Vec<Call>,
    /// The finish reason. Default: `Stop`, or `ToolCalls` if there are calls.
    pub finish: Option<Finish>,
    /// The usage. Default: computed.
    pub usage: Report,
    /// Whether the last part is repeated for ever; without streaming, endless white space follows
    /// the beginning of the answer. Default: false.
    pub endless: bool,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments. A string is sent unchanged, so that arguments that are not JSON can be sent.
    #[serde(default)]
    pub arguments: Value,
}

/// The finish reason of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Finish {
    /// The model finished.
    #[default]
    Stop,
    /// At its length limit.
    Length,
    /// For tool calls.
    ToolCalls,
    /// It was filtered or refused.
    ContentFilter,
    /// The window is full, reported as the finish reason instead of an error (z.ai, Anthropic).
    WindowFull,
}

/// The usage that the provider reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Report {
    /// Characters divided by four; the part of the prompt that was sent before counts as cached.
    #[default]
    Computed,
    /// These numbers.
    Given(Usage),
    /// None, as with some servers.
    Nothing,
}

/// Any HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Raw {
    /// Its status. Default: 200.
    pub status: u16,
    /// Its headers; `content-type` defaults to `application/json`.
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
    /// A release by the test: see [`FakeProvider::release`](super::FakeProvider::release).
    Release,
    /// This number of milliseconds.
    Millis(u64),
    /// Nothing: the answer is never sent.
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
    /// After this number of events of the body; a body that is not streamed is one event.
    AfterEvents(usize),
}

/// The point at which a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// Before anything is sent.
    BeforeHeaders,
    /// In the middle of the headers.
    InHeaders,
    /// After the headers.
    AfterHeaders,
    /// After this number of events.
    AfterEvents(usize),
    /// In the middle of the event after this number of events; 0 is the first.
    InEvent(usize),
    /// Before the last event: `[DONE]`, `response.completed`, `message_stop`.
    BeforeLastEvent,
}
