//! Random transcripts for property tests.

mod blocks;
mod turn;
mod words;

use std::sync::Arc;

use ctx_core::{CallSpelling, ContextView, Entry, Message, Result, Timestamp, TokenLedger, Tokens};

use self::blocks::SPELLINGS;
use self::turn::Draft;
use crate::Random;

/// Bytes per token, in the sizes of transcripts here.
const BYTES_PER_TOKEN: usize = 4;
/// The time of the first message: 2026-01-05T08:00:00Z.
const START: i64 = 1_767_600_000_000;

/// A transcript generated from a seed: the same seed and settings give the same messages on every
/// machine.
///
/// It resembles real and damaged sessions of agents: questions with standing instructions, rounds
/// of tool calls, parallel calls, results that are huge, late, missing or duplicated, long
/// monologues, thinking, images, commands run by the user, injected messages, earlier summaries,
/// repeated call ids, text in many scripts, and text that imitates markup or instructions. It may
/// end anywhere, also in the middle of a tool call.
///
/// Without [`tokens`](Self::tokens), six of ten are under 2,000 tokens, and one in fifty has up to
/// 200,000.
///
/// ```
/// use ctx_core::{Counter, CounterKind, TokenLedger, Tokens};
/// use ctx_testkit::RandomTranscript;
///
/// let transcript = RandomTranscript::seeded(7).tokens(Tokens(20_000)).generate();
/// assert!(transcript.messages.len() > 1);
/// let counter = Counter::new(CounterKind::Chars4);
/// let ledger = TokenLedger::new(counter, Tokens(16_000), Tokens(2_000));
/// let mut view = transcript.view(ledger)?;
/// assert!(view.finish()?.tokens <= Tokens(14_000));
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct RandomTranscript {
    seed: u64,
    tokens: Option<Tokens>,
    well_formed: bool,
}

/// A generated transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transcript {
    /// The messages, oldest first; at least one.
    pub messages: Vec<Message>,
    /// Indices of the messages to pin, ascending. Often none.
    pub pinned: Vec<usize>,
}

/// The properties of a whole transcript.
#[derive(Clone, Copy, Debug)]
struct Habits {
    spelling: CallSpelling,
    /// Results are in user messages, as with Anthropic.
    results_by_user: bool,
    thinks: bool,
    reports_usage: bool,
    ids_come_again: bool,
    damaged: bool,
}

impl RandomTranscript {
    /// Creates a generator with that seed.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, tokens: None, well_formed: false }
    }

    /// Sets the approximate size: text ends soon after it; images and the last turn are added on
    /// top.
    pub fn tokens(self, tokens: Tokens) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Generates no damage: each call before the last message has its result, once and before any
    /// other message, and no id is used twice.
    pub fn well_formed(self) -> Self {
        Self { well_formed: true, ..self }
    }

    /// Generates the transcript.
    pub fn generate(&self) -> Transcript {
        let mut random = Random::seeded(self.seed);
        let drawn = match random.weighted(&[60, 28, 10, 2]) {
            0 => random.within(20..=2_000),
            1 => random.within(2_000..=20_000),
            2 => random.within(20_000..=60_000),
            _ => random.within(60_000..=200_000),
        };
        let tokens = self.tokens.map_or(drawn, |tokens| tokens.0 as usize);
        let habits = Habits {
            spelling: random.pick(&SPELLINGS),
            results_by_user: random.once_in(3),
            thinks: random.once_in(2),
            reports_usage: random.once_in(2),
            ids_come_again: random.once_in(6) && !self.well_formed,
            damaged: random.once_in(2) && !self.well_formed,
        };
        let mut draft = Draft::new(random, habits, tokens.saturating_mul(BYTES_PER_TOKEN));
        if !draft.random.once_in(3) {
            draft.system();
        }
        if draft.random.once_in(5) {
            draft.summary();
        }
        while draft.left > 0 {
            draft.turn();
        }
        draft.last();
        let Draft { mut random, mut messages, .. } = draft;
        let timed = !random.once_in(5);
        let mut now = START;
        for message in &mut messages {
            now += random.within(200..=90_000) as i64;
            message.meta.timestamp = timed.then_some(Timestamp(now));
        }
        let mut pinned = Vec::new();
        if random.once_in(4) {
            let last = messages.len().saturating_sub(1);
            pinned.extend((0..random.within(1..=3)).map(|_| random.within(0..=last)));
            pinned.sort_unstable();
            pinned.dedup();
        }
        Transcript { messages, pinned }
    }
}

impl Transcript {
    /// Returns the messages as entries whose ids are ordinals.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        crate::entries(self.messages.clone())
    }

    /// Returns a view of all messages, with its pins.
    ///
    /// # Errors
    ///
    /// Errors of appending to a view. Messages in memory cause none.
    pub fn view(&self, ledger: TokenLedger) -> Result<ContextView> {
        let mut view = ContextView::new(ledger);
        let entries = self.entries();
        for entry in &entries {
            view.append(Arc::clone(entry))?;
        }
        // A view omits excluded messages: positions are found by id.
        let pinned = self.pinned.iter().filter_map(|at| entries.get(*at)).map(|entry| entry.id());
        for id in pinned {
            if let Some(at) = view.nodes().iter().position(|node| node.entry().id() == id) {
                view.pin(at, "testkit", "chosen by the seed");
            }
        }
        Ok(view)
    }
}

#[cfg(test)]
mod tests;
