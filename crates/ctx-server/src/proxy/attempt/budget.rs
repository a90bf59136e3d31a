//! Computes the budget of a request.

use ctx_core::{Result, Tokens};
use ctx_trace::is_plausible;

use super::{Attempt, lost};
use crate::proxy::conversation::{Conversation, ConversationState};
use crate::proxy::learned_window::RefusedRequest;
use crate::proxy::limits::ModelLimits;
use crate::proxy::prepare::Retry;

impl Attempt<'_> {
    /// Sets the budget of the session for this request.
    pub(super) fn set_budget(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
        retry: Option<Retry>,
    ) -> Result<ModelLimits> {
        let was_taken = conversation.take_recovered();
        let Some(retry) = retry else {
            state.learned.settle(was_taken);
            return self.budget(state).or_else(|error| {
                // The provider's window may have changed: let it decide.
                let learned = std::mem::take(&mut state.learned);
                if learned.window().is_some() { self.budget(state) } else { Err(error) }
            });
        };
        let Some(session) = &state.session else { return Err(lost()) };
        // Without a number from the provider, try a shrinking share of the refused size.
        let share = [0.9, 0.6, 0.4].get(retry.attempt as usize - 1).copied().unwrap_or(0.4);
        let sent = session.ledger.corrected(Tokens::saturating_from(session.sent.estimated));
        let counted = retry.overflow.prompt.filter(|n| is_plausible(*n, sent.get()));
        let limit = retry.overflow.limit.filter(|_| retry.attempt == 1);
        state.learned.refused(RefusedRequest {
            tokens: counted.map_or(sent, Tokens::saturating_from) + self.answer(),
            limit: limit.map(Tokens::saturating_from),
            next: sent.scale(share),
        });
        self.budget(state)
    }

    pub(super) fn budget(&self, state: &mut ConversationState) -> Result<ModelLimits> {
        let Some(session) = &state.session else { return Err(lost()) };
        let (counter, resolved) = (*session.ledger.counter(), &session.resolved);
        let least = resolved.guard.hard_min_tokens;
        let (window, native) = (resolved.window.tokens, resolved.native);
        let tools = self.request.tools.map(|tools| tools.get());
        let system = self.request.system.as_deref();
        let system = state.size_of("system", system, |text| counter.text(text));
        let tools = state.size_of("tools", tools, |text| counter.text(text));
        let answer = self.answer();
        let Some(session) = &mut state.session else { return Err(lost()) };
        let count = self.units.iter().take_while(|unit| unit.is_instruction()).count();
        let items = session.history.items().iter().take(count);
        let instructions = items.filter_map(|item| item.entry.tokens(&counter).ok()).sum();
        let learned = state.learned.window();
        let limits = ModelLimits { window, native, learned, least, answer, instructions };
        // The reserve for an oversized answer is at most a quarter of the window.
        session.set_sizes(limits.engine_window(), answer, system, tools);
        limits.check(&session.ledger)?;
        Ok(limits)
    }

    /// Returns the maximum length of the answer.
    fn answer(&self) -> Tokens {
        Tokens::saturating_from(self.request.max_tokens.unwrap_or_default())
    }
}
