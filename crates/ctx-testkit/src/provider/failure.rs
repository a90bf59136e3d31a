//! Errors with the wording of real providers.

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
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// Its HTTP status. Default: that of the kind.
    #[serde(default)]
    pub status: Option<u16>,
    /// The `retry-after` header. Default: none.
    #[serde(default)]
    pub retry_after: Option<RetryAfter>,
    /// For streams: sends the error in the stream, after this number of events. Default: the error
    /// is the HTTP response.
    #[serde(default)]
    pub after_events: Option<usize>,
    /// The provider whose wording an overflow has. Default: the setting of
    /// [`FakeProvider`](super::FakeProvider), else OpenAI, Anthropic or Ollama, depending on the
    /// API.
    #[serde(default)]
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
    #[must_use]
    pub fn new(kind: FailureKind) -> Self {
        kind.into()
    }

    /// Sets the status.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Sets `retry-after`.
    #[must_use]
    pub fn retry_after(self, retry_after: RetryAfter) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// Sends the error in the stream, after this number of events.
    #[must_use]
    pub fn in_stream(self, after_events: usize) -> Self {
        Self { after_events: Some(after_events), ..self }
    }

    /// Sets the wording of an overflow.
    #[must_use]
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

const GATEWAY_PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
    <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n\
    </html>\r\n";

/// Returns the error of a failure in that API.
pub(super) fn worded(failure: &Failure, api: Api, model: &str, sizes: Sizes) -> Worded {
    let json = |status, body: Value| Worded {
        status: failure.status.unwrap_or(status),
        content_type: "application/json",
        body: body.to_string(),
    };
    match failure.kind {
        FailureKind::Overflow => {
            let (status, body) = failure.words.unwrap_or_else(|| Words::of(api)).of_sizes(sizes);
            let status = failure.status.unwrap_or(status);
            Worded { status, content_type: "application/json", body }
        }
        FailureKind::BadGateway => Worded {
            status: failure.status.unwrap_or(502),
            content_type: "text/html",
            body: GATEWAY_PAGE.to_owned(),
        },
        kind if api.is_google() => {
            let (status, name, message) = google(kind, model);
            json(status, google_error(status, name, &message))
        }
        kind if api.is_anthropic() => {
            let (status, name, message) = anthropic(kind, model);
            json(status, anthropic_error(name, &message))
        }
        kind => {
            let (status, name, code, message) = openai(kind, model);
            match api.is_ollama() {
                true => json(status, json!({ "error": message })),
                false => json(status, openai_error(name, code, &message)),
            }
        }
    }
}

/// Formats an error as Anthropic does.
pub(super) fn anthropic_error(name: &str, message: &str) -> Value {
    let error = json!({ "type": name, "message": message });
    json!({ "type": "error", "error": error, "request_id": "req_011CTxFake000000000000000" })
}

/// Formats an error as OpenAI does.
pub(super) fn openai_error(name: &str, code: Option<&str>, message: &str) -> Value {
    json!({ "error": { "message": message, "type": name, "param": null, "code": code } })
}

/// Formats an error as Google does.
pub(super) fn google_error(status: u16, name: &str, message: &str) -> Value {
    json!({ "error": { "code": status, "message": message, "status": name } })
}

fn google(kind: FailureKind, model: &str) -> (u16, &'static str, String) {
    use FailureKind as K;
    let (status, name, message) = match kind {
        K::RateLimited | K::TokensPerMinute => {
            (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")
        }
        K::QuotaExhausted => (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        K::Unauthorized => {
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
        }
        K::Forbidden => (403, "PERMISSION_DENIED", "The caller does not have permission"),
        K::NoSuchModel => {
            let message = format!(
                "models/{model} is not found for API version v1beta, or is not supported for \
                 generateContent."
            );
            return (404, "NOT_FOUND", message);
        }
        K::UnsupportedParameter => {
            (400, "INVALID_ARGUMENT", "Request contains an invalid argument.")
        }
        K::TooLarge => {
            (400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.")
        }
        K::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
        K::GatewayTimeout => {
            (504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.")
        }
        K::ServerError | K::BadGateway | K::Overflow => {
            (500, "INTERNAL", "An internal error has occurred.")
        }
    };
    (status, name, message.to_owned())
}

fn anthropic(kind: FailureKind, model: &str) -> (u16, &'static str, String) {
    use FailureKind as K;
    let (status, name, message) = match kind {
        K::RateLimited => (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute.",
        ),
        K::TokensPerMinute => (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens per \
             minute. Please reduce the prompt length or the maximum tokens requested, or try again \
             later.",
        ),
        K::QuotaExhausted => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
             Billing to upgrade or purchase credits.",
        ),
        K::Unauthorized => (401, "authentication_error", "invalid x-api-key"),
        K::Forbidden => (
            403,
            "permission_error",
            "Your API key does not have permission to use the specified resource.",
        ),
        K::NoSuchModel => return (404, "not_found_error", format!("model: {model}")),
        K::UnsupportedParameter => {
            (400, "invalid_request_error", "thinking: Extra inputs are not permitted")
        }
        K::TooLarge => (413, "request_too_large", "Request exceeds the maximum size"),
        K::Overloaded => (529, "overloaded_error", "Overloaded"),
        K::GatewayTimeout => (504, "timeout_error", "Request timed out"),
        K::ServerError | K::BadGateway | K::Overflow => (500, "api_error", "Internal server error"),
    };
    (status, name, message.to_owned())
}

fn openai(kind: FailureKind, model: &str) -> (u16, &'static str, Option<&'static str>, String) {
    use FailureKind as K;
    match kind {
        K::RateLimited => (
            429,
            "requests",
            Some("rate_limit_exceeded"),
            format!(
                "Rate limit reached for {model} in organization org-fake on requests per min \
                 (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s."
            ),
        ),
        K::TokensPerMinute => (
            429,
            "tokens",
            Some("rate_limit_exceeded"),
            format!(
                "Request too large for {model} in organization org-fake on tokens per min (TPM): \
                 Limit 30000, Requested 41000. The input or output tokens must be reduced in order \
                 to run successfully."
            ),
        ),
        K::QuotaExhausted => (
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.".into(),
        ),
        K::Unauthorized => (
            401,
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided. You can find your API key at the provider's site.".into(),
        ),
        K::Forbidden => (
            403,
            "invalid_request_error",
            Some("model_not_allowed"),
            format!("Project `proj_fake` does not have access to model `{model}`"),
        ),
        K::NoSuchModel => (
            404,
            "invalid_request_error",
            Some("model_not_found"),
            format!("The model `{model}` does not exist or you do not have access to it."),
        ),
        K::UnsupportedParameter => (
            400,
            "invalid_request_error",
            Some("unsupported_parameter"),
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead."
                .into(),
        ),
        K::TooLarge => {
            (413, "invalid_request_error", None, "Maximum content size limit exceeded".into())
        }
        K::Overloaded => (
            503,
            "server_error",
            Some("server_is_overloaded"),
            "The server is currently overloaded. Please try again later.".into(),
        ),
        K::GatewayTimeout => (504, "server_error", None, "Gateway timeout".into()),
        K::ServerError | K::BadGateway | K::Overflow => (
            500,
            "server_error",
            None,
            "The server had an error while processing your request. Sorry about that!".into(),
        ),
    }
}
