//! `server`: the settings of the proxy and of the other services beside it.

use ctx_config::{ConfigSection, Section, invalid_value};
use ctx_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::upstream::{Family, base};

/// `server`: how `ctx serve` listens and where it sends requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ServerConfig {
    /// Where to listen. Default: `127.0.0.1:8787`.
    pub listen: String,
    /// Accepted host names, besides `localhost` and the server's address.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests, such as `app://obsidian.md`. They may read what this
    /// server's own page reads. Default: only its own.
    pub origins: Vec<String>,
    /// The providers that requests are sent to.
    pub upstreams: UpstreamsConfig,
    /// Which model writes summaries. Default: `upstream`.
    pub summaries: SummariesBy,
    /// The share of the compaction threshold from which the history is compacted in the background,
    /// while requests pass. A request over the threshold takes the result, with an extractive summary
    /// if that of the model is not ready. 1: such a request waits for the model. Default: 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub background_ratio: f64,
    /// Who compacts a history if the client asks for it, as Codex does. Default: `auto`.
    pub compaction: CompactionBy,
    /// What happens to summaries that a client asks its own model for. Default: `audit`.
    pub client_compaction: ClientCompaction,
    /// Whether the model can read what was cut, by tools that ctx answers. Default: `auto`.
    pub retrieval: RetrievalBy,
    /// The maximum size of a request body, decoded, in bytes. Default: 64 MiB.
    #[schemars(range(min = 1024))]
    pub max_body_bytes: u64,
    /// The maximum number of open requests. Default: 256.
    #[schemars(range(min = 1))]
    pub max_requests: u32,
    /// The maximum number of conversations in memory; those on disk are reloaded. Default: 256.
    #[schemars(range(min = 1))]
    pub max_conversations: u32,
    /// Timeouts for providers.
    pub timeouts: TimeoutsConfig,
    /// How long to wait for running answers at shutdown, in seconds. Default: 30.
    pub grace_seconds: u32,
}

/// `server.upstreams`: the base URL for each API, with or without its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct UpstreamsConfig {
    /// For Chat Completions, Responses and all other requests. Default: `https://api.openai.com`.
    pub openai: Option<String>,
    /// For Anthropic Messages. Default: `https://api.anthropic.com`.
    pub anthropic: Option<String>,
    /// For Gemini. Default: `https://generativelanguage.googleapis.com`.
    pub gemini: Option<String>,
    /// For Amazon Bedrock. Default: `https://bedrock-runtime.us-east-1.amazonaws.com`.
    pub bedrock: Option<String>,
}

impl UpstreamsConfig {
    pub(super) fn of(&self, family: Family) -> Option<&str> {
        let url = match family {
            Family::OpenAi => &self.openai,
            Family::Anthropic => &self.anthropic,
            Family::Gemini => &self.gemini,
            Family::Bedrock => &self.bedrock,
        };
        url.as_deref()
    }
}

/// Which model writes the summaries of proxied conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SummariesBy {
    /// The provider and the model of the request, with its key.
    #[default]
    Upstream,
    /// The model of `agents.defaults.compaction.model`.
    Model,
    /// No model: summaries are extractive.
    Extractive,
}

/// Who answers a request for a compaction (`compaction_trigger`, `/responses/compact`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CompactionBy {
    /// The provider; ctx if its first answer shows that it cannot.
    #[default]
    Auto,
    /// ctx.
    Ctx,
    /// The provider.
    Upstream,
}

/// What happens to summaries that a client asks its own model for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ClientCompaction {
    /// The model writes them. ctx audits them, and puts back what they lost.
    #[default]
    Audit,
    /// ctx writes them.
    Ctx,
    /// Nothing.
    Off,
}

/// When requests get the tools `ctx_expand` and `ctx_recall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RetrievalBy {
    /// While something is cut, from a request on in which the cache breaks anyway.
    #[default]
    Auto,
    /// In each request with tools.
    Tool,
    /// Never.
    Off,
}

/// `server.timeouts`: in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TimeoutsConfig {
    /// To connect. Default: 10.
    #[schemars(range(min = 1))]
    pub connect: u32,
    /// Until the answer begins. Default: 600, because an answer that is not streamed begins only
    /// when it is complete.
    #[schemars(range(min = 1))]
    pub first_byte: u32,
    /// Between two chunks of the answer. Default: 300.
    #[schemars(range(min = 1))]
    pub idle: u32,
    /// For the whole request. Default: 3600.
    #[schemars(range(min = 1))]
    pub whole: u32,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        Self { connect: 10, first_byte: 600, idle: 300, whole: 3_600 }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8787".to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            upstreams: UpstreamsConfig::default(),
            summaries: SummariesBy::default(),
            background_ratio: 0.8,
            compaction: CompactionBy::default(),
            client_compaction: ClientCompaction::default(),
            retrieval: RetrievalBy::default(),
            max_body_bytes: 64 << 20,
            max_requests: 256,
            max_conversations: 256,
            timeouts: TimeoutsConfig::default(),
            grace_seconds: 30,
        }
    }
}

impl Section for ServerConfig {
    const PATH: &'static str = "server";
    fn check(&self) -> Result<()> {
        if self.listen.parse::<std::net::SocketAddr>().is_err() {
            let expected = "an address and a port, such as 127.0.0.1:8787";
            return Err(invalid_value::<Self>("listen", format!("{:?}", self.listen), expected));
        }
        let is_origin =
            |text: &String| text == "null" || text.contains("://") && !text.contains(' ');
        if let Some(origin) = self.origins.iter().find(|origin| !is_origin(origin)) {
            let expected = "what a browser sends as Origin, such as app://obsidian.md";
            return Err(invalid_value::<Self>("origins", format!("{origin:?}"), expected));
        }
        if !(0.0..=1.0).contains(&self.background_ratio) {
            let given = self.background_ratio.to_string();
            let expected = "a share from 0 to 1, such as 0.8";
            return Err(invalid_value::<Self>("backgroundRatio", given, expected));
        }
        for family in Family::ALL {
            // The URL may contain a password, so the error does not repeat it.
            if self.upstreams.of(family).is_some_and(|url| base(url).is_err()) {
                let key = format!("upstreams.{}", family.name());
                return Err(invalid_value::<Self>(
                    &key,
                    "this text",
                    "a URL such as https://host/v1",
                ));
            }
        }
        Ok(())
    }
}

inventory::submit! { ConfigSection::of::<ServerConfig>(env!("CARGO_PKG_NAME")) }
