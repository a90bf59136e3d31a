//! Recorded requests.

use std::fmt;

use bytes::Bytes;
use ctx_core::Usage;
use serde_json::Value;

use super::api::Api;
use super::prompt::Prompt;

/// A request as it was received.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request {
    /// Its number, from 1.
    pub number: usize,
    /// `GET`, `POST`.
    pub method: String,
    /// Its path, with the query if there is one.
    pub path: String,
    /// Its headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, unchanged.
    pub body: Bytes,
    /// Its body as JSON; null if it is not JSON.
    pub json: Value,
    /// Its API; `None` for an unknown path.
    pub api: Option<Api>,
    /// The prompt.
    pub prompt: Prompt,
    /// Tokens of the prompt, fresh and cached, and of the answer as far as it was decided.
    pub usage: Usage,
    /// The HTTP status of the answer; 0 before the answer.
    pub status: u16,
    /// Why it was refused, if the provider itself refused it and not a script: a wrong key, a
    /// prompt that is too long.
    pub refusal: Option<String>,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The answer is not finished.
    #[default]
    Open,
    /// The full answer was sent.
    Sent,
    /// The provider cut the connection, as scripted.
    Cut,
    /// The client disconnected before the answer was finished.
    Abandoned,
}

impl Request {
    /// Returns the value of a header; the name is case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    /// Returns the API key in the request.
    pub fn key(&self) -> Option<&str> {
        let bearer = self.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let headers = ["x-api-key", "api-key", "x-goog-api-key"];
        let header = || headers.iter().find_map(|name| self.header(name));
        bearer.or_else(header).or_else(|| self.query("key"))
    }

    /// Returns the raw value of a query parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.path.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the model named in the body or (Gemini) in the path; empty if there is none.
    pub fn model(&self) -> &str {
        let in_path = || {
            let path = self.path.split('?').next()?;
            let (_, model) = path.rsplit_once("/models/")?;
            model.split_once(':').map(|(model, _)| model)
        };
        let in_body = self.json.get("model").and_then(Value::as_str);
        in_body.or_else(in_path).unwrap_or_default()
    }

    /// Whether it requests a stream. Ollama streams by default.
    pub fn stream(&self) -> bool {
        if self.api == Some(Api::Gemini) {
            return self.path.contains(":streamGenerateContent");
        }
        let asked = self.json.get("stream").and_then(Value::as_bool);
        asked.unwrap_or(self.api == Some(Api::OllamaChat))
    }

    /// Whether its stream is a list (Gemini without `alt=sse`) instead of events.
    pub(super) fn wants_list(&self) -> bool {
        self.api == Some(Api::Gemini) && self.stream() && self.query("alt") != Some("sse")
    }

    /// Returns the maximum length of the answer, in tokens.
    pub fn max_tokens(&self) -> Option<u64> {
        let paths = [
            "/max_tokens",
            "/max_completion_tokens",
            "/max_output_tokens",
            "/generationConfig/maxOutputTokens",
            "/options/num_predict",
        ];
        paths.iter().find_map(|path| self.json.pointer(path)).and_then(Value::as_u64)
    }
}

/// Keys are not printed.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = ["content-type", "user-agent", "accept", "anthropic-version"];
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| match plain.contains(&name.as_str()) {
                true => format!("{name}: {value}"),
                false => format!("{name}: ..."),
            })
            .collect();
        f.debug_struct("Request")
            .field("number", &self.number)
            .field("method", &self.method)
            .field("path", &self.path.split('?').next().unwrap_or_default())
            .field("headers", &headers)
            .field("json", &self.json)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
