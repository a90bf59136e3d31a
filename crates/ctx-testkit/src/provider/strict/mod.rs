//! The requests that real providers refuse, with their wording.
//!
//! A fake that accepts everything proves little: this one refuses what the providers refuse, so
//! that a reduced history accepted here would be accepted by them as well. The wordings are those
//! of the providers' APIs; if a wording is unknown, a comment says so.

/// Refuses a request with the message that `format!` writes.
macro_rules! refuse {
    ($($message:tt)*) => { return Err(Fault::new(format!($($message)*))) };
}

mod chat;
mod gemini;
mod house;
mod messages;
mod responses;
mod seals;

use std::sync::Mutex;

use serde_json::Value;

use super::api::Api;
use super::failure::{anthropic_error, google_error, openai_error};
use super::request::Request;
use super::speech::Speech;
use super::words::Words;
use crate::locked;

pub use house::{House, Ids};
pub use seals::Seals;

/// A refusal, before it is formatted for an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) param: Option<String>,
    pub(super) code: Option<&'static str>,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), param: None, code: None }
    }

    fn at(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Returns the body of the error.
    pub(super) fn body(&self, api: Api) -> Value {
        match api {
            _ if api.is_anthropic() => {
                let mut body = anthropic_error("invalid_request_error", &self.message);
                if let Some(code) = self.code {
                    body["error"]["details"] = serde_json::json!({ "error_code": code });
                }
                body
            }
            _ if api.is_google() => google_error(self.status, "INVALID_ARGUMENT", &self.message),
            _ => {
                let name = "invalid_request_error";
                openai_error(name, self.param.as_deref(), self.code, &self.message)
            }
        }
    }
}

/// The state of a strict provider.
#[derive(Debug)]
pub(super) struct Strict {
    words: Option<Words>,
    seals: Mutex<Seals>,
}

impl Strict {
    pub(super) fn new(words: Option<Words>) -> Self {
        Self { words, seals: Mutex::default() }
    }

    /// Returns why a request is refused, if it is.
    pub(super) fn fault(&self, request: &Request, api: Api) -> Option<Fault> {
        let request = StrictRequest {
            body: &request.json,
            model: request.model(),
            is_beta: request.header("anthropic-beta").is_some(),
        };
        check(api, request, &House::of_words(api, self.words), &locked(&self.seals)).err()
    }

    /// Signs an answer, and records its contents.
    pub(super) fn seal(&self, api: Api, speech: &mut Speech) {
        locked(&self.seals).seal(api, speech);
    }
}

type Verdict = Result<(), Fault>;

/// A request to check.
#[derive(Clone, Copy, Debug)]
pub(super) struct StrictRequest<'a> {
    pub(super) body: &'a Value,
    pub(super) model: &'a str,
    /// Whether the client requests beta features.
    pub(super) is_beta: bool,
}

pub(super) fn check(api: Api, request: StrictRequest<'_>, house: &House, seals: &Seals) -> Verdict {
    match api {
        Api::Chat => chat::check(request.body, house),
        Api::Responses => responses::check(request.body, house, seals),
        Api::Messages => messages::check(request, house, seals),
        Api::Gemini => gemini::check(request, seals),
        _ => Ok(()),
    }
}

/// Returns why a provider would refuse a request with that body; `None` if it is accepted.
///
/// ```
/// use ctx_testkit::provider::strict::{House, Seals, refusal};
/// use ctx_testkit::provider::Api;
/// use serde_json::json;
///
/// let orphan = json!({ "messages": [
///     { "role": "user", "content": "hi" },
///     { "role": "tool", "tool_call_id": "c", "content": "found" },
/// ]});
/// let why = refusal(Api::Chat, &orphan, &House::of(Api::Chat), &Seals::default()).unwrap();
/// assert!(why.starts_with("Invalid parameter: messages with role 'tool' must be a response to"));
/// ```
pub fn refusal(api: Api, body: &Value, house: &House, seals: &Seals) -> Option<String> {
    let model = body["model"].as_str().unwrap_or_default();
    let request = StrictRequest { body, model, is_beta: false };
    check(api, request, house, seals).err().map(|fault| fault.message)
}

/// Returns the elements of a list; empty if it is not a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Checks names and ids as OpenAI does.
fn openai_name(name: &str, at: &str) -> Verdict {
    let pattern = "string does not match pattern. Expected a string that matches the pattern \
        '^[a-zA-Z0-9_-]+$'.";
    if !is_word(name) {
        return Err(Fault::new(format!("Invalid '{at}': {pattern}")).at(at).code("invalid_value"));
    }
    not_longer(name, 64, at)
}

fn not_longer(text: &str, most: usize, at: &str) -> Verdict {
    let length = text.chars().count();
    if length <= most {
        return Ok(());
    }
    let message = format!(
        "Invalid '{at}': string too long. Expected a string with maximum length {most}, but got a \
         string with length {length} instead."
    );
    Err(Fault::new(message).at(at).code("string_above_max_length"))
}

fn not_empty(list: &[Value], at: &str) -> Verdict {
    if !list.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Invalid '{at}': empty array. Expected an array with minimum length 1, but got an empty \
         array instead."
    );
    Err(Fault::new(message).at(at).code("empty_array"))
}

fn invalid_value(found: &str, known: &str, at: &str) -> Fault {
    Fault::new(format!("Invalid value: '{found}'. Supported values are: {known}."))
        .at(at)
        .code("invalid_value")
}

/// Arguments given as text must be JSON. OpenAI itself accepts any text; servers that render calls
/// into a template refuse it with various wordings. This wording is our own.
fn json_text(arguments: &Value, house: &House, at: &str) -> Verdict {
    let text = arguments.as_str();
    let is_empty = text.is_some_and(str::is_empty) && !house.objects;
    let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    if is_empty || value.is_some_and(|value| value.is_object() || !house.objects) {
        return Ok(());
    }
    Err(Fault::new(format!("Invalid '{at}': expected a string that contains JSON.")).at(at))
}
