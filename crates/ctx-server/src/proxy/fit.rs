//! What a request may measure.

use ctx_core::{Result, Tokens};

use super::conversation::{Conversation, Work};
use super::ending::is_plausible;
use super::learned::Refused;
use super::prepare::Smaller;
use super::room::Room;
use super::sitting::{Sitting, lost};

impl Sitting<'_> {
    /// Gives the session its budget for this request.
    pub(super) fn fit(
        &self,
        conversation: &Conversation,
        work: &mut Work,
        smaller: Option<Smaller>,
    ) -> Result<Room> {
        let was_taken = conversation.take_recovered();
        let Some(smaller) = smaller else {
            work.learned.settle(was_taken);
            return self.budget(work).or_else(|error| {
                // The provider has the last word: its window may not be what it said before.
                let learned = std::mem::take(&mut work.learned);
                if learned.window().is_some() { self.budget(work) } else { Err(error) }
            });
        };
        let Some(session) = &work.session else { return Err(lost()) };
        // Without a number of the provider's it is less than what it refused: ever less.
        let share = [0.9, 0.6, 0.4].get(smaller.attempt as usize - 1).copied().unwrap_or(0.4);
        let sent = session.ledger.corrected(Tokens::saturating_from(session.sent.estimated));
        let counted = smaller.overflow.prompt.filter(|n| is_plausible(*n, sent.get()));
        let limit = smaller.overflow.limit.filter(|_| smaller.attempt == 1);
        work.learned.refused(Refused {
            tokens: counted.map_or(sent, Tokens::saturating_from) + self.answer(),
            limit: limit.map(Tokens::saturating_from),
            next: sent.scale(share),
        });
        self.budget(work)
    }

    pub(super) fn budget(&self, work: &mut Work) -> Result<Room> {
        let Some(session) = &work.session else { return Err(lost()) };
        let (counter, resolved) = (*session.ledger.counter(), &session.resolved);
        let least = resolved.guard.hard_min_tokens;
        let (window, native) = (resolved.window.tokens, resolved.native);
        let tools = self.request.tools.map(|tools| tools.get());
        let system = self.request.system.as_deref();
        let system = work.size_of("system", system, |text| counter.text(text));
        let tools = work.size_of("tools", tools, |text| counter.text(text));
        let answer = self.answer();
        let Some(session) = &mut work.session else { return Err(lost()) };
        let told = self.told.iter().take_while(|told| told.is_instruction()).count();
        let told = session.history.items().iter().take(told);
        let instructions = told.filter_map(|item| item.entry.tokens(&counter).ok()).sum();
        let learned = work.learned.window();
        let room = Room { window, native, learned, least, answer, instructions };
        // An answer that asks for more than there is leaves no more than a quarter free.
        session.fit(room.told(), answer, system, tools);
        room.check(&session.ledger)?;
        Ok(room)
    }

    /// The most that the answer may hold.
    fn answer(&self) -> Tokens {
        Tokens::saturating_from(self.request.max_tokens.unwrap_or_default())
    }
}
