//! The token budget of a session.

use crate::{Counter, Error, ErrorKind, Message, Result, Tokens};

/// The maximum share of the window that the reserve may take, even if the config allows more.
pub const RESERVE_MAX_SHARE: f64 = 0.25;

/// The maximum share of the budget that a compaction keeps verbatim.
pub const KEEP_RECENT_MAX_SHARE: f64 = 0.40;

/// The number of tokens that system prompt and tool schemas must leave for messages; otherwise a
/// request is rejected.
pub const MIN_MESSAGE_TOKENS: Tokens = Tokens(256);

/// A correction of the counter, learned from the usage that the provider reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    factor: f64,
}

impl Calibration {
    const NONE: Self = Self { factor: 1.0 };

    /// Returns the correction that turns `estimated` into `reported`, limited to 1/4 to 4. If
    /// either is zero, returns no correction.
    fn from_usage(reported: u64, estimated: u64) -> Self {
        if reported == 0 || estimated == 0 {
            return Self::NONE;
        }
        Self::by(reported as f64 / estimated as f64)
    }

    /// Creates a correction by `factor`, limited to 1/4 to 4.
    #[must_use]
    pub fn by(factor: f64) -> Self {
        Self { factor: if factor.is_finite() { factor.clamp(0.25, 4.0) } else { 1.0 } }
    }

    /// Returns the ratio of reported to estimated tokens.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }
}

/// The window, reserve, fixed parts, counter and calibration of one session.
#[derive(Clone, Debug)]
#[must_use]
pub struct TokenLedger {
    counter: Counter,
    window: Tokens,
    reserve: Tokens,
    system: Tokens,
    addition: Tokens,
    /// The size of the tool schemas.
    pub tools: Tokens,
    /// The size of input that will be added after the view is finished.
    pub pending: Tokens,
    /// The correction that applies to all counts.
    pub calibration: Calibration,
}

impl TokenLedger {
    /// Creates a ledger for a context window of `window` tokens, of which `reserve` are kept free
    /// for the answer. The reserve is capped at a quarter of the window.
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
    pub fn with_system(mut self, system: Tokens) -> Self {
        self.system = system;
        self
    }

    /// Sets the size of the tool schemas.
    pub fn with_tools(mut self, tools: Tokens) -> Self {
        self.tools = tools;
        self
    }

    /// Lowers the limit of a whole request to `limit`, if it is higher. The reserve is then still
    /// at most a quarter of the window.
    pub fn with_limit(mut self, limit: Tokens) -> Self {
        if limit < self.limit() {
            self.reserve =
                self.reserve.min(limit.scale(RESERVE_MAX_SHARE / (1.0 - RESERVE_MAX_SHARE)));
            self.window = limit + self.reserve;
        }
        self
    }

    /// Sets the size of the engine's addition to the system prompt.
    pub(crate) fn set_addition(&mut self, addition: Tokens) {
        self.addition = addition;
    }

    /// Calibrates all message counts from the tokens that the provider reported for a prompt of
    /// `estimated` tokens.
    pub fn calibrate(&mut self, reported: u64, estimated: u64) {
        self.calibration = Calibration::from_usage(reported, estimated);
    }

    /// Returns the counter.
    #[must_use]
    pub fn counter(&self) -> &Counter {
        &self.counter
    }

    /// Returns the context window of the model.
    #[must_use]
    pub fn window(&self) -> Tokens {
        self.window
    }

    /// Returns the tokens kept free for the answer.
    #[must_use]
    pub fn reserve(&self) -> Tokens {
        self.reserve
    }

    /// Returns the size of the system prompt, including the engine's addition.
    #[must_use]
    pub fn system(&self) -> Tokens {
        self.system + self.addition
    }

    /// Returns the maximum size of a whole request: window minus reserve.
    #[must_use]
    pub fn limit(&self) -> Tokens {
        self.window - self.reserve
    }

    /// Returns the size of the fixed parts of a request: system prompt, tool schemas and pending
    /// input.
    #[must_use]
    pub fn fixed(&self) -> Tokens {
        self.system() + self.tools + self.pending
    }

    /// Returns the maximum size of the messages, in counted (uncorrected) tokens.
    #[must_use]
    pub fn budget(&self) -> Tokens {
        // Rounded up, so that the sum of the parts never exceeds the limit.
        let fixed = Tokens((f64::from(self.fixed().0) * self.calibration.factor).ceil() as u32);
        Tokens((f64::from((self.limit() - fixed).0) / self.calibration.factor) as u32)
    }

    /// Applies the calibration to a counted size.
    #[must_use]
    pub fn corrected(&self, counted: Tokens) -> Tokens {
        if self.calibration == Calibration::NONE {
            counted
        } else {
            counted.scale(self.calibration.factor)
        }
    }

    /// Returns how much of the recent history may stay verbatim if `wanted` is requested.
    #[must_use]
    pub fn keep_recent(&self, wanted: Tokens) -> Tokens {
        wanted.min(self.budget().scale(KEEP_RECENT_MAX_SHARE))
    }

    /// Counts the tokens of a message, uncorrected.
    #[must_use]
    pub fn count(&self, message: &Message) -> Tokens {
        self.counter.message(message)
    }

    /// Checks that system prompt and pending input leave enough budget for messages.
    pub fn check(&self) -> Result<()> {
        let leaves_room = |fixed| self.corrected(fixed) + MIN_MESSAGE_TOKENS <= self.limit();
        let error = if !leaves_room(self.system() + self.tools) {
            Error::new(
                ErrorKind::SystemPromptTooLarge,
                "system prompt and tool schemas leave no room for messages",
            )
            .hint("shorten the system prompt, offer fewer tools, or use a model with a larger context window")
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
