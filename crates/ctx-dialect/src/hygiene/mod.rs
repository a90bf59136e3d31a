//! Adapts a conversation to what a provider accepts. Only the request changes, not the transcript.
//!
//! A transcript mixes the output of many models and tools, and every provider refuses some of it:
//! ids in another alphabet, reasoning signed by another provider, calls without results,
//! unsupported image formats, a leading answer. [`clean()`] returns a conversation that this
//! crate's writers turn into an accepted request.
//!
//! The result depends only on the messages and the [`Rules`]. The same conversation always gives
//! the same bytes, and these bytes stay the same as the conversation grows; the provider's cache
//! depends on that. If the rules merge adjacent messages, the last message may still grow.
//! [`Thoughts::NamedThisTurn`] is an exception: reasoning that a provider refuses after the next
//! user message must be dropped then.

mod blocks;
mod ids;
mod pairs;
mod rules;
mod turns;

use std::borrow::Cow;

use ctx_core::{Message, Role};

use crate::shape::parts;

pub use ids::CallIdFormat;
pub use rules::{Rules, Thoughts};

/// Returns the conversation as the provider accepts it, oldest first. Unchanged messages are
/// borrowed.
///
/// ```
/// use ctx_core::{Message, Role};
/// use ctx_dialect::hygiene::{Rules, clean};
///
/// let messages = [Message::text(Role::Assistant, "Hello."), Message::text(Role::User, " ")];
/// let rules = Rules::of("anthropic-messages", "anthropic", "claude-sonnet-4-5");
/// let roles: Vec<_> = clean(&messages, &rules).into_iter().map(|m| m.role.clone()).collect();
/// // A user message comes first, empty messages are dropped, and the last message is not the
/// // model's.
/// assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
/// ```
#[must_use]
pub fn clean<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    rules: &Rules,
) -> Vec<Cow<'m, Message>> {
    let parts: Vec<_> = messages.into_iter().flat_map(parts).collect();
    let paired = pairs::pair(parts, ids::CallIdMap::new(rules.ids));
    let last_user = paired.iter().rposition(|message| message.role == Role::User);
    let clean = paired.into_iter().enumerate().map(|(at, message)| {
        let in_turn = last_user.is_none_or(|last| at > last);
        blocks::clean(message, rules, in_turn)
    });
    turns::order(clean, rules)
}
