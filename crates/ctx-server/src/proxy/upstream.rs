//! Where requests go.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::wire::Protocol;
use ctx_model::Url;
use percent_encoding::percent_decode_str;

use super::config::UpstreamsConfig;

/// Whose API it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Chat completions, responses, and what is compatible with them.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
    /// Gemini.
    Gemini,
}

impl Family {
    const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// As it is called where upstreams are named.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    fn public(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Gemini => "v1beta",
            Self::OpenAi | Self::Anthropic => "v1",
        }
    }

    /// Whose API a conversation is for. Google has an endpoint for OpenAI's clients.
    pub(super) fn of_conversation(protocol: Protocol, path: &str) -> Self {
        match protocol {
            Protocol::Chat | Protocol::Responses if is_google(path) => Self::Gemini,
            Protocol::Chat | Protocol::Responses => Self::OpenAi,
            Protocol::Messages => Self::Anthropic,
            Protocol::Gemini => Self::Gemini,
        }
    }

    /// Whose API a request that is no conversation is for: models, counting, files. Anthropic's and
    /// Google's clients say who they are by their headers.
    pub(super) fn of_request(path_and_query: &str, headers: &HeaderMap) -> Self {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
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

/// The base URLs of providers.
#[derive(Clone, Debug)]
pub struct Upstreams {
    openai: Url,
    anthropic: Url,
    gemini: Url,
}

impl Upstreams {
    /// Those that were `given` (`URL` for all, or `openai=URL`, `anthropic=URL`, `gemini=URL`), else
    /// those configured, else the public ones.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for what is no URL of a web server, for a name of no API, and
    /// where one is given twice.
    pub fn new(given: &[String], config: &UpstreamsConfig) -> Result<Self> {
        let mut own: [Option<&str>; Family::ALL.len()] = [None; Family::ALL.len()];
        let mut all = None;
        for text in given {
            let (name, url) = named(text)?;
            let place = match name {
                Some(family) => &mut own[family as usize],
                None => &mut all,
            };
            if place.replace(url).is_some() {
                let what = name.map_or("all", Family::name);
                return Err(Error::new(ErrorKind::InvalidInput, "an upstream is given twice")
                    .with("for", what)
                    .hint("give one URL for all, or one for each: openai=URL, anthropic=URL, gemini=URL"));
            }
        }
        let of = |family: Family| -> Result<Url> {
            let configured = match family {
                Family::OpenAi => &config.openai,
                Family::Anthropic => &config.anthropic,
                Family::Gemini => &config.gemini,
            };
            let given = own[family as usize].or(all);
            base(given.or(configured.as_deref()).unwrap_or(family.public()))
        };
        Ok(Self {
            openai: of(Family::OpenAi)?,
            anthropic: of(Family::Anthropic)?,
            gemini: of(Family::Gemini)?,
        })
    }

    /// The base URL for an API.
    #[must_use]
    pub fn base(&self, family: Family) -> &Url {
        match family {
            Family::OpenAi => &self.openai,
            Family::Anthropic => &self.anthropic,
            Family::Gemini => &self.gemini,
        }
    }

    /// Whether an API is asked where its provider has it.
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

    /// The address for a request of that path.
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

/// The API that a URL is given for, and the URL. A URL may hold `=` itself, but its scheme does not.
fn named(text: &str) -> Result<(Option<Family>, &str)> {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let Some((name, url)) = text.split_once('=').filter(|(name, _)| is_name(name)) else {
        return Ok((None, text));
    };
    match Family::ALL.into_iter().find(|family| family.name() == name) {
        Some(family) => Ok((Some(family), url)),
        None => Err(Error::new(ErrorKind::InvalidInput, "there is no API of that name")
            .with("upstream", name)
            .hint("an upstream is for openai, anthropic or gemini (openai=URL), or for all (URL)")),
    }
}

/// Reads a base URL.
pub(super) fn base(text: &str) -> Result<Url> {
    let wrong = |what: String| {
        Error::new(ErrorKind::InvalidInput, what)
            .hint("give a base URL such as https://api.openai.com or http://127.0.0.1:11434/v1")
    };
    // The text may hold a password, so it is not repeated.
    let url = Url::parse(text.trim())
        .map_err(|error| wrong(format!("the URL of an upstream cannot be read: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        let scheme = url.scheme();
        return Err(wrong(format!("a URL begins with http:// or https://, not {scheme}:")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("a base URL has no query".to_owned()));
    }
    Ok(url)
}

/// The path of a request behind that of a base URL. Both may begin the API's version, or neither.
fn joined(base: &str, path: &str, version: &str) -> String {
    let base = base.trim_end_matches('/');
    let (before, of_base) = match base.rsplit_once('/') {
        Some((before, last)) if is_version(last) => (before, Some(last)),
        _ => (base, None),
    };
    let rest = path.trim_start_matches('/');
    let (first, tail) = rest.split_once('/').unwrap_or((rest, ""));
    if is_version(first) {
        // What the client says is what it speaks.
        return format!("{before}/{first}/{tail}");
    }
    match of_base {
        // A server's own API stands beside that for OpenAI's clients, without a version.
        Some(_) if first == "api" || first == "props" => {
            format!("{}/{rest}", before.strip_suffix("/api").unwrap_or(before))
        }
        Some(version) => format!("{before}/{version}/{rest}"),
        // A host that is more than a host knows where its API is.
        None if before.is_empty() && is_api(first) => format!("/{version}/{rest}"),
        None => format!("{before}/{rest}"),
    }
}

/// Whether a path leads up somewhere, in any spelling that a server may understand.
pub(super) fn climbs(path_and_query: &str) -> bool {
    /// Who decodes more often than that is not met; a path that goes on changing is refused.
    const DECODED: usize = 4;
    let mut path = path_and_query.split(['?', '#']).next().unwrap_or_default().to_owned();
    for _ in 0..DECODED {
        if path.split(['/', '\\']).any(|segment| segment.split(';').next() == Some("..")) {
            return true;
        }
        let decoded = percent_decode_str(&path).decode_utf8_lossy().into_owned();
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    true
}

/// Whether a path begins as those of Google's API do.
fn is_google(path: &str) -> bool {
    path.starts_with("/v1beta") || path.starts_with("/v1alpha")
}

/// Whether a path is below Anthropic's messages: OpenAI has messages in threads and in what it stored.
fn is_messages(path: &str) -> bool {
    let ends = path.ends_with("/messages") || path.contains("/messages/");
    ends && !path.contains("/threads/") && !path.contains("/chat/completions/")
}

/// `v1`, `v1beta`, `v2alpha1`.
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    let stem = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let word = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    rest.len() > stem.len() && ["", "beta", "alpha"].contains(&word)
}

/// Whether a path begins as one of an API does, its version left out.
fn is_api(first: &str) -> bool {
    let word = first.split(':').next().unwrap_or(first);
    [
        "chat",
        "completions",
        "responses",
        "messages",
        "models",
        "embeddings",
        "files",
        "batches",
        "audio",
        "images",
        "moderations",
    ]
    .contains(&word)
}

/// Whether a URL leads to an address of this machine that is listened on.
fn is_at(url: &Url, address: SocketAddr) -> bool {
    if url.port_or_known_default() != Some(address.port()) {
        return false;
    }
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let own = address.ip();
    if host == "localhost" || host.ends_with(".localhost") {
        return own.is_loopback() || own.is_unspecified();
    }
    host.parse::<IpAddr>().is_ok_and(|ip| {
        ip == own || (own.is_unspecified() && ip.is_loopback()) || ip.is_unspecified()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_version_is_doubled_or_lost() {
        for (base, path, expected) in [
            ("/", "/v1/chat/completions", "/v1/chat/completions"),
            ("/v1", "/v1/chat/completions", "/v1/chat/completions"),
            ("/v1/", "/chat/completions", "/v1/chat/completions"),
            ("/", "/chat/completions", "/v1/chat/completions"),
            ("/api/v1", "/v1/models", "/api/v1/models"),
            ("/api", "/v1/models", "/api/v1/models"),
            (
                "/openai/deployments/d",
                "/chat/completions",
                "/openai/deployments/d/chat/completions",
            ),
            ("/v1", "/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"),
            ("/", "/api/tags", "/api/tags"),
            ("/v1", "/api/tags", "/api/tags"),
            ("/ollama/v1", "/api/chat", "/ollama/api/chat"),
            ("/api/v1", "/api/v1/models", "/api/v1/models"),
            ("/v1", "/v1", "/v1/"),
            ("/", "/", "/"),
        ] {
            assert_eq!(joined(base, path, "v1"), expected, "{base} {path}");
        }
        assert_eq!(
            joined("", "/models/m:generateContent", "v1beta"),
            "/v1beta/models/m:generateContent"
        );
    }

    #[test]
    fn a_path_that_leads_up_is_seen_in_every_spelling() {
        for path in [
            "/v1/../admin",
            "/v1/%2e%2E/admin",
            "/v1/.%2e",
            "/..",
            "/v1\\..\\x",
            "/v1/..%2f..%2fx",
            "/v1/%2e%2e%2Fx",
            "/v1/%252e%252e/x",
            "/v1/..%252fx",
            "/v1/..%255cx",
            "/v1/%25252e%25252e/x",
            "/v1/..;a=b/x",
            "/v1/%252525252e%252525252e/x",
        ] {
            assert!(climbs(path), "{path}");
        }
        let models = ["/v1/models/a..b", "/v1/models/meta%2Fllama-3%3A8b", "/v1/models/100%25"];
        for path in models.into_iter().chain(["/v1/...", "/v1/models?q=../x", "/v1/.", "/"]) {
            assert!(!climbs(path), "{path}");
        }
    }

    #[test]
    fn a_given_upstream_is_for_all_or_for_one() {
        let config = UpstreamsConfig { gemini: Some("http://g".to_owned()), ..Default::default() };
        let given = ["http://all:1".to_owned(), "anthropic=http://a:2".to_owned()];
        let upstreams = Upstreams::new(&given, &config).unwrap();
        let host = |family| upstreams.base(family).host_str().unwrap().to_owned();
        assert_eq!(Family::ALL.map(host), ["all", "a", "all"]);
        let upstreams = Upstreams::new(&given[1..], &config).unwrap();
        let host = |family| upstreams.base(family).host_str().unwrap().to_owned();
        assert_eq!(Family::ALL.map(host), ["api.openai.com", "a", "g"]);
        for wrong in ["ftp://x", "x", "http://", "http://x/?key=1"] {
            assert!(Upstreams::new(&[wrong.to_owned()], &config).is_err(), "{wrong}");
        }
        for (wrong, words) in [
            (&["foo=http://x"][..], "no API of that name (upstream: foo)"),
            (&["http://x", "http://y"], "given twice (for: all)"),
            (&["gemini=http://x", "http://y", "gemini=http://z"], "given twice (for: gemini)"),
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
    fn what_is_no_conversation_finds_its_provider() {
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
            ("/v1/threads/t/messages", &none, Family::OpenAi),
            ("/v1/chat/completions/c/messages", &none, Family::OpenAi),
        ] {
            assert_eq!(Family::of_request(path, headers), family, "{path}");
        }
        let of = |path| Family::of_conversation(Protocol::Chat, path);
        assert_eq!(of("/v1/chat/completions"), Family::OpenAi);
        assert_eq!(
            of("/v1beta/openai/chat/completions"),
            Family::Gemini,
            "Google's key stays there"
        );
    }
}
