//! Computes the maximum size of a request.

use ctx_core::{
    Error, ErrorKind, MIN_MESSAGE_TOKENS, RESERVE_MAX_SHARE, Result, TokenLedger, Tokens,
};

/// The known limits of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelLimits {
    /// The configured window, or the model's.
    pub(super) window: Tokens,
    /// The model's own window, if known.
    pub(super) native: Option<Tokens>,
    /// The window learned from refusals.
    pub(super) learned: Option<Tokens>,
    /// The smallest window that an engine accepts.
    pub(super) least: Tokens,
    /// The maximum length of the answer.
    pub(super) answer: Tokens,
    /// The tokens of the instructions at the beginning of the history.
    pub(super) instructions: Tokens,
}

impl ModelLimits {
    /// Returns the effective window.
    pub(super) fn known(&self) -> Tokens {
        self.learned.map_or(self.window, |learned| learned.min(self.window))
    }

    /// Returns the window passed to the engine.
    pub(super) fn engine_window(&self) -> Tokens {
        self.known().max(self.least).min(self.window.max(self.least))
    }

    /// Returns the budget of a whole request: three quarters of the window, or less if the answer
    /// may take more than the rest. The answer's limit counts for at most half of the window. If
    /// possible, a quarter of the budget remains for messages beside the `fixed` part.
    fn prompt(&self, fixed: Tokens) -> Tokens {
        let known = self.known();
        let most = known.scale(1.0 - RESERVE_MAX_SHARE);
        let whole = match self.learned {
            Some(_) => known,
            None => self.native.unwrap_or(known).max(known),
        };
        most.min((whole - self.answer).max(known.scale(0.5)).max(fixed + most.scale(0.25)))
    }

    /// Returns the part of the engine's budget that must stay empty, in counted tokens.
    pub(super) fn withheld(&self, ledger: &TokenLedger) -> Tokens {
        let pinned = fixed(ledger) + ledger.corrected(self.instructions);
        let over = (ledger.limit() - self.prompt(pinned)).0;
        Tokens((f64::from(over) / ledger.calibration.factor()) as u32)
    }

    /// Refuses a system prompt and tools that leave no budget for messages; suggests a window.
    pub(super) fn check(&self, ledger: &TokenLedger) -> Result<()> {
        let needed = fixed(ledger) + MIN_MESSAGE_TOKENS;
        if needed <= self.prompt(fixed(ledger)) {
            return Ok(());
        }
        let least = (f64::from(needed.0) / (1.0 - RESERVE_MAX_SHARE)).ceil();
        let what = "system prompt and tool schemas leave no budget for messages";
        Err(Error::new(ErrorKind::SystemPromptTooLarge, what)
            .with("system", ledger.system())
            .with("tools", ledger.tools)
            .with("window", self.known())
            .with("leastWindow", least)
            .hint(format!(
                "offer fewer tools, or, if the model has a larger window, give `ctx serve` \
                 --window {least} or more"
            )))
    }
}

/// Returns the tokens of every request apart from messages, as the provider counts them.
fn fixed(ledger: &TokenLedger) -> Tokens {
    ledger.corrected(ledger.system() + ledger.tools)
}

#[cfg(test)]
mod tests {
    use ctx_core::Counter;

    use super::*;

    fn limit_beside(limits: ModelLimits, tools: u32) -> u32 {
        let ledger = TokenLedger::new(Counter::default(), limits.engine_window(), Tokens(4_000));
        let ledger = ledger.with_tools(Tokens(tools));
        (ledger.limit() - limits.withheld(&ledger)).0
    }

    fn limit(limits: ModelLimits) -> u32 {
        limit_beside(limits, 0)
    }

    #[test]
    fn prompt_and_answer_fit_into_the_window_together() {
        let limits = ModelLimits {
            window: Tokens(32_000),
            native: None,
            learned: None,
            least: Tokens(16_000),
            answer: Tokens(0),
            instructions: Tokens(0),
        };
        assert_eq!(limit(limits), 24_000);
        assert_eq!(limit(ModelLimits { answer: Tokens(8_000), ..limits }), 24_000);
        assert_eq!(limit(ModelLimits { answer: Tokens(14_000), ..limits }), 18_000);
        assert_eq!(limit(ModelLimits { answer: Tokens(64_000), ..limits }), 16_000);
        // Tools take precedence over the answer, as far as they fit.
        assert_eq!(limit_beside(ModelLimits { answer: Tokens(64_000), ..limits }, 12_000), 18_000);
        assert_eq!(limit_beside(ModelLimits { answer: Tokens(64_000), ..limits }, 23_000), 24_000);
        let with_instructions =
            ModelLimits { answer: Tokens(64_000), instructions: Tokens(5_000), ..limits };
        assert_eq!(limit_beside(with_instructions, 12_000), 23_000);
        // A window set for the prompt leaves the rest of the model's window to the answer.
        let large = ModelLimits { native: Some(Tokens(200_000)), ..limits };
        assert_eq!(limit(ModelLimits { answer: Tokens(64_000), ..large }), 24_000);
    }

    #[test]
    fn a_window_below_the_minimum_is_kept_by_withholding_the_rest() {
        let limits = ModelLimits {
            window: Tokens(200_000),
            native: Some(Tokens(200_000)),
            learned: Some(Tokens(8_000)),
            least: Tokens(16_000),
            answer: Tokens(1_000),
            instructions: Tokens(0),
        };
        assert_eq!((limits.engine_window(), limit(limits)), (Tokens(16_000), 6_000));
    }
}
