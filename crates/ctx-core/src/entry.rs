//! One entry of a transcript, as the context view holds it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{Block, CallId, ContentHash, Counter, Message, Result, Role, Timestamp, Tokens};

/// The id of an entry. Formats without ids get ordinals of 8 hex digits.
pub type EntryId = Arc<str>;

/// Brings a message into memory when somebody needs it. Transcript readers implement this over a
/// span of the file, so that a session of any size costs a few hundred bytes an entry.
pub trait LoadMessage: Send + Sync {
    /// Reads and parses the message. It must give the same message every time.
    fn load(&self) -> Result<Message>;
}

/// What the view needs to know of a message without holding it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Who speaks.
    pub role: Role,
    /// Ids of the tool calls it makes.
    pub calls: Box<[CallId]>,
    /// Ids of the calls it answers.
    pub results: Box<[CallId]>,
    /// Whether it holds something besides tool results.
    pub has_content: bool,
    /// Whether the model sees it at all.
    pub in_model_context: bool,
}

impl Facts {
    /// The facts of a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        Self {
            role: message.role.clone(),
            calls: message.tool_calls().map(|c| c.id.clone()).collect(),
            results: message.tool_results().map(|r| r.call_id.clone()).collect(),
            has_content: message.blocks.iter().any(|b| !matches!(b, Block::ToolResult(_))),
            in_model_context: message.in_model_context(),
        }
    }
}

enum Body {
    Held(Arc<Message>),
    Lazy(Box<dyn LoadMessage>),
}

/// An entry: its id, its time, its message (held or read on demand), and what was computed of it
/// once: facts, content hash, tokens per counter.
pub struct Entry {
    id: EntryId,
    timestamp: Option<Timestamp>,
    body: Body,
    facts: OnceLock<Facts>,
    hash: OnceLock<ContentHash>,
    counts: Mutex<Vec<(Counter, Tokens)>>,
}

impl Entry {
    /// An entry whose message is in memory.
    pub fn held(id: impl Into<EntryId>, message: impl Into<Arc<Message>>) -> Self {
        let message = message.into();
        Self::new(id.into(), message.meta.timestamp, Body::Held(message))
    }

    /// An entry whose message is read on demand.
    pub fn lazy(
        id: impl Into<EntryId>,
        timestamp: Option<Timestamp>,
        loader: Box<dyn LoadMessage>,
    ) -> Self {
        Self::new(id.into(), timestamp, Body::Lazy(loader))
    }

    /// The same, where the hash of the message's content is known already. It is taken at its word.
    #[must_use]
    pub fn hashed(self, hash: ContentHash) -> Self {
        Self { hash: OnceLock::from(hash), ..self }
    }

    fn new(id: EntryId, timestamp: Option<Timestamp>, body: Body) -> Self {
        Self {
            id,
            timestamp,
            body,
            facts: OnceLock::new(),
            hash: OnceLock::new(),
            counts: Mutex::new(Vec::new()),
        }
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// When it was written, where the transcript says so.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// Whether the message is in memory, and so free to look at.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.body, Body::Held(_))
    }

    /// The message. A lazy entry reads it anew each time and keeps nothing.
    pub fn message(&self) -> Result<Arc<Message>> {
        match &self.body {
            Body::Held(message) => Ok(message.clone()),
            Body::Lazy(loader) => loader.load().map(Arc::new),
        }
    }

    /// The message's facts.
    pub fn facts(&self) -> Result<&Facts> {
        if let Some(facts) = self.facts.get() {
            return Ok(facts);
        }
        let facts = Facts::of(&*self.message()?);
        Ok(self.facts.get_or_init(|| facts))
    }

    /// The message's facts and tokens, reading a lazy message at most once for both.
    pub fn measure(&self, counter: &Counter) -> Result<(&Facts, Tokens)> {
        let known = self.known_count(counter);
        if let (Some(facts), Some(tokens)) = (self.facts.get(), known) {
            return Ok((facts, tokens));
        }
        let message = self.message()?;
        let tokens = known.unwrap_or_else(|| self.remember(counter, counter.message(&message)));
        Ok((self.facts.get_or_init(|| Facts::of(&message)), tokens))
    }

    /// The message's tokens by `counter`.
    pub fn tokens(&self, counter: &Counter) -> Result<Tokens> {
        match self.known_count(counter) {
            Some(tokens) => Ok(tokens),
            None => Ok(self.remember(counter, counter.message(&*self.message()?))),
        }
    }

    /// The hash of the message's content (role and blocks, not its metadata).
    pub fn hash(&self) -> Result<ContentHash> {
        if let Some(hash) = self.hash.get() {
            return Ok(*hash);
        }
        let hash = ContentHash::of(&*self.message()?);
        Ok(*self.hash.get_or_init(|| hash))
    }

    fn known_count(&self, counter: &Counter) -> Option<Tokens> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().find(|(c, _)| c == counter).map(|&(_, tokens)| tokens)
    }

    fn remember(&self, counter: &Counter, tokens: Tokens) -> Tokens {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if !counts.iter().any(|(c, _)| c == counter) {
            counts.push((*counter, tokens));
        }
        tokens
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).field("timestamp", &self.timestamp).finish()
    }
}
