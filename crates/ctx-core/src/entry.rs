//! One entry of a transcript, as a context view uses it.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{Block, CallId, ContentHash, Counter, Message, Result, Role, Timestamp, Tokens};

/// The id of an entry. Formats without ids get ordinals of 8 hex digits.
pub type EntryId = Arc<str>;

/// Loads a message on demand. Transcript readers implement this over a byte range of the file, so
/// that an entry of a session of any size costs a few hundred bytes.
pub trait LoadMessage: Send + Sync {
    /// Reads and parses the message. It must return the same message every time.
    fn load(&self) -> Result<Message>;

    /// Returns the outline and the tokens of the message if that is faster than to load it: the same
    /// ones. `None` to have it loaded.
    fn measure(&self, _counter: &Counter) -> Option<(MessageOutline, Tokens)> {
        None
    }
}

/// What the view needs to know about a message without keeping it in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageOutline {
    /// The role of the message.
    pub role: Role,
    /// The ids of its tool calls.
    pub calls: Box<[CallId]>,
    /// The ids of the calls that its results answer.
    pub results: Box<[CallId]>,
    /// Whether it contains anything besides tool results.
    pub has_content: bool,
    /// Whether it is visible to the model.
    pub in_model_context: bool,
    /// Whether nothing else in the request has its content, so that it is pinned.
    pub is_pinned: bool,
    /// Whether it is an answer that was interrupted or failed.
    pub has_failed: bool,
}

impl MessageOutline {
    /// Outlines a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        Self {
            role: message.role.clone(),
            calls: message.tool_calls().map(|c| c.id.clone()).collect(),
            results: message.tool_results().map(|r| r.call_id.clone()).collect(),
            has_content: message.blocks.iter().any(|b| !matches!(b, Block::ToolResult(_))),
            in_model_context: message.in_model_context(),
            is_pinned: matches!(message.role, Role::System | Role::CompactionSummary)
                || message.meta.pinned,
            has_failed: Self::is_failure(message.meta.stop_reason.as_deref()),
        }
    }

    /// Whether an answer with this stop reason was interrupted or failed.
    #[must_use]
    pub fn is_failure(stop_reason: Option<&str>) -> bool {
        matches!(stop_reason, Some("error" | "aborted"))
    }
}

enum Body {
    InMemory(Arc<Message>),
    Lazy(Box<dyn LoadMessage>),
}

/// Data derived from a message, of any type. See [`Entry::take_derived`].
type Derived = Box<dyn Any + Send + Sync>;

/// An entry: its id, its time, its message (in memory or read on demand), and cached values:
/// outline, content hash, tokens per counter.
pub struct Entry {
    id: EntryId,
    timestamp: Option<Timestamp>,
    body: Body,
    outline: OnceLock<MessageOutline>,
    hash: OnceLock<ContentHash>,
    counts: Mutex<Vec<(Counter, Tokens)>>,
    covered: Vec<Arc<Entry>>,
    derived: Mutex<Option<Derived>>,
}

impl Entry {
    /// Creates an entry whose message is in memory.
    pub fn in_memory(id: impl Into<EntryId>, message: impl Into<Arc<Message>>) -> Self {
        let message = message.into();
        Self::new(id.into(), message.meta.timestamp, Body::InMemory(message))
    }

    /// Creates an entry whose message is read on demand.
    pub fn lazy(
        id: impl Into<EntryId>,
        timestamp: Option<Timestamp>,
        loader: Box<dyn LoadMessage>,
    ) -> Self {
        Self::new(id.into(), timestamp, Body::Lazy(loader))
    }

    /// Sets the content hash of the message, if it is known already. The hash is not verified.
    #[must_use]
    pub fn hashed(self, hash: ContentHash) -> Self {
        Self { hash: OnceLock::from(hash), ..self }
    }

    /// Sets the entries that a summary covers, oldest first. An earlier summary among them
    /// covers its own entries.
    #[must_use]
    pub fn covering(self, covered: Vec<Arc<Entry>>) -> Self {
        Self { covered, ..self }
    }

    /// Returns the entry with its message in memory, for callers that need it many times.
    ///
    /// # Errors
    ///
    /// If the message cannot be read.
    pub fn loaded(&self) -> Result<Self> {
        let body = Body::InMemory(self.message()?);
        let entry = Self::new(self.id.clone(), self.timestamp, body);
        Ok(entry.covering(self.covered.clone()))
    }

    fn new(id: EntryId, timestamp: Option<Timestamp>, body: Body) -> Self {
        Self {
            id,
            timestamp,
            body,
            outline: OnceLock::new(),
            hash: OnceLock::new(),
            counts: Mutex::new(Vec::new()),
            covered: Vec::new(),
            derived: Mutex::new(None),
        }
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// Returns the time at which it was written, if the transcript records it.
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp
    }

    /// Whether the message is in memory, so that access costs nothing.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        matches!(self.body, Body::InMemory(_))
    }

    /// Returns the message. A lazy entry reads it on every call and caches nothing.
    pub fn message(&self) -> Result<Arc<Message>> {
        match &self.body {
            Body::InMemory(message) => Ok(message.clone()),
            Body::Lazy(loader) => loader.load().map(Arc::new),
        }
    }

    /// Returns the outline of the message.
    pub fn outline(&self) -> Result<&MessageOutline> {
        if let Some(outline) = self.outline.get() {
            return Ok(outline);
        }
        let outline = MessageOutline::of(&*self.message()?);
        Ok(self.outline.get_or_init(|| outline))
    }

    /// Returns the outline and tokens of the message. Reads a lazy message at most once.
    pub fn measure(&self, counter: &Counter) -> Result<(&MessageOutline, Tokens)> {
        let known = self.known_count(counter);
        if let (Some(outline), Some(tokens)) = (self.outline.get(), known) {
            return Ok((outline, tokens));
        }
        let (outline, tokens) = match self.measured(counter) {
            Some((outline, tokens)) => (outline, known.unwrap_or(tokens)),
            None => {
                let message = self.message()?;
                let tokens = known.unwrap_or_else(|| counter.message(&message));
                (MessageOutline::of(&message), tokens)
            }
        };
        Ok((self.outline.get_or_init(|| outline), self.remember(counter, tokens)))
    }

    /// Returns the message's tokens, counted with `counter`.
    pub fn tokens(&self, counter: &Counter) -> Result<Tokens> {
        if let Some(tokens) = self.known_count(counter) {
            return Ok(tokens);
        }
        let tokens = match self.measured(counter) {
            Some((_, tokens)) => tokens,
            None => counter.message(&*self.message()?),
        };
        Ok(self.remember(counter, tokens))
    }

    fn measured(&self, counter: &Counter) -> Option<(MessageOutline, Tokens)> {
        match &self.body {
            Body::InMemory(_) => None,
            Body::Lazy(loader) => loader.measure(counter),
        }
    }

    /// Returns the hash of the message's content (role and blocks, without metadata).
    pub fn hash(&self) -> Result<ContentHash> {
        if let Some(hash) = self.hash.get() {
            return Ok(*hash);
        }
        let hash = ContentHash::of(&*self.message()?);
        Ok(*self.hash.get_or_init(|| hash))
    }

    /// Returns the recorded messages that a summary covers, oldest first, without earlier
    /// summaries. Empty if they are unknown.
    #[must_use]
    pub fn originals(&self) -> Vec<Arc<Entry>> {
        let mut out = Vec::new();
        // Earlier summaries are expanded in place, without recursion: a chain of them may be long.
        let mut open: Vec<std::slice::Iter<'_, Arc<Entry>>> = vec![self.covered.iter()];
        while let Some(list) = open.last_mut() {
            match list.next() {
                None => drop(open.pop()),
                Some(entry) if entry.covered.is_empty() => out.push(entry.clone()),
                Some(entry) => open.push(entry.covered.iter()),
            }
        }
        out
    }

    /// Takes data that was derived from this entry and earlier entries, if it has the type `T`.
    #[must_use]
    pub fn take_derived<T: Any>(&self) -> Option<Box<T>> {
        let mut slot = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_type = slot.as_deref().is_some_and(|data| data.is::<T>());
        if is_of_type { slot.take().and_then(|data| data.downcast().ok()) } else { None }
    }

    /// Keeps derived data in memory for as long as the entry lives, in place of earlier data.
    pub fn set_derived(&self, data: Box<dyn Any + Send + Sync>) {
        *self.derived.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
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

crate::partial_debug!(Entry, it, id = it.id, timestamp = it.timestamp);
