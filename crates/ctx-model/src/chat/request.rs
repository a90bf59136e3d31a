//! One request, independent of the API it is sent with.

use std::borrow::Cow;
use std::sync::Arc;

use ctx_core::{Message, Role, ToolSpec};
use ctx_dialect::hygiene::{self, CallIdFormat, Rules, Thoughts};

use super::quirks::Quirks;
use super::{anthropic, completions, responses};
use crate::Api;

/// Default `max_tokens` for APIs that require one. The default reserve of a context window leaves
/// enough space for it.
const USUAL_ANSWER: u32 = 16_384;

/// The longest cache key that OpenAI accepts.
const LONGEST_CACHE_KEY: CallIdFormat = CallIdFormat::Printable { most: 64 };

/// A request. A summary request is one message plus its instructions.
#[derive(Clone, Copy)]
pub(super) struct ModelRequest<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) api: Api,
    pub(super) system: Option<&'a str>,
    pub(super) messages: &'a [Arc<Message>],
    pub(super) tools: &'a [ToolSpec],
    pub(super) max_tokens: Option<u32>,
    /// The upper limit of `max_tokens` for every request.
    pub(super) most_tokens: u32,
    pub(super) session_id: Option<&'a str>,
    /// Whether the model thinks before it answers.
    pub(super) reasoning: bool,
    /// The requested thinking level, if set.
    pub(super) thinking: Option<&'a str>,
    /// Whether later requests will share this prefix.
    pub(super) is_conversation: bool,
    pub(super) is_openai: bool,
    /// Whether a cache key may be sent; also true for unknown servers.
    pub(super) takes_cache_key: bool,
    pub(super) quirks: Quirks,
}

impl<'a> ModelRequest<'a> {
    /// Writes the body of the request.
    pub(super) fn body(&self) -> String {
        match self.api {
            Api::OpenAiCompletions => completions::body(self),
            Api::OpenAiResponses => responses::body(self),
            Api::AnthropicMessages => anthropic::body(self),
        }
    }

    /// Returns the messages, with the system prompt first.
    pub(super) fn with_system(&self) -> Cow<'a, [Arc<Message>]> {
        match self.system {
            None => Cow::Borrowed(self.messages),
            Some(system) => {
                let system = Arc::new(Message::text(Role::System, system));
                Cow::Owned([&[system], self.messages].concat())
            }
        }
    }

    /// Returns the messages, cleaned for this server.
    pub(super) fn clean<'m>(&self, messages: &'m [Arc<Message>]) -> Vec<Cow<'m, Message>> {
        hygiene::clean(messages.iter().map(AsRef::as_ref), &self.rules())
    }

    fn rules(&self) -> Rules {
        let mut rules = Rules::of(self.api.name(), self.provider, self.model);
        if self.quirks.has(Quirks::NO_THOUGHTS) {
            rules.thoughts = Thoughts::None;
        }
        if self.quirks.has(Quirks::IN_TURN) {
            rules = rules.in_turn();
        }
        if self.quirks.has(Quirks::NO_IMAGES) {
            rules.images = false;
        }
        rules
    }

    /// Returns the tools as `write` writes them, if there are any.
    pub(super) fn tools(&self, write: impl FnOnce(&[ToolSpec]) -> String) -> Option<String> {
        (!self.tools.is_empty()).then(|| write(self.tools))
    }

    /// Returns `max_tokens`, or the default for APIs that require it.
    pub(super) fn max_tokens_or_usual(&self) -> u32 {
        self.max_tokens.unwrap_or(USUAL_ANSWER.min(self.most_tokens))
    }

    /// Returns the thinking level; low for a summary.
    pub(super) fn effort(&self) -> Option<&'a str> {
        let little = (self.reasoning && !self.is_conversation).then_some("low");
        self.thinking.or(little).filter(|_| !self.quirks.has(Quirks::NO_EFFORT))
    }

    /// Returns the key under which the provider caches the conversation.
    pub(super) fn cache_key(&self) -> Option<Cow<'a, str>> {
        let takes = self.takes_cache_key && !self.quirks.has(Quirks::NO_CACHE_KEY);
        let session = self.session_id.filter(|session| takes && !session.is_empty())?;
        Some(LONGEST_CACHE_KEY.fit(session))
    }
}
