//! Determines the API of a request.

use std::fmt;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// A provider's conversation API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OpenAI Chat Completions and compatible APIs.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Bedrock `converse` and `converse-stream`.
    Converse,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 5] =
        [Self::Chat, Self::Responses, Self::Messages, Self::Gemini, Self::Converse];

    /// Returns a stable name: `chat`, `responses`, `messages`, `gemini`, `converse`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
            Self::Converse => "converse",
        }
    }

    /// Returns the API family, as named in transcripts and [`Rules`](crate::hygiene::Rules).
    #[must_use]
    pub fn api(self) -> &'static str {
        match self {
            Self::Chat => "openai-completions",
            Self::Responses => "openai-responses",
            Self::Messages => "anthropic-messages",
            Self::Gemini => "google-generative-ai",
            Self::Converse => "bedrock-converse-stream",
        }
    }

    /// Returns the name of the body's field with the history.
    #[must_use]
    pub fn history(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages | Self::Converse => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The folder of Anthropic's models on Vertex.
const ANTHROPIC: &str = "/publishers/anthropic/models";

/// The target of a request, according to its request line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The API.
    pub protocol: Protocol,
    /// The model, if it is in the path (Gemini, Bedrock, Azure deployments).
    pub model: Option<String>,
    /// Whether the answer is a stream, if the path says so (Gemini, Bedrock); otherwise the body does.
    pub streams: Option<bool>,
    /// Whether the path asks for a compaction of the history: `/responses/compact`.
    pub is_compaction: bool,
    /// Whether it is Ollama's own API (`/api/chat`), a variant of OpenAI's chat: a stream has one
    /// JSON object per line, calls have no ids, and their arguments are objects.
    pub is_ollama: bool,
    /// Whether it is Amazon Bedrock: a stream consists of binary frames.
    pub is_bedrock: bool,
}

impl Route {
    /// Returns the target of a request of an API, of which nothing else is known.
    #[must_use]
    pub fn of(protocol: Protocol) -> Self {
        Self {
            protocol,
            model: None,
            streams: None,
            is_compaction: false,
            is_ollama: false,
            is_bedrock: false,
        }
    }
}

/// Returns the target of a request with this method and path. Any prefix before the API's own path
/// is accepted, so that any base URL works. Returns `None` for requests other than conversations:
/// models, embeddings, counting.
#[must_use]
pub fn route(method: &str, path_and_query: &str) -> Option<Route> {
    if method != "POST" {
        return None;
    }
    let path = path_and_query.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let deployment = path.split_once("/deployments/").and_then(|(_, rest)| rest.split('/').next());
    let of = |protocol| Route { model: deployment.map(str::to_owned), ..Route::of(protocol) };
    if path.ends_with("/chat/completions") {
        return Some(of(Protocol::Chat));
    }
    let (before, last) = path.rsplit_once('/')?;
    match last {
        "chat" if before.ends_with("/api") => Some(Route { is_ollama: true, ..of(Protocol::Chat) }),
        "responses" => Some(of(Protocol::Responses)),
        "compact" if before.ends_with("/responses") => {
            Some(Route { is_compaction: true, ..of(Protocol::Responses) })
        }
        // Messages of OpenAI's threads are not Anthropic conversations.
        "messages" if !before.contains("/threads/") => Some(of(Protocol::Messages)),
        last => {
            if let Some((protocol, streams)) = bedrock(last) {
                let model = percent_decode_str(before.rsplit_once("/model/")?.1);
                let model = Some(model.decode_utf8_lossy().into_owned());
                let streams = Some(streams);
                return Some(Route { model, streams, is_bedrock: true, ..of(protocol) });
            }
            let (model, verb) = last.rsplit_once(':')?;
            let (protocol, streams) = match verb {
                "generateContent" => (Protocol::Gemini, false),
                "streamGenerateContent" => (Protocol::Gemini, true),
                // Vertex has Anthropic's API at a path of its own.
                "rawPredict" if before.ends_with(ANTHROPIC) => (Protocol::Messages, false),
                "streamRawPredict" if before.ends_with(ANTHROPIC) => (Protocol::Messages, true),
                _ => return None,
            };
            let is_model = before.ends_with("/models") || before.ends_with("/tunedModels");
            (is_model && !model.is_empty()).then(|| Route {
                model: Some(model.to_owned()),
                streams: Some(streams),
                ..of(protocol)
            })
        }
    }
}

/// Returns the API of an operation of Bedrock, and whether it streams. `invoke` has the API of the
/// model: that of Anthropic's.
fn bedrock(operation: &str) -> Option<(Protocol, bool)> {
    match operation {
        "invoke" => Some((Protocol::Messages, false)),
        "invoke-with-response-stream" => Some((Protocol::Messages, true)),
        "converse" => Some((Protocol::Converse, false)),
        "converse-stream" => Some((Protocol::Converse, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_base_url_works() {
        for (path, protocol) in [
            ("/v1/chat/completions", Protocol::Chat),
            ("/v1/responses", Protocol::Responses),
            ("/backend-api/codex/responses/", Protocol::Responses),
            ("/v1/responses/compact", Protocol::Responses),
            ("/ollama/api/chat", Protocol::Chat),
            ("/v1/messages?beta=true", Protocol::Messages),
        ] {
            let found =
                route("POST", path).map(|found| (found.protocol, found.model, found.streams));
            assert_eq!(found, Some((protocol, None, None)), "{path}");
        }
        let path = "/openai/deployments/gpt-4o/chat/completions?api-version=1";
        assert_eq!(route("POST", path).unwrap().model.as_deref(), Some("gpt-4o"));
        let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
        let found = route("POST", path).unwrap();
        assert_eq!((found.protocol, found.streams), (Protocol::Gemini, Some(true)));
        assert_eq!(found.model.as_deref(), Some("gemini-2.5-pro"));
    }

    #[test]
    fn anthropics_models_on_vertex_have_its_api() {
        let models = "/v1/projects/p/locations/us-east5/publishers/anthropic/models";
        for (verb, streams) in [("rawPredict", false), ("streamRawPredict", true)] {
            let found = route("POST", &format!("{models}/claude-sonnet-4-5:{verb}")).unwrap();
            assert_eq!((found.protocol, found.streams), (Protocol::Messages, Some(streams)));
            assert_eq!(found.model.as_deref(), Some("claude-sonnet-4-5"));
            let other = models.replace("anthropic", "meta");
            assert_eq!(route("POST", &format!("{other}/llama:{verb}")), None);
        }
    }

    #[test]
    fn an_operation_of_bedrock_names_its_model_in_the_path() {
        let model = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-v1:0";
        for (operation, protocol, streams) in [
            ("invoke", Protocol::Messages, false),
            ("invoke-with-response-stream", Protocol::Messages, true),
            ("converse", Protocol::Converse, false),
            ("converse-stream", Protocol::Converse, true),
        ] {
            for name in [model.to_owned(), model.replace(':', "%3A").replace('/', "%2F")] {
                let found = route("POST", &format!("/model/{name}/{operation}")).unwrap();
                assert_eq!((found.protocol, found.streams), (protocol, Some(streams)));
                assert_eq!((found.model.as_deref(), found.is_bedrock), (Some(model), true));
            }
            assert_eq!(route("POST", &format!("/x/{operation}")), None);
        }
    }

    #[test]
    fn requests_other_than_conversations_have_no_route() {
        for (method, path) in [
            ("GET", "/v1/responses"),
            ("GET", "/v1/models"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/v1/responses/resp_1/cancel"),
            ("POST", "/v1/embeddings"),
            ("POST", "/v1/threads/thread_1/messages"),
            ("POST", "/v1beta/models/m:countTokens"),
            ("POST", "/v1beta/models/:generateContent"),
            ("POST", "/x:generateContent"),
            ("POST", "responses"),
            ("POST", ""),
        ] {
            assert_eq!(route(method, path), None, "{path}");
        }
    }
}
