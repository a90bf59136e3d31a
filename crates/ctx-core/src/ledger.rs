//! One answer to every question about size.

use crate::{Counter, Error, ErrorKind, Message, Result, Tokens};

/// The reserve is at most this share of the window, whatever the config says.
pub const RESERVE_MAX_SHARE: f64 = 0.25;

/// What is kept verbatim by a compaction is at most this share of the budget.
pub const KEEP_RECENT_MAX_SHARE: f64 = 0.40;

/// System prompt and tool schemas must leave this much for messages, or the request is refused.
pub const MIN_MESSAGE_TOKENS: Tokens = Tokens(256);

/// How far the counter is off, learned from what the provider reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    factor: f64,
}

impl Calibration {
    /// No correction.
    pub const NONE: Self = Self { factor: 1.0 };

    /// The correction that turns `estimated` into `reported`, between 1/4 and 4. Where either is
    /// zero there is nothing to learn.
    #[must_use]
    pub fn from_usage(reported: u64, estimated: u64) -> Self {
        if reported == 0 || estimated == 0 {
            return Self::NONE;
        }
        Self::by(reported as f64 / estimated as f64)
    }

    /// A correction by `factor`, between 1/4 and 4.
    #[must_use]
    pub fn by(factor: f64) -> Self {
        Self { factor: if factor.is_finite() { factor.clamp(0.25, 4.0) } else { 1.0 } }
    }

    /// Reported tokens per estimated token.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }
}

/// Window, reserve, fixed parts, counter and calibration of one session.
#[derive(Clone, Debug)]
pub struct TokenLedger {
    counter: Counter,
    window: Tokens,
    reserve: Tokens,
    system: Tokens,
    addition: Tokens,
    tools: Tokens,
    pending: Tokens,
    calibration: Calibration,
}

impl TokenLedger {
    /// A ledger for a model window of `window` tokens with `reserve` of them kept free for the
    /// answer. The reserve is capped at a quarter of the window.
    #[must_use]
    pub fn new(counter: Counter, window: Tokens, reserve: Tokens) -> Self {
        let reserve = reserve.min(window.scale(RESERVE_MAX_SHARE));
        Self {
            counter,
            window,
            reserve,
            system: Tokens::ZERO,
            addition: Tokens::ZERO,
            tools: Tokens::ZERO,
            pending: Tokens::ZERO,
            calibration: Calibration::NONE,
        }
    }

    /// Sets the size of the system prompt.
    #[must_use]
    pub fn with_system(mut self, system: Tokens) -> Self {
        self.system = system;
        self
    }

    /// Sets the size of the tool schemas.
    #[must_use]
    pub fn with_tools(mut self, tools: Tokens) -> Self {
        self.tools = tools;
        self
    }

    /// Has a whole request measure at most `limit`, where it may measure more: what is kept free is a
    /// quarter of the window at most then too.
    #[must_use]
    pub fn with_limit(mut self, limit: Tokens) -> Self {
        if limit < self.limit() {
            self.reserve =
                self.reserve.min(limit.scale(RESERVE_MAX_SHARE / (1.0 - RESERVE_MAX_SHARE)));
            self.window = limit + self.reserve;
        }
        self
    }

    /// Sets the correction of all counts.
    #[must_use]
    pub fn with_calibration(mut self, calibration: Calibration) -> Self {
        self.calibration = calibration;
        self
    }

    /// Sets the size of what an engine adds to the system prompt.
    pub(crate) fn set_addition(&mut self, addition: Tokens) {
        self.addition = addition;
    }

    /// Sets the size of input that will be added after the view is finished.
    pub fn set_pending(&mut self, pending: Tokens) {
        self.pending = pending;
    }

    /// Corrects all counts of messages by what the provider reported for a prompt that was
    /// estimated at `estimated` tokens.
    pub fn calibrate(&mut self, reported: u64, estimated: u64) {
        self.calibration = Calibration::from_usage(reported, estimated);
    }

    /// The counter.
    #[must_use]
    pub fn counter(&self) -> &Counter {
        &self.counter
    }

    /// The model's window.
    #[must_use]
    pub fn window(&self) -> Tokens {
        self.window
    }

    /// What is kept free for the answer.
    #[must_use]
    pub fn reserve(&self) -> Tokens {
        self.reserve
    }

    /// The system prompt, with what an engine adds to it.
    #[must_use]
    pub fn system(&self) -> Tokens {
        self.system + self.addition
    }

    /// The tool schemas.
    #[must_use]
    pub fn tools(&self) -> Tokens {
        self.tools
    }

    /// Input that will be added after the view is finished.
    #[must_use]
    pub fn pending(&self) -> Tokens {
        self.pending
    }

    /// The correction in force.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.calibration
    }

    /// What a whole request may measure: window minus reserve.
    #[must_use]
    pub fn limit(&self) -> Tokens {
        self.window - self.reserve
    }

    /// What is in every request whatever its messages: system prompt, tool schemas, pending input.
    #[must_use]
    pub fn fixed(&self) -> Tokens {
        self.system() + self.tools + self.pending
    }

    /// What the messages may measure, in counted (uncorrected) tokens.
    #[must_use]
    pub fn budget(&self) -> Tokens {
        // Rounded up, so that the parts never make more than the limit together.
        let fixed = Tokens((f64::from(self.fixed().0) * self.calibration.factor).ceil() as u32);
        Tokens((f64::from((self.limit() - fixed).0) / self.calibration.factor) as u32)
    }

    /// A counted size, corrected by the calibration.
    #[must_use]
    pub fn corrected(&self, counted: Tokens) -> Tokens {
        if self.calibration == Calibration::NONE {
            counted
        } else {
            counted.scale(self.calibration.factor)
        }
    }

    /// How much of the recent history may stay verbatim when `wanted` is asked for.
    #[must_use]
    pub fn keep_recent(&self, wanted: Tokens) -> Tokens {
        wanted.min(self.budget().scale(KEEP_RECENT_MAX_SHARE))
    }

    /// Tokens of a message, uncorrected.
    #[must_use]
    pub fn count(&self, message: &Message) -> Tokens {
        self.counter.message(message)
    }

    /// Refuses a system prompt or pending input that leaves no room for messages.
    pub fn check(&self) -> Result<()> {
        let leaves_room = |fixed| self.corrected(fixed) + MIN_MESSAGE_TOKENS <= self.limit();
        let error = if !leaves_room(self.system() + self.tools) {
            Error::new(
                ErrorKind::SystemPromptTooLarge,
                "system prompt and tool schemas leave no room for messages",
            )
            .hint("shorten the system prompt, offer fewer tools, or take a model with a larger window")
        } else if !leaves_room(self.fixed()) {
            Error::new(ErrorKind::InvalidInput, "the pending input leaves no room for messages")
                .hint("append the input as a message, which can be trimmed, or shorten it")
        } else {
            return Ok(());
        };
        Err(error
            .with("system", self.system())
            .with("tools", self.tools)
            .with("pending", self.pending)
            .with("window", self.window)
            .with("reserve", self.reserve)
            .with("needed", MIN_MESSAGE_TOKENS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(window: u32, reserve: u32) -> TokenLedger {
        TokenLedger::new(Counter::default(), Tokens(window), Tokens(reserve))
    }

    #[test]
    fn reserve_is_at_most_a_quarter_and_keep_recent_two_fifths() {
        assert_eq!(ledger(200_000, 20_000).reserve(), Tokens(20_000));
        assert_eq!(ledger(32_000, 20_000).reserve(), Tokens(8_000));
        assert_eq!(ledger(32_000, 20_000).keep_recent(Tokens(20_000)), Tokens(9_600));
    }

    #[test]
    fn calibration_shrinks_the_budget() {
        let mut ledger = ledger(100_000, 20_000).with_system(Tokens(1_000));
        assert_eq!(ledger.budget(), Tokens(79_000));
        ledger.calibrate(130_000, 100_000);
        assert_eq!(ledger.corrected(Tokens(1_000)), Tokens(1_300));
        assert_eq!(ledger.budget(), Tokens(60_538));
    }

    #[test]
    fn a_system_prompt_without_room_is_refused() {
        assert!(ledger(16_000, 4_000).with_system(Tokens(11_000)).check().is_ok());
        let error = ledger(16_000, 4_000).with_system(Tokens(12_000)).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SystemPromptTooLarge);
    }
}
