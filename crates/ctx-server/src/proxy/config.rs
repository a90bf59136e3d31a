//! `server`: the proxy and what stands beside it.

use ctx_core::{Profile, Result};
use ctx_engine_registry::{ConfigSection, Section, wrong_value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `server`: how `ctx serve` listens and where it sends what it made smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ServerConfig {
    /// Where to listen. Default: `127.0.0.1:8787`.
    pub listen: String,
    /// Names that requests may call this server by, besides `localhost` and its address.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests, such as `app://obsidian.md`. They may read what the page of
    /// this server reads. Default: none but its own.
    pub origins: Vec<String>,
    /// Where requests go.
    pub upstreams: UpstreamsConfig,
    /// Who writes summaries. Default: `upstream`.
    pub summaries: SummariesBy,
    /// The largest body of a request, unpacked, in bytes. Default: 64 MiB.
    #[schemars(range(min = 1024))]
    pub max_body_bytes: u64,
    /// How many requests may be open at once. Default: 256.
    #[schemars(range(min = 1))]
    pub max_requests: u32,
    /// How many conversations stay in memory; those on disk come back. Default: 256.
    #[schemars(range(min = 1))]
    pub max_conversations: u32,
    /// How long a provider may take.
    pub timeouts: TimeoutsConfig,
    /// How long running answers are waited for at the end, in seconds. Default: 30.
    pub grace_seconds: u32,
}

/// `server.upstreams`: the base URL for each API, with or without its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct UpstreamsConfig {
    /// For chat completions, responses and all that is nobody else's. Default:
    /// `https://api.openai.com`.
    pub openai: Option<String>,
    /// For Anthropic messages. Default: `https://api.anthropic.com`.
    pub anthropic: Option<String>,
    /// For Gemini. Default: `https://generativelanguage.googleapis.com`.
    pub gemini: Option<String>,
}

/// Who writes summaries of conversations that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SummariesBy {
    /// The provider and the model that the request is for, with its key.
    #[default]
    Upstream,
    /// The model of `agents.defaults.compaction.model`.
    Model,
    /// Nobody: they are extracted.
    Extractive,
}

/// `server.timeouts`: in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TimeoutsConfig {
    /// To be reached. Default: 10.
    #[schemars(range(min = 1))]
    pub connect: u32,
    /// To begin its answer. Default: 600, because one that comes in one piece takes as long as all
    /// of it.
    #[schemars(range(min = 1))]
    pub first_byte: u32,
    /// Between two pieces of it. Default: 300.
    #[schemars(range(min = 1))]
    pub idle: u32,
    /// For all of it. Default: 3600.
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
    fn for_profile(_: Profile) -> Self {
        Self::default()
    }
    fn check(&self) -> Result<()> {
        if self.listen.parse::<std::net::SocketAddr>().is_err() {
            let wanted = "an address and a port, such as 127.0.0.1:8787";
            return Err(wrong_value::<Self>("listen", format!("{:?}", self.listen), wanted));
        }
        let is_origin =
            |text: &String| text == "null" || text.contains("://") && !text.contains(' ');
        if let Some(origin) = self.origins.iter().find(|origin| !is_origin(origin)) {
            let wanted = "what a browser sends as Origin, such as app://obsidian.md";
            return Err(wrong_value::<Self>("origins", format!("{origin:?}"), wanted));
        }
        let upstreams = [
            ("upstreams.openai", &self.upstreams.openai),
            ("upstreams.anthropic", &self.upstreams.anthropic),
            ("upstreams.gemini", &self.upstreams.gemini),
        ];
        for (key, url) in upstreams {
            // It may hold a password, so it is not repeated.
            if url.as_deref().is_some_and(|url| super::upstream::base(url).is_err()) {
                return Err(wrong_value::<Self>(key, "this text", "a URL such as https://host/v1"));
            }
        }
        Ok(())
    }
}

inventory::submit! { ConfigSection::of::<ServerConfig>(env!("CARGO_PKG_NAME")) }
