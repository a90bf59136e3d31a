//! The location and the API of a provider.

use std::fmt;
use std::str::FromStr;

use ctx_core::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use crate::{KeyRef, Secret};

/// The version of Anthropic's API that this crate implements.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A family of chat APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI Chat Completions and compatible servers: Ollama, vLLM, llama.cpp, LM Studio,
    /// OpenRouter and most others.
    #[serde(rename = "openai-completions")]
    OpenAiCompletions,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic Messages.
    #[serde(rename = "anthropic-messages")]
    AnthropicMessages,
}

impl Api {
    /// All families, in display order.
    pub const ALL: [Self; 3] =
        [Self::OpenAiCompletions, Self::OpenAiResponses, Self::AnthropicMessages];

    /// Returns the name in configurations and transcripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiCompletions => "openai-completions",
            Self::OpenAiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
        }
    }

    /// Returns the last part of the URL.
    fn path(self) -> &'static str {
        match self {
            Self::OpenAiCompletions => "chat/completions",
            Self::OpenAiResponses => "responses",
            Self::AnthropicMessages => "messages",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Api {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name).ok_or_else(|| {
            let error = Error::new(ErrorKind::InvalidInput, "unsupported API family")
                .with("api", ctx_core::text::head_chars(name, 100));
            error.hint(match name {
                "google-generative-ai" => {
                    "use Google's OpenAI-compatible endpoint: api \"openai-completions\", baseUrl \
                     \"https://generativelanguage.googleapis.com/v1beta/openai\""
                        .to_owned()
                }
                _ => format!("use one of {}", Self::ALL.map(Self::name).join(", ")),
            })
        })
    }
}

/// The location, the API and the credentials of a provider.
#[derive(Clone, Debug)]
pub struct Endpoint {
    base_url: BaseUrl,
    api: Api,
    headers: Vec<(String, KeyRef)>,
    key: Option<KeyRef>,
}

/// A URL whose `Debug` output hides user info and query, because they may contain keys.
#[derive(Clone)]
struct BaseUrl(Url);

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl Endpoint {
    /// Creates an endpoint without a key from a base URL. The version is optional, and the full URL
    /// of a request is accepted: `https://api.anthropic.com`, `http://127.0.0.1:11434/v1`,
    /// `https://api.openai.com/v1/chat/completions`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is not an HTTP URL.
    pub fn new(base_url: &str, api: Api) -> Result<Self> {
        let wrong = |what: String| {
            Error::new(ErrorKind::InvalidInput, what)
                .hint("use a base URL such as https://api.openai.com/v1 or http://127.0.0.1:11434")
        };
        // The text may contain a password, so the error does not repeat it.
        let url = Url::parse(base_url.trim())
            .map_err(|e| wrong(format!("invalid base URL of a provider: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong(format!(
                "invalid base URL of a provider: it begins with {}: instead of http:// or https://",
                url.scheme()
            )));
        }
        Ok(Self { base_url: BaseUrl(url), api, headers: Vec::new(), key: None })
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: KeyRef) -> Self {
        self.key = Some(key);
        self
    }

    /// Adds a header. It replaces a header of this crate with the same name.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: KeyRef) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Returns the API.
    pub fn api(&self) -> Api {
        self.api
    }

    /// Returns the source of the key.
    pub fn key(&self) -> Option<&KeyRef> {
        self.key.as_ref()
    }

    /// Returns the host, with the port if it is not the default.
    pub fn host(&self) -> String {
        let host = self.base_url.0.host_str().unwrap_or_default();
        self.base_url.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns the URL for chat.
    pub fn chat_url(&self) -> Url {
        self.url(self.api.path())
    }

    /// Returns the URL of another service of the same API, such as `embeddings` or `models`.
    pub fn url(&self, service: &str) -> Url {
        let path = self.base_url.0.path().trim_end_matches('/');
        let path = path.strip_suffix(self.api.path()).unwrap_or(path).trim_end_matches('/');
        // Anthropic's base URLs usually have no version, and neither do bare hosts.
        let versioned =
            path.ends_with("/v1") || (self.api != Api::AnthropicMessages && !path.is_empty());
        let version = if versioned { "" } else { "/v1" };
        self.at(&format!("{path}{version}/{service}"))
    }

    /// Returns the URL of a path on the host, ignoring the base URL's path.
    pub fn at(&self, path: &str) -> Url {
        let mut url = self.base_url.0.clone();
        url.set_path(path);
        url
    }

    /// Returns the headers of every request: credentials and API version. Values are marked as
    /// sensitive. Also returns all secrets, including those in the URL.
    ///
    /// # Errors
    ///
    /// See [`KeyRef::resolve`]; [`ErrorKind::InvalidInput`] if a header value is invalid.
    pub fn headers(&self) -> Result<(HeaderMap, Vec<Secret>)> {
        let mut headers = HeaderMap::new();
        let mut secrets = secrets_of(&self.base_url.0);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.api == Api::AnthropicMessages {
            headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
        }
        if let Some(key) = &self.key {
            let secret = key.resolve()?;
            let (name, text) = match self.api {
                Api::AnthropicMessages => {
                    (HeaderName::from_static("x-api-key"), secret.expose().to_owned())
                }
                _ => (AUTHORIZATION, format!("Bearer {}", secret.expose())),
            };
            headers.insert(name, sensitive(&text).ok_or_else(|| unsendable("API key", key))?);
            secrets.push(secret);
        }
        for (name, value) in &self.headers {
            let secret = value.resolve()?;
            let header = HeaderName::from_bytes(name.as_bytes()).ok();
            let (header, text) = header
                .zip(sensitive(secret.expose()))
                .ok_or_else(|| unsendable("header", value).with("name", name))?;
            headers.insert(header, text);
            secrets.push(secret);
        }
        Ok((headers, secrets))
    }
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn unsendable(what: &str, key: &KeyRef) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("the {what} is not a valid header value"))
        .with("from", key)
        .hint("it must be one line of visible ASCII")
}

/// Returns the credentials in a URL (user, password, keys in the query), both raw and decoded.
fn secrets_of(url: &Url) -> Vec<Secret> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let is_open = |name: &str| name.contains("version") || name == "model";
    let query = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let keys = query.filter(|(name, _)| !is_open(name)).map(|(_, value)| value);
    [url.username(), url.password().unwrap_or_default()]
        .into_iter()
        .chain(keys)
        .flat_map(|text| [decoded(text), text.to_owned()])
        .filter(|text| !text.is_empty())
        .map(Secret::new)
        .collect()
}

/// Returns a URL without the parts that may be secret.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for URLs without a host, which have no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Whether a URL is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_read_as_people_write_them() {
        use Api::{AnthropicMessages as A, OpenAiCompletions as C, OpenAiResponses as R};
        for (base, api, expected) in [
            ("https://api.openai.com/v1", C, "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/", R, "https://api.openai.com/v1/responses"),
            ("https://api.openai.com", C, "https://api.openai.com/v1/chat/completions"),
            ("http://127.0.0.1:11434", C, "http://127.0.0.1:11434/v1/chat/completions"),
            (" http://[::1]:8080/v1 ", C, "http://[::1]:8080/v1/chat/completions"),
            ("https://openrouter.ai/api/v1", C, "https://openrouter.ai/api/v1/chat/completions"),
            ("https://api.z.ai/api/paas/v4", C, "https://api.z.ai/api/paas/v4/chat/completions"),
            ("https://h/v1/chat/completions", C, "https://h/v1/chat/completions"),
            ("https://api.anthropic.com", A, "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1", A, "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/messages", A, "https://api.anthropic.com/v1/messages"),
            (
                "https://api.deepseek.com/anthropic",
                A,
                "https://api.deepseek.com/anthropic/v1/messages",
            ),
            ("https://h/v1?api-version=2", C, "https://h/v1/chat/completions?api-version=2"),
        ] {
            let endpoint = Endpoint::new(base, api).unwrap();
            assert_eq!(endpoint.chat_url().as_str(), expected, "{base}");
        }
        for base in
            ["", "api.openai.com/v1", "ftp://h/", "file:///etc/passwd", "http://", "https:///v1:x"]
        {
            if let Ok(endpoint) = Endpoint::new(base, C) {
                assert!(!endpoint.host().is_empty(), "{base}");
                continue;
            }
            let error = Endpoint::new(base, C).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{base}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for (base, local) in [
            ("http://localhost:1", true),
            ("http://ollama.localhost", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost.example.org", false),
            ("http://192.168.0.1", false),
            ("https://127.0.0.1.example.org", false),
        ] {
            let endpoint = Endpoint::new(base, Api::OpenAiCompletions).unwrap();
            assert_eq!(is_loopback(&endpoint.base_url.0), local, "{base}");
        }
    }

    #[test]
    fn each_api_sends_its_key_in_its_own_header() {
        let key = || KeyRef::parse("sk-secret-1").unwrap();
        let of =
            |api| Endpoint::new("https://h", api).unwrap().with_key(key()).headers().unwrap().0;
        assert_eq!(of(Api::OpenAiCompletions)["authorization"], "Bearer sk-secret-1");
        assert_eq!(of(Api::OpenAiResponses)["authorization"], "Bearer sk-secret-1");
        let anthropic = of(Api::AnthropicMessages);
        assert_eq!(anthropic["x-api-key"], "sk-secret-1");
        assert_eq!(anthropic["anthropic-version"], "2023-06-01");
        assert!(!anthropic.contains_key("authorization"));
    }

    #[test]
    fn nothing_that_is_formatted_holds_a_secret() {
        let secret = "sk-secret-2";
        let endpoint = Endpoint::new(
            "https://user:sk-secret-2@h/v1?key=sk-secret-2#sk-secret-2",
            Api::OpenAiCompletions,
        )
        .unwrap()
        .with_key(KeyRef::parse(secret).unwrap())
        .with_header("x-more", KeyRef::parse(secret).unwrap());
        let (headers, secrets) = endpoint.headers().unwrap();
        let text =
            format!("{endpoint:?} {endpoint:#?} {headers:?} {secrets:?} {}", endpoint.host());
        assert!(!text.contains(secret), "{text}");
        let bad = Endpoint::new("https://h", Api::OpenAiCompletions)
            .unwrap()
            .with_header("x-bad", KeyRef::Literal(Secret::new("sk-secret-2\n")));
        let error = bad.headers().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!format!("{error} {error:?}").contains(secret));
    }

    #[test]
    fn an_unknown_api_is_refused_with_the_known_names() {
        let error = "openai".parse::<Api>().unwrap_err();
        assert!(error.hint_text().unwrap().contains("openai-completions"));
        let google = "google-generative-ai".parse::<Api>().unwrap_err();
        assert!(google.hint_text().unwrap().contains("v1beta/openai"));
        for api in Api::ALL {
            assert_eq!(api.name().parse::<Api>().unwrap(), api);
        }
    }
}
