//! Built-in providers and model facts.

use crate::Api;
use crate::name::normal;

/// A built-in provider.
#[derive(Debug)]
pub(crate) struct KnownProvider {
    pub(crate) id: &'static str,
    pub(crate) base_url: &'static str,
    pub(crate) api: Api,
    /// The environment variable of its key; `None` if it needs none.
    pub(crate) key: Option<&'static str>,
}

const fn known(
    id: &'static str,
    base_url: &'static str,
    api: Api,
    key: Option<&'static str>,
) -> KnownProvider {
    KnownProvider { id, base_url, api, key }
}

/// Makers of the catalogue's models under their catalogue ids, providers that serve models of
/// others, and local servers at their default ports.
pub(crate) const PROVIDERS: [KnownProvider; 15] = {
    use Api::{AnthropicMessages, OpenAiCompletions, OpenAiResponses};
    [
        known("openai", "https://api.openai.com/v1", OpenAiResponses, Some("OPENAI_API_KEY")),
        known(
            "anthropic",
            "https://api.anthropic.com",
            AnthropicMessages,
            Some("ANTHROPIC_API_KEY"),
        ),
        known(
            "openrouter",
            "https://openrouter.ai/api/v1",
            OpenAiCompletions,
            Some("OPENROUTER_API_KEY"),
        ),
        known("ollama", "http://127.0.0.1:11434", OpenAiCompletions, None),
        known(
            "google",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            OpenAiCompletions,
            Some("GEMINI_API_KEY"),
        ),
        known("mistral", "https://api.mistral.ai/v1", OpenAiCompletions, Some("MISTRAL_API_KEY")),
        known(
            "deepseek",
            "https://api.deepseek.com/v1",
            OpenAiCompletions,
            Some("DEEPSEEK_API_KEY"),
        ),
        known("xai", "https://api.x.ai/v1", OpenAiCompletions, Some("XAI_API_KEY")),
        known(
            "moonshot",
            "https://api.moonshot.ai/v1",
            OpenAiCompletions,
            Some("MOONSHOT_API_KEY"),
        ),
        known("zai", "https://api.z.ai/api/paas/v4", OpenAiCompletions, Some("ZAI_API_KEY")),
        known(
            "qwen",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            OpenAiCompletions,
            Some("DASHSCOPE_API_KEY"),
        ),
        known("groq", "https://api.groq.com/openai/v1", OpenAiCompletions, Some("GROQ_API_KEY")),
        known("lmstudio", "http://127.0.0.1:1234/v1", OpenAiCompletions, None),
        known("vllm", "http://127.0.0.1:8000/v1", OpenAiCompletions, None),
        known("llamacpp", "http://127.0.0.1:8080/v1", OpenAiCompletions, None),
    ]
};

/// Returns the built-in provider with this id.
pub(crate) fn provider(id: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|known| known.id.eq_ignore_ascii_case(id))
}

impl KnownProvider {
    /// Returns the environment variable that overrides the provider's URL, as read by its own SDKs.
    pub(crate) fn base_url_variable(&self) -> Option<&'static str> {
        match self.id {
            "openai" => Some("OPENAI_BASE_URL"),
            "anthropic" => Some("ANTHROPIC_BASE_URL"),
            _ => None,
        }
    }

    /// Returns the provider's URL from the environment, if set.
    pub(crate) fn base_url_of(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let url = environment(self.base_url_variable()?)?;
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
    fn the_environment_moves_the_providers_whose_sdks_read_it() {
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
