//! Built-in providers and model facts.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::Api;
use crate::name::normal;

/// A built-in provider.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KnownProvider {
    pub(crate) id: String,
    pub(crate) base_url: String,
    pub(crate) api: Api,
    /// The environment variable of its key; `None` if it needs none.
    pub(crate) key: Option<String>,
    /// The environment variable that overrides its URL, as read by its own SDKs.
    pub(crate) base_url_variable: Option<String>,
}

/// Makers of the catalogue's models under their catalogue ids, providers that serve models of
/// others, and local servers at their default ports.
pub(crate) static PROVIDERS: LazyLock<Vec<KnownProvider>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/providers.json"))
        .expect("the embedded table is the one the tests of this crate read")
});

/// Returns the built-in provider with this id.
pub(crate) fn provider(id: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|known| known.id.eq_ignore_ascii_case(id))
}

impl KnownProvider {
    /// Returns the provider's URL from the environment, if set.
    pub(crate) fn base_url_of(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let url = environment(self.base_url_variable.as_deref()?)?;
        let url = url.trim();
        (!url.is_empty()).then(|| url.to_owned())
    }
}

/// Returns the number of dimensions of a model known by name.
pub(crate) fn dimensions(model: &str) -> Option<usize> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.split_once(':').map_or(name, |(name, _)| name).to_lowercase();
    let lengths = [
        ("text-embedding-3-small", 1_536),
        ("text-embedding-3-large", 3_072),
        ("text-embedding-ada-002", 1_536),
        ("nomic-embed-text", 768),
        ("mxbai-embed-large", 1_024),
        ("all-minilm", 384),
        ("bge-m3", 1_024),
        ("embeddinggemma", 768),
        ("snowflake-arctic-embed2", 1_024),
        ("mistral-embed", 1_024),
    ];
    lengths.iter().find(|(known, _)| *known == name).map(|(_, length)| *length)
}

/// Whether two names differ only in case, dots and dashes.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    normal(a) == normal(b)
}

/// Whether a model thinks before it answers, judging by its name: OpenAI's models from o1 on,
/// except chat models.
pub(crate) fn thinks(model: &str) -> bool {
    let name = normal(model);
    let family = ["o1", "o3", "o4", "gpt-5", "gpt-6", "gpt-oss"];
    let is_of = |family: &str| {
        name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    family.into_iter().any(is_of) && !name.contains("-chat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_overrides_urls_of_providers_whose_sdks_read_it() {
        let at = |id: &str, value: &str| {
            let environment = |name: &str| {
                let known = ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GROQ_BASE_URL"];
                known.contains(&name).then(|| format!("{value}#{name}"))
            };
            provider(id).unwrap().base_url_of(environment)
        };
        assert_eq!(at("OpenAI", " http://h").as_deref(), Some("http://h#OPENAI_BASE_URL"));
        assert_eq!(at("anthropic", "http://h").as_deref(), Some("http://h#ANTHROPIC_BASE_URL"));
        assert_eq!(at("groq", "http://h"), None);
        assert_eq!(provider("openai").unwrap().base_url_of(|_| Some("  ".to_owned())), None);
    }
}
