//! Overflow errors of real providers.

use serde::{Deserialize, Serialize};

use super::api::Api;
use super::failure::Sizes;

/// The provider whose wording an overflow has. Models behind a compatible API use OpenAI's protocol
/// but have error texts of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[allow(missing_docs)] // the variants are names of providers and servers
pub enum Words {
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Groq,
    Mistral,
    Xai,
    Deepseek,
    Cohere,
    Openrouter,
    Bedrock,
    Copilot,
    Moonshot,
    Minimax,
    Cerebras,
    TogetherTgi,
    LlamaCpp,
    Vllm,
    LmStudio,
    Ollama,
}

/// Provider, status and text. `$prompt`, `$answer`, `$all`, `$window` and `$over` are replaced by
/// numbers.
const TABLE: [(Words, u16, &str); 20] = [
    (
        Words::OpenaiChat,
        400,
        r#"{"error":{"message":"This model's maximum context length is $window tokens. However, your messages resulted in $prompt tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        Words::OpenaiResponses,
        400,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
    ),
    (
        Words::Anthropic,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: $prompt tokens > $window maximum"},"request_id":"req_011CTxFake000000000000000"}"#,
    ),
    (
        Words::Gemini,
        400,
        r#"{"error":{"code":400,"message":"The input token count ($prompt) exceeds the maximum number of tokens allowed ($window).","status":"INVALID_ARGUMENT"}}"#,
    ),
    (
        Words::Groq,
        400,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        Words::Mistral,
        400,
        r#"{"object":"error","message":"Prompt contains $prompt tokens and 0 draft tokens, too large for model with $window maximum context length","type":"invalid_request_error","param":null,"code":"3051"}"#,
    ),
    (
        Words::Xai,
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is $window but the request contains $prompt tokens."}"#,
    ),
    (
        Words::Deepseek,
        400,
        r#"{"error":{"message":"This model's maximum context length is $window tokens. However, you requested $all tokens ($prompt in the messages, $answer in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    (
        Words::Cohere,
        400,
        r#"{"id":"fake","message":"too many tokens: total number of tokens (prompt and prediction) cannot exceed $window - received $all. Try using a shorter prompt or a smaller max_tokens value."}"#,
    ),
    (
        Words::Openrouter,
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is $window tokens. However, you requested about $all tokens ($prompt of text input, $answer in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}"#,
    ),
    (Words::Bedrock, 400, r#"{"message":"Input is too long for requested model."}"#),
    (
        Words::Copilot,
        400,
        r#"{"error":{"message":"prompt token count of $prompt exceeds the limit of $window","code":"model_max_prompt_tokens_exceeded"}}"#,
    ),
    (
        Words::Moonshot,
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: $window (requested: $all)","type":"invalid_request_error"}}"#,
    ),
    (
        Words::Minimax,
        400,
        r#"{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}"#,
    ),
    (
        Words::Cerebras,
        400,
        r#"{"message":"Please reduce the length of the messages or completion. Current length is $all while limit is $window","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}"#,
    ),
    (
        Words::TogetherTgi,
        422,
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= $window. Given: $prompt `inputs` tokens and $answer `max_new_tokens`","error_type":"validation"}"#,
    ),
    (
        Words::LlamaCpp,
        400,
        r#"{"error":{"code":400,"message":"request ($prompt tokens) exceeds the available context size ($window tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":$prompt,"n_ctx":$window}}"#,
    ),
    (
        Words::Vllm,
        400,
        r#"{"object":"error","message":"This model's maximum context length is $window tokens. However, you requested $all tokens ($prompt in the messages, $answer in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
    ),
    (
        Words::LmStudio,
        400,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: $prompt >= n_ctx: $window). Try to load the model with a larger context length, or provide a shorter input"}"#,
    ),
    (
        Words::Ollama,
        400,
        r#"{"error":"prompt too long; exceeded max context length by $over tokens"}"#,
    ),
];

/// The text of OpenAI and Anthropic if the prompt fits, but not together with the requested answer.
const OPENAI_ANSWER: &str = r#"{"error":{"message":"This model's maximum context length is $window tokens. However, you requested $all tokens ($prompt in the messages, $answer in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
const ANTHROPIC_ANSWER: &str = r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: $prompt + $answer > $window, decrease input length or `max_tokens` and try again"},"request_id":"req_011CTxFake000000000000000"}"#;

impl Words {
    /// Returns all providers.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// Returns the default wording of an API.
    #[must_use]
    pub fn of(api: Api) -> Self {
        match api {
            Api::Responses => Self::OpenaiResponses,
            Api::Messages | Api::CountTokens => Self::Anthropic,
            Api::Gemini | Api::GeminiCount => Self::Gemini,
            Api::OllamaChat | Api::OllamaEmbed => Self::Ollama,
            _ => Self::OpenaiChat,
        }
    }

    /// Returns HTTP status and body for a prompt of `prompt` tokens, with `answer` requested
    /// tokens, in a window of `window`.
    #[must_use]
    pub fn overflow(self, prompt: u64, answer: u64, window: u64) -> (u16, String) {
        self.of_sizes(Sizes { prompt, answer, window })
    }

    pub(super) fn of_sizes(self, sizes: Sizes) -> (u16, String) {
        let Sizes { prompt, answer, window } = sizes;
        let row = TABLE.iter().find(|row| row.0 == self);
        let (status, mut body) = row.map_or((400, ""), |row| (row.1, row.2));
        if prompt <= window {
            match self {
                Self::OpenaiChat => body = OPENAI_ANSWER,
                Self::Anthropic => body = ANTHROPIC_ANSWER,
                _ => {}
            }
        }
        let all = prompt.saturating_add(answer);
        let numbers = [
            ("$prompt", prompt),
            ("$answer", answer),
            ("$all", all),
            ("$window", window),
            ("$over", all.saturating_sub(window)),
        ];
        let filled = numbers
            .iter()
            .fold(body.to_owned(), |body, (name, number)| body.replace(name, &number.to_string()));
        (status, filled)
    }
}
