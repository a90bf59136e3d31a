//! One request, before an API has put it into its own words.

use std::borrow::Cow;
use std::sync::Arc;

use ctx_core::{Message, Role, ToolSpec};
use ctx_dialect::hygiene::{self, Ids, Rules, Thoughts};

use super::quirks::Quirks;
use super::{anthropic, completions, responses};
use crate::Api;

/// The longest answer asked for where nobody says how long, of an API that wants to be told. It is
/// what the usual reserve of a window leaves room for.
const USUAL_ANSWER: u32 = 16_384;

/// The longest name of a cache that OpenAI takes.
const LONGEST_CACHE_KEY: Ids = Ids::Printable { most: 64 };

/// A request: a summary is one message and what to do with it.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) api: Api,
    pub(super) system: Option<&'a str>,
    pub(super) messages: &'a [Arc<Message>],
    pub(super) tools: &'a [ToolSpec],
    pub(super) max_tokens: Option<u32>,
    /// What an answer may be at most, whoever asks.
    pub(super) most_tokens: u32,
    pub(super) session_id: Option<&'a str>,
    /// Whether the model thinks before it answers.
    pub(super) reasoning: bool,
    /// How much it is to think, where somebody says so.
    pub(super) thinking: Option<&'a str>,
    /// Whether more will be asked that begins with the same.
    pub(super) is_conversation: bool,
    pub(super) is_openai: bool,
    /// Whether a server that nobody knows may be told a name for its cache.
    pub(super) takes_cache_key: bool,
    pub(super) quirks: Quirks,
}

impl<'a> Asking<'a> {
    /// The body of the request.
    pub(super) fn body(&self) -> String {
        match self.api {
            Api::OpenAiCompletions => completions::body(self),
            Api::OpenAiResponses => responses::body(self),
            Api::AnthropicMessages => anthropic::body(self),
        }
    }

    /// The messages, the system prompt as the first of them.
    pub(super) fn with_system(&self) -> Cow<'a, [Arc<Message>]> {
        match self.system {
            None => Cow::Borrowed(self.messages),
            Some(system) => {
                let system = Arc::new(Message::text(Role::System, system));
                Cow::Owned([&[system], self.messages].concat())
            }
        }
    }

    /// Messages as this server takes them.
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

    /// The limit of the answer for an API that must be told one.
    pub(super) fn max_tokens_or_usual(&self) -> u32 {
        self.max_tokens.unwrap_or(USUAL_ANSWER.min(self.most_tokens))
    }

    /// How much the model is to think: for a summary little.
    pub(super) fn effort(&self) -> Option<&'a str> {
        let little = (self.reasoning && !self.is_conversation).then_some("low");
        self.thinking.or(little).filter(|_| !self.quirks.has(Quirks::NO_EFFORT))
    }

    /// What the provider is to keep the conversation's cache under.
    pub(super) fn cache_key(&self) -> Option<Cow<'a, str>> {
        let takes = self.takes_cache_key && !self.quirks.has(Quirks::NO_CACHE_KEY);
        let session = self.session_id.filter(|session| takes && !session.is_empty())?;
        Some(LONGEST_CACHE_KEY.fit(session))
    }
}
