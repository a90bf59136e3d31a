//! What was asked, on record.

use std::fmt;

use bytes::Bytes;
use ctx_core::Usage;
use serde_json::Value;

use super::api::Api;
use super::prompt::Prompt;

/// A request as it came in.
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
    /// Its body as it came.
    pub body: Bytes,
    /// Its body as JSON; null where it is none.
    pub json: Value,
    /// What it asks for; `None` where the provider has no such thing.
    pub api: Option<Api>,
    /// What the model reads.
    pub prompt: Prompt,
    /// The prompt's tokens, fresh and cached, and those of the answer as far as it was decided.
    pub usage: Usage,
    /// The HTTP status of the answer; 0 until there is one.
    pub status: u16,
    /// Why it was refused, where the provider itself refused it and not a script: a wrong key, a
    /// prompt that is too long.
    pub refusal: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The answer is not out yet.
    #[default]
    Open,
    /// The answer went out in full.
    Sent,
    /// The provider cut the connection, as it was told to.
    Cut,
    /// The client went away before the answer was out.
    Abandoned,
}

impl Request {
    /// The value of a header; the name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    /// The API key that it carries.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        let bearer = self.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let headers = ["x-api-key", "api-key", "x-goog-api-key"];
        let header = || headers.iter().find_map(|name| self.header(name));
        bearer.or_else(header).or_else(|| self.query("key"))
    }

    /// The value of a parameter of the query, as it stands there.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.path.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The model that it names, in the body or (Gemini) in the path; empty where it names none.
    #[must_use]
    pub fn model(&self) -> &str {
        let in_path = || {
            let path = self.path.split('?').next()?;
            let (_, model) = path.rsplit_once("/models/")?;
            model.split_once(':').map(|(model, _)| model)
        };
        let in_body = self.json.get("model").and_then(Value::as_str);
        in_body.or_else(in_path).unwrap_or_default()
    }

    /// Whether it asks for a stream. Ollama streams unless told otherwise.
    #[must_use]
    pub fn stream(&self) -> bool {
        if self.api == Some(Api::Gemini) {
            return self.path.contains(":streamGenerateContent");
        }
        let asked = self.json.get("stream").and_then(Value::as_bool);
        asked.unwrap_or(self.api == Some(Api::OllamaChat))
    }

    /// Whether its stream is a list (Gemini without `alt=sse`), not events.
    pub(super) fn wants_list(&self) -> bool {
        self.api == Some(Api::Gemini) && self.stream() && self.query("alt") != Some("sse")
    }

    /// The longest answer that it wants, in tokens.
    #[must_use]
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
