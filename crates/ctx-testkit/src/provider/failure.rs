//! Errors with the wording of real providers.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::Api;
use super::words::Words;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// 429: too many requests.
    RateLimited,
    /// 429: too many tokens per minute. The text mentions tokens and limits, but this is not an
    /// overflow.
    TokensPerMinute,
    /// 429 (Anthropic: 400): the quota is used up.
    QuotaExhausted,
    /// 401: wrong key.
    Unauthorized,
    /// 403: the key lacks the permission.
    Forbidden,
    /// 404: unknown model.
    NoSuchModel,
    /// 400: a parameter that the model does not support.
    UnsupportedParameter,
    /// 400, in some APIs 413 or 500: the prompt does not fit the window.
    Overflow,
    /// 413: the body is too large in bytes.
    TooLarge,
    /// 500.
    ServerError,
    /// 502, with the HTML page of a gateway as body.
    BadGateway,
    /// 529 (Anthropic), else 503.
    Overloaded,
    /// 504.
    GatewayTimeout,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::RateLimited,
        Self::TokensPerMinute,
        Self::QuotaExhausted,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NoSuchModel,
        Self::UnsupportedParameter,
        Self::Overflow,
        Self::TooLarge,
        Self::ServerError,
        Self::BadGateway,
        Self::Overloaded,
        Self::GatewayTimeout,
    ];
}

/// An error, and how it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[must_use]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// Its HTTP status. Default: the kind's.
    pub status: Option<u16>,
    /// The `retry-after` header. Default: none.
    pub retry_after: Option<RetryAfter>,
    /// For streams: sends the error in the stream, after this number of events. Default: the error
    /// is the HTTP response.
    pub after_events: Option<usize>,
    /// The provider whose wording an overflow has. Default: the setting of
    /// [`FakeProvider`](super::FakeProvider), else OpenAI, Anthropic or Ollama, depending on the
    /// API.
    pub words: Option<Words>,
}

/// When to try again, in the format of the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RetryAfter {
    /// `retry-after: 2`
    Seconds(u64),
    /// `retry-after-ms: 1500`, in addition to the seconds, rounded up
    Millis(u64),
    /// `retry-after: Wed, 21 Oct 2026 07:28:00 GMT`
    Date(String),
}

impl From<FailureKind> for Failure {
    fn from(kind: FailureKind) -> Self {
        Self { kind, status: None, retry_after: None, after_events: None, words: None }
    }
}

impl Failure {
    /// An error of that kind, sent as the HTTP response.
    pub fn new(kind: FailureKind) -> Self {
        kind.into()
    }

    /// Sets the status.
    pub fn status(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Sets `retry-after`.
    pub fn retry_after(self, retry_after: RetryAfter) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// Sends the error in the stream, after this number of events.
    pub fn in_stream(self, after_events: usize) -> Self {
        Self { after_events: Some(after_events), ..self }
    }

    /// Sets the wording of an overflow.
    pub fn words(self, words: Words) -> Self {
        Self { words: Some(words), ..self }
    }

    /// Returns its headers.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let header = |name: &str, value: String| (name.to_owned(), value);
        match &self.retry_after {
            None => Vec::new(),
            Some(RetryAfter::Seconds(n)) => vec![header("retry-after", n.to_string())],
            Some(RetryAfter::Date(date)) => vec![header("retry-after", date.clone())],
            Some(RetryAfter::Millis(n)) => vec![
                header("retry-after-ms", n.to_string()),
                header("retry-after", n.div_ceil(1_000).to_string()),
            ],
        }
    }
}

/// The numbers in an error: tokens of the prompt, requested tokens of the answer, the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) prompt: u64,
    pub(super) answer: u64,
    pub(super) window: u64,
}

/// A status and a body.
pub(super) struct Worded {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

/// How a provider words an error. `$model` is replaced by the name of the model.
#[derive(Deserialize)]
struct Wording {
    status: u16,
    /// The type of the error; in Google's format its status.
    name: String,
    code: Option<String>,
    message: String,
}

/// The errors that have the format of their API, by format.
#[derive(Deserialize)]
struct Wordings {
    anthropic: HashMap<FailureKind, Wording>,
    google: HashMap<FailureKind, Wording>,
    openai: HashMap<FailureKind, Wording>,
}

static WORDINGS: LazyLock<Wordings> = LazyLock::new(|| {
    let data = include_str!("../../data/failures.toml");
    toml::from_str(data).expect("data/failures.toml has a table for each kind of failure")
});

const JSON: &str = "application/json";

const GATEWAY_PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
    <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n\
    </html>\r\n";

/// Returns the error of a failure in that API.
pub(super) fn worded(failure: &Failure, api: Api, model: &str, sizes: Sizes) -> Worded {
    let (status, content_type, body) = match failure.kind {
        FailureKind::Overflow => {
            let words = failure.words.unwrap_or_else(|| Words::of(api));
            let (status, body) = words.overflow(sizes.prompt, sizes.answer, sizes.window);
            (status, JSON, body)
        }
        FailureKind::BadGateway => (502, "text/html", GATEWAY_PAGE.to_owned()),
        kind => {
            let wordings = match api {
                _ if api.is_anthropic() => &WORDINGS.anthropic,
                _ if api.is_google() => &WORDINGS.google,
                _ => &WORDINGS.openai,
            };
            let Wording { status, name, code, message } = &wordings[&kind];
            let message = message.replace("$model", model);
            let body = match api {
                _ if api.is_anthropic() => anthropic_error(name, &message),
                _ if api.is_google() => google_error(*status, name, &message),
                _ if api.is_ollama() => json!({ "error": message }),
                _ => openai_error(name, None, code.as_deref(), &message),
            };
            (*status, JSON, body.to_string())
        }
    };
    Worded { status: failure.status.unwrap_or(status), content_type, body }
}

/// Formats an error as Anthropic does.
pub(super) fn anthropic_error(name: &str, message: &str) -> Value {
    let error = json!({ "type": name, "message": message });
    json!({ "type": "error", "error": error, "request_id": "req_011CTxFake000000000000000" })
}

/// Formats an error as OpenAI does.
pub(super) fn openai_error(
    name: &str,
    param: Option<&str>,
    code: Option<&str>,
    message: &str,
) -> Value {
    json!({ "error": { "message": message, "type": name, "param": param, "code": code } })
}

/// Formats an error as Google does.
pub(super) fn google_error(status: u16, name: &str, message: &str) -> Value {
    json!({ "error": { "code": status, "message": message, "status": name } })
}
