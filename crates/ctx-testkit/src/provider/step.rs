//! The steps of a script: written in Rust or read from a JSON file.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::{Failure, FailureKind};
use super::script::{Answer, Call, Cut, Finish, Moment, Raw, Reply, Wait, When};

/// One step of a script: the answer to a request, when it is sent, and how it is delivered.
///
/// In JSON: `{"reply": {"text": "hello"}, "wait": "release"}`, `{"reply": {"error": {"kind":
/// "rateLimited"}}, "times": 2}`, `{"reply": "summary", "times": null}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[must_use]
pub struct Step {
    /// Only matching requests take the step. Default: every completion.
    pub when: When,
    /// Number of requests that take the step; `None` is unlimited. Default: 1.
    pub times: Option<u32>,
    /// The answer. Default: [`Reply::Summary`].
    pub reply: Reply,
    /// What the answer waits for. Default: nothing.
    pub wait: Wait,
    /// Where it waits. Default: before the headers.
    pub wait_at: Moment,
    /// Where the connection is cut. Default: nowhere.
    pub cut: Option<Cut>,
    /// The body is sent in writes of this many bytes, which may split an event or a character.
    /// Default: event by event.
    pub write_bytes: Option<usize>,
    /// Whether lines of an event stream end with CR LF, with comments between events. Default:
    /// false.
    pub crlf: bool,
}

impl Default for Step {
    fn default() -> Self {
        Self::new(Reply::Summary)
    }
}

impl Step {
    /// Creates a step that answers one completion, at once and in full.
    pub fn new(reply: Reply) -> Self {
        Self {
            when: When::default(),
            times: Some(1),
            reply,
            wait: Wait::No,
            wait_at: Moment::BeforeHeaders,
            cut: None,
            write_bytes: None,
            crlf: false,
        }
    }

    /// Answers with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Reply::Text(text.into()))
    }

    /// Answers with an [`Answer`].
    pub fn answer(answer: Answer) -> Self {
        Self::new(Reply::Answer(Box::new(answer)))
    }

    /// Answers with a text that ends at its length limit.
    pub fn cut_off(text: impl Into<String>) -> Self {
        let finish = Some(Finish::Length);
        Self::answer(Answer { text: text.into(), finish, ..Answer::default() })
    }

    /// Answers with one tool call.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        let calls = vec![Call { name: name.into(), arguments }];
        Self::answer(Answer { calls, ..Answer::default() })
    }

    /// Answers without end.
    pub fn endless(text: impl Into<String>) -> Self {
        Self::answer(Answer { text: text.into(), endless: true, ..Answer::default() })
    }

    /// Fails.
    pub fn error(failure: impl Into<Failure>) -> Self {
        Self::new(Reply::Error(failure.into()))
    }

    /// Refuses the prompt as too long.
    pub fn overflow() -> Self {
        Self::error(FailureKind::Overflow)
    }

    /// Answers with an HTTP response of that status, content type and body.
    pub fn raw(status: u16, content_type: impl Into<String>, body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.into())];
        Self::new(Reply::Raw(Raw { status, headers, body: body.into() }))
    }

    /// Redirects the client, with status 307.
    pub fn redirect(location: impl Into<String>) -> Self {
        let headers = vec![("location".to_owned(), location.into())];
        Self::new(Reply::Raw(Raw { status: 307, headers, body: String::new() }))
    }

    /// Answers with bytes that are not HTTP.
    pub fn garbage() -> Self {
        Self::new(Reply::Garbage)
    }

    /// Never answers.
    pub fn hang() -> Self {
        Self { wait: Wait::Forever, ..Self::default() }
    }

    /// Takes the step only for matching requests.
    pub fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// Takes the step for this number of requests.
    pub fn times(self, times: u32) -> Self {
        Self { times: Some(times), ..self }
    }

    /// Takes the step for all further requests.
    pub fn always(self) -> Self {
        Self { times: None, ..self }
    }

    /// Waits before the headers until the test releases it.
    pub fn held(self) -> Self {
        self.held_at(Moment::BeforeHeaders)
    }

    /// Waits at that point until the test releases it.
    pub fn held_at(self, moment: Moment) -> Self {
        Self { wait: Wait::Release, wait_at: moment, ..self }
    }

    /// Stalls at that point, with the connection open.
    pub fn stalled_at(self, moment: Moment) -> Self {
        Self { wait: Wait::Forever, wait_at: moment, ..self }
    }

    /// Waits before the headers for this time.
    pub fn delayed(self, by: Duration) -> Self {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        Self { wait: Wait::Millis(millis), ..self }
    }

    /// Cuts the connection at that point.
    pub fn cut(self, cut: Cut) -> Self {
        Self { cut: Some(cut), ..self }
    }

    /// Sends the body in writes of this many bytes.
    pub fn write_bytes(self, bytes: usize) -> Self {
        Self { write_bytes: Some(bytes), ..self }
    }

    /// Sends an event stream with CR LF and comments.
    pub fn crlf(self) -> Self {
        Self { crlf: true, ..self }
    }
}
