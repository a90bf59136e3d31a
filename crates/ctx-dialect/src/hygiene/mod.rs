//! What providers accept: a conversation changed on its way out, never on disk.
//!
//! A transcript holds what many models and tools left there. Each provider refuses some of it: ids
//! in another's alphabet, thoughts that another signed, calls that nobody answered, pictures in a
//! form it does not know, an answer that stands first. [`clean()`] gives a conversation that the
//! writers of this crate turn into a request that is taken.
//!
//! It depends on the messages and the [`Rules`] alone, so that the same conversation is always
//! written as the same bytes, and the beginning of a longer one as it was when it was all: the
//! provider's cache lives on that. Where rules make neighbours one message, the beginning ends at
//! the last message that nothing was added to. [`Thoughts::NamedThisTurn`] is the exception: what a
//! provider refuses once the user has spoken must go then.

mod blocks;
mod ids;
mod pairs;
mod rules;
mod turns;

use std::borrow::Cow;

use ctx_core::{Message, Role};

use crate::shape::parts;

pub use ids::Ids;
pub use rules::{Rules, Thoughts};

/// The conversation as the provider accepts it, oldest first. What needs no change is borrowed.
///
/// ```
/// use ctx_core::{Message, Role};
/// use ctx_dialect::hygiene::{Rules, clean};
///
/// let said = [Message::text(Role::Assistant, "Hello."), Message::text(Role::User, " ")];
/// let rules = Rules::of("anthropic-messages", "anthropic", "claude-sonnet-4-5");
/// let roles: Vec<_> = clean(&said, &rules).into_iter().map(|m| m.role.clone()).collect();
/// // The user begins, what is empty goes, and the model is not the last to speak.
/// assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
/// ```
#[must_use]
pub fn clean<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    rules: &Rules,
) -> Vec<Cow<'m, Message>> {
    let parts: Vec<_> = messages.into_iter().flat_map(parts).collect();
    let paired = pairs::pair(parts, ids::Names::new(rules.ids));
    let last_user = paired.iter().rposition(|message| message.role == Role::User);
    let clean = paired.into_iter().enumerate().map(|(at, message)| {
        let in_turn = last_user.is_none_or(|last| at > last);
        blocks::clean(message, rules, in_turn)
    });
    turns::order(clean, rules)
}
