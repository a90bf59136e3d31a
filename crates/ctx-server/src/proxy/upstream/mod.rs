//! The providers that requests are sent to.

mod url;

use std::net::SocketAddr;

use axum::http::HeaderMap;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::wire::{Protocol, Route};
use ctx_model::Url;

use self::url::{is_at, joined};
use super::config::UpstreamsConfig;

pub(super) use self::url::{base, has_parent_segment};

/// A provider family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Chat Completions, Responses, and compatible APIs.
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Amazon Bedrock.
    Bedrock,
}

impl Family {
    /// In the order of declaration.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Bedrock];

    /// Returns the name in upstream settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }

    fn public(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Bedrock => "https://bedrock-runtime.us-east-1.amazonaws.com",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Gemini => "v1beta",
            Self::Bedrock => "",
            Self::OpenAi | Self::Anthropic => "v1",
        }
    }

    /// Returns the family of a conversation. Google has an endpoint for OpenAI clients.
    pub(super) fn of_conversation(route: &Route, path: &str) -> Self {
        match route.protocol {
            _ if route.is_bedrock => Self::Bedrock,
            Protocol::Chat | Protocol::Responses if is_google(path) => Self::Gemini,
            Protocol::Chat | Protocol::Responses => Self::OpenAi,
            Protocol::Messages => Self::Anthropic,
            Protocol::Gemini => Self::Gemini,
            Protocol::Converse => Self::Bedrock,
        }
    }

    /// Returns what is known of the target of a request other than conversations.
    pub(super) fn route(self, path: &str) -> Route {
        let protocol = match self {
            Self::OpenAi => Protocol::Chat,
            Self::Anthropic => Protocol::Messages,
            Self::Gemini => Protocol::Gemini,
            Self::Bedrock => Protocol::Converse,
        };
        let (is_ollama, is_bedrock) = (path.starts_with("/api/"), self == Self::Bedrock);
        Route { is_ollama, is_bedrock, ..Route::of(protocol) }
    }

    /// Returns the family of any other request: models, counting, files. Anthropic's and Google's
    /// clients are recognised by their headers.
    pub(super) fn of_request(path_and_query: &str, headers: &HeaderMap) -> Self {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        if path.starts_with("/model/") {
            return Self::Bedrock;
        }
        let is_gemini = is_google(path)
            || headers.contains_key("x-goog-api-key")
            || query.split('&').any(|pair| pair.starts_with("key="));
        if is_gemini {
            return Self::Gemini;
        }
        let is_anthropic = headers.contains_key("anthropic-version")
            || headers.contains_key("x-api-key")
            || is_messages(path);
        if is_anthropic { Self::Anthropic } else { Self::OpenAi }
    }
}

/// The base URLs of providers, by [`Family`].
#[derive(Clone, Debug)]
pub struct Upstreams([Url; Family::ALL.len()]);

impl Upstreams {
    /// Uses the `given` URLs (`URL` for all, or `openai=URL` and others of [`Family`]), else
    /// the configured ones, else the public ones.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for an invalid HTTP URL, for an unknown API, and for a
    /// duplicate.
    pub fn new(given: &[String], config: &UpstreamsConfig) -> Result<Self> {
        let mut own: [Option<&str>; Family::ALL.len()] = [None; Family::ALL.len()];
        let mut all = None;
        for text in given {
            let (name, url) = named(text)?;
            let slot = match name {
                Some(family) => &mut own[family as usize],
                None => &mut all,
            };
            if slot.replace(url).is_some() {
                let what = name.map_or("all", Family::name);
                return Err(Error::new(ErrorKind::InvalidInput, "duplicate upstream")
                    .with("for", what)
                    .hint(
                        "give one URL for all, or one for each: \
                         openai=URL, anthropic=URL, gemini=URL, bedrock=URL",
                    ));
            }
        }
        let [openai, anthropic, gemini, bedrock] = Family::ALL.map(|family| {
            let given = own[family as usize].or(all).or(config.of(family));
            base(given.unwrap_or(family.public()))
        });
        Ok(Self([openai?, anthropic?, gemini?, bedrock?]))
    }

    /// Returns the base URL for an API.
    pub fn base(&self, family: Family) -> &Url {
        &self.0[family as usize]
    }

    /// Whether an API is reached at its provider's public URL.
    pub(super) fn is_public(&self, family: Family) -> bool {
        self.base(family).as_str().starts_with(family.public())
    }

    /// Refuses an upstream that is the server itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn check_not(&self, address: SocketAddr) -> Result<()> {
        for family in Family::ALL {
            let url = self.base(family);
            if is_at(url, address) {
                return Err(Error::new(ErrorKind::Config, "the upstream is this server itself")
                    .with("upstream", family.name())
                    .with("listen", address)
                    .hint("give --upstream the provider's URL, or listen on another port"));
            }
        }
        Ok(())
    }

    /// Returns the URL for a request with that path.
    pub(super) fn url(&self, family: Family, path_and_query: &str) -> Url {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let mut url = self.base(family).clone();
        let joined = joined(url.path(), path, family.version());
        url.set_path(&joined);
        url.set_query(query);
        url
    }
}

/// Splits `API=URL`. A URL may contain `=`, but its scheme cannot.
fn named(text: &str) -> Result<(Option<Family>, &str)> {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let Some((name, url)) = text.split_once('=').filter(|(name, _)| is_name(name)) else {
        return Ok((None, text));
    };
    match Family::ALL.into_iter().find(|family| family.name() == name) {
        Some(family) => Ok((Some(family), url)),
        None => {
            Err(Error::new(ErrorKind::InvalidInput, "unknown API").with("upstream", name).hint(
                "an upstream is for openai, anthropic, gemini or bedrock (openai=URL), \
                 or for all (URL)",
            ))
        }
    }
}

/// Whether a path starts like a path of Google's API.
fn is_google(path: &str) -> bool {
    path.starts_with("/v1beta") || path.starts_with("/v1alpha")
}

/// Whether a path is one of Anthropic's messages API. OpenAI's threads and stored completions have
/// messages too.
fn is_messages(path: &str) -> bool {
    let ends = path.ends_with("/messages") || path.contains("/messages/");
    ends && !path.contains("/threads/") && !path.contains("/chat/completions/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_applies_to_all_apis_or_to_one() {
        let config = UpstreamsConfig { gemini: Some("http://g".to_owned()), ..Default::default() };
        let given = ["http://all:1".to_owned(), "anthropic=http://a:2".to_owned()];
        let upstreams = Upstreams::new(&given, &config).unwrap();
        let host = |family| upstreams.base(family).host_str().unwrap().to_owned();
        assert_eq!(Family::ALL.map(host), ["all", "a", "all", "all"]);
        let upstreams = Upstreams::new(&given[1..], &config).unwrap();
        let host = |family| upstreams.base(family).host_str().unwrap().to_owned();
        assert_eq!(
            Family::ALL.map(host),
            ["api.openai.com", "a", "g", "bedrock-runtime.us-east-1.amazonaws.com"]
        );
        for wrong in ["ftp://x", "x", "http://", "http://x/?key=1"] {
            assert!(Upstreams::new(&[wrong.to_owned()], &config).is_err(), "{wrong}");
        }
        for (wrong, words) in [
            (&["foo=http://x"][..], "unknown API (upstream: foo)"),
            (&["http://x", "http://y"], "duplicate upstream (for: all)"),
            (
                &["gemini=http://x", "http://y", "gemini=http://z"],
                "duplicate upstream (for: gemini)",
            ),
        ] {
            let given: Vec<String> = wrong.iter().map(|&text| text.to_owned()).collect();
            let error = Upstreams::new(&given, &config).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint_text().is_some_and(|hint| hint.contains("anthropic")));
        }
    }

    #[test]
    fn a_server_is_not_its_own_upstream() {
        let of =
            |url: &str| Upstreams::new(&[url.to_owned()], &UpstreamsConfig::default()).unwrap();
        for (url, address, is_it) in [
            ("http://127.0.0.1:8787/v1", "127.0.0.1:8787", true),
            ("http://localhost:8787", "127.0.0.1:8787", true),
            ("http://[::1]:8787", "[::1]:8787", true),
            ("http://127.0.0.1:8787", "0.0.0.0:8787", true),
            ("http://127.0.0.1:8788", "127.0.0.1:8787", false),
            ("http://10.0.0.1:8787", "127.0.0.1:8787", false),
        ] {
            assert_eq!(of(url).check_not(address.parse().unwrap()).is_err(), is_it, "{url}");
        }
    }

    #[test]
    fn other_requests_find_their_provider() {
        let with = |name: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, "x".parse().unwrap());
            headers
        };
        let none = HeaderMap::new();
        for (path, headers, family) in [
            ("/v1/models", &none, Family::OpenAi),
            ("/v1/models", &with("anthropic-version"), Family::Anthropic),
            ("/v1/messages/count_tokens", &none, Family::Anthropic),
            ("/v1/models?key=k", &none, Family::Gemini),
            ("/v1beta/models/m:countTokens", &none, Family::Gemini),
            ("/v1/embeddings", &none, Family::OpenAi),
            ("/model/m/count-tokens", &none, Family::Bedrock),
            ("/v1/threads/t/messages", &none, Family::OpenAi),
            ("/v1/chat/completions/c/messages", &none, Family::OpenAi),
        ] {
            assert_eq!(Family::of_request(path, headers), family, "{path}");
        }
        let of = |path| Family::of_conversation(&Route::of(Protocol::Chat), path);
        assert_eq!(of("/v1/chat/completions"), Family::OpenAi);
        assert_eq!(
            of("/v1beta/openai/chat/completions"),
            Family::Gemini,
            "Google's key must not be sent elsewhere"
        );
    }
}
