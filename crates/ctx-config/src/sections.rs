//! The sections that belong to no layer.

use std::collections::BTreeMap;
use std::fmt;

use ctx_core::{Counter, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Profile;
use crate::config::{ConfigSection, Section, invalid_value};
use crate::expected::any_of;

/// `profile`: the profile that supplies the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend(
    "enum" = Profile::all().map(Profile::name).collect::<Vec<_>>(),
    "description" = about_profiles(),
))]
pub struct ProfileKey(pub String);

fn about_profiles() -> String {
    let mut names: Vec<_> = Profile::all().map(|profile| format!("`{profile}`")).collect();
    names[0].push_str(" (default)");
    format!("`profile`: the profile that supplies the defaults: {}.", any_of(&names))
}

impl Default for ProfileKey {
    fn default() -> Self {
        Self(Profile::default().name().to_owned())
    }
}

impl Section for ProfileKey {
    const PATH: &'static str = "profile";
}

/// `system`: how the system that a profile models counts tokens, and which rows of the catalogue it
/// knows. Only the file of a profile has this section, so it is not registered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SystemRules {
    /// The token counter.
    #[schemars(skip)]
    pub counter: Counter,
    /// The rows of the catalogue that take precedence.
    pub catalogue: PriceList,
}

impl Section for SystemRules {
    const PATH: &'static str = "system";
}

/// `models`: providers and their models, in addition to the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Models {
    /// Providers by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The price list to use where `providers` has no `cost`. Default: `today`.
    pub vintage: PriceList,
}

/// A price list of the catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PriceList {
    /// The providers' prices at the date of each row.
    #[default]
    Today,
    /// PonyBunny's prices of January 2026, without a price for cached tokens.
    Seed,
}

impl Models {
    /// Returns the row of `model` and its provider: `provider` if given, else the first that lists
    /// the model. The model may also be named `provider/id`.
    pub fn find(&self, provider: Option<&str>, model: &str) -> Option<(&str, &ModelConfig)> {
        let is_meant = |name: &str, id: &str| {
            id == model || model.strip_prefix(name).and_then(|m| m.strip_prefix('/')) == Some(id)
        };
        self.providers
            .iter()
            .filter(|(name, _)| provider.is_none_or(|wanted| wanted == name.as_str()))
            .flat_map(|(name, p)| p.models.iter().map(move |m| (name.as_str(), m)))
            .find(|(name, m)| is_meant(name, &m.id))
    }
}

/// One provider.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ProviderConfig {
    /// The base URL of its API. A password in it is never printed.
    #[serde(serialize_with = "without_password")]
    pub base_url: Option<String>,
    /// The API family: `openai-completions`, `openai-responses` or `anthropic-messages`. Google's
    /// models are reached through its OpenAI-compatible endpoint.
    pub api: Option<String>,
    /// The API key or its source: `$NAME` or `env:NAME` for an environment variable, `file:PATH`
    /// for a file, else the key itself. Default: the provider's usual variable. It is never
    /// printed.
    pub api_key: Option<SecretText>,
    /// Additional headers; their values are given like the key.
    pub headers: BTreeMap<String, SecretText>,
    /// Its models.
    pub models: Vec<ModelConfig>,
}

/// Serialises a URL without its password, for printing.
///
/// # Errors
///
/// Those of the serializer.
pub fn without_password<S: serde::Serializer>(
    url: &Option<String>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    url.as_deref().map(shown_url).serialize(serializer)
}

/// Returns a URL without its password, for printing.
fn shown_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}://(hidden){}", &rest[at..]),
        None => url.to_owned(),
    }
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("base_url", &self.base_url.as_deref().map(shown_url))
            .field("api", &self.api)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("models", &self.models)
            .finish()
    }
}

/// A secret, or a reference to one. Only references are printed.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("writeOnly" = true))]
pub struct SecretText(String);

impl SecretText {
    /// Returns the configured text: a reference or the secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text to print for a secret: the text itself if it is a reference, else
    /// `(hidden)`.
    #[must_use]
    pub fn printed(secret: &str) -> &str {
        if is_reference(secret.trim()) { secret } else { "(hidden)" }
    }
}

/// Whether a text refers to a variable or a file. A dollar that no valid name follows may be the
/// beginning of a key.
fn is_reference(text: &str) -> bool {
    let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = text.strip_prefix("env:").or(braced).or_else(|| text.strip_prefix('$'));
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name {
        Some(name) => name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(in_name),
        None => text.starts_with("file:"),
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(Self::printed(&self.0), f)
    }
}

impl Serialize for SecretText {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::printed(&self.0))
    }
}

/// One model of a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ModelConfig {
    /// The name used by the provider.
    pub id: String,
    /// The name to display.
    pub name: Option<String>,
    /// The model's context window, in tokens.
    #[schemars(range(min = 1))]
    pub context_window: Option<u32>,
    /// The part of the window to use, in tokens; the smaller of the two counts.
    #[schemars(range(min = 1))]
    pub context_tokens: Option<u32>,
    /// The maximum length of an answer, in tokens.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Prices in USD per million tokens.
    pub cost: Option<ModelCost>,
    /// Whether it thinks before it answers, so that its answers take more tokens. Default: derived
    /// from its name.
    pub reasoning: Option<bool>,
    /// The engine that assembles requests to this model. Default: that of the agent, else
    /// `plugins.slots.contextEngine`.
    pub context_engine: Option<String>,
}

/// Prices in USD per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ModelCost {
    /// Prompt tokens.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Tokens of the answer.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Prompt tokens read from the provider's cache.
    #[schemars(range(min = 0))]
    pub cache_read: Option<f64>,
    /// Prompt tokens written to it.
    #[schemars(range(min = 0))]
    pub cache_write: Option<f64>,
}

impl Section for Models {
    const PATH: &'static str = "models";
    fn check(&self) -> Result<()> {
        for (name, provider) in &self.providers {
            if let Some(at) = provider.models.iter().position(|m| m.id.trim().is_empty()) {
                let key = format!("providers.{name}.models[{at}].id");
                let value = format!("{:?}", provider.models[at].id);
                return Err(invalid_value::<Self>(&key, value, "the name used by the provider"));
            }
        }
        Ok(())
    }
}

/// `agents.defaults.contextTokens`: how much of a model's window the agent may use, in tokens.
/// Default: not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ContextTokens(#[schemars(range(min = 1))] pub Option<u32>);

impl Section for ContextTokens {
    const PATH: &'static str = "agents.defaults.contextTokens";
}

/// `agents.running`: CoPaw's keys. They take effect under profile `copaw`, or where set explicitly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunningConfig {
    /// The model's window, in tokens. Default: 131072.
    #[schemars(range(min = 1))]
    pub max_input_length: u32,
    /// Compaction starts when this share of the window is used. Default: 0.75.
    #[schemars(range(min = 0.1, max = 1))]
    pub memory_compact_ratio: f64,
    /// This share of the window is kept verbatim by a compaction. Default: 0.1.
    #[schemars(range(min = 0, max = 1))]
    pub memory_reserve_ratio: f64,
    /// Whether long tool results are offloaded to files. Default: false.
    pub enable_tool_result_compact: bool,
    /// Number of newest tool results that are never offloaded. Default: 5.
    pub tool_result_compact_keep_n: u32,
}

impl Default for RunningConfig {
    fn default() -> Self {
        Self {
            max_input_length: 131_072,
            memory_compact_ratio: 0.75,
            memory_reserve_ratio: 0.1,
            enable_tool_result_compact: false,
            tool_result_compact_keep_n: 5,
        }
    }
}

impl Section for RunningConfig {
    const PATH: &'static str = "agents.running";
}

inventory::submit! { ConfigSection::of::<ProfileKey>(env!("CARGO_PKG_NAME")) }
inventory::submit! { ConfigSection::of::<Models>(env!("CARGO_PKG_NAME")) }
inventory::submit! { ConfigSection::of::<ContextTokens>(env!("CARGO_PKG_NAME")) }
inventory::submit! { ConfigSection::of::<RunningConfig>(env!("CARGO_PKG_NAME")) }
