//! How large a request may be.

use ctx_core::{
    Error, ErrorKind, MIN_MESSAGE_TOKENS, RESERVE_MAX_SHARE, Result, TokenLedger, Tokens,
};

/// What is known of a model's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// As it was given, or as the model has it.
    pub(super) window: Tokens,
    /// As the model has it, where that is known.
    pub(super) native: Option<Tokens>,
    /// As the provider's refusals say.
    pub(super) learned: Option<Tokens>,
    /// The smallest window that an engine works in.
    pub(super) least: Tokens,
    /// The most that the answer may hold.
    pub(super) answer: Tokens,
    /// The instructions at the beginning of the history.
    pub(super) instructions: Tokens,
}

impl Room {
    /// The window that holds.
    pub(super) fn known(&self) -> Tokens {
        self.learned.map_or(self.window, |learned| learned.min(self.window))
    }

    /// The window that an engine is told.
    pub(super) fn told(&self) -> Tokens {
        self.known().max(self.least).min(self.window.max(self.least))
    }

    /// What all of a request may measure: three quarters of the window, or less where the answer may
    /// take more than the rest of it. Who asks for more than half of a window asks for more than any
    /// answer; and a quarter of a prompt is for messages, whatever is `fixed`, as long as there is room.
    fn prompt(&self, fixed: Tokens) -> Tokens {
        let known = self.known();
        let most = known.scale(1.0 - RESERVE_MAX_SHARE);
        let whole = match self.learned {
            Some(_) => known,
            None => self.native.unwrap_or(known).max(known),
        };
        most.min((whole - self.answer).max(known.scale(0.5)).max(fixed + most.scale(0.25)))
    }

    /// What of the engine's budget has to stay empty, in counted tokens.
    pub(super) fn withheld(&self, ledger: &TokenLedger) -> Tokens {
        let pinned = fixed(ledger) + ledger.corrected(self.instructions);
        let over = (ledger.limit() - self.prompt(pinned)).0;
        Tokens((f64::from(over) / ledger.calibration().factor()) as u32)
    }

    /// Refuses a system prompt and tools that leave no room for messages, and says which window would.
    pub(super) fn check(&self, ledger: &TokenLedger) -> Result<()> {
        let needed = fixed(ledger) + MIN_MESSAGE_TOKENS;
        if needed <= self.prompt(fixed(ledger)) {
            return Ok(());
        }
        let least = (f64::from(needed.0) / (1.0 - RESERVE_MAX_SHARE)).ceil();
        let what = "system prompt and tool schemas leave no room for messages";
        Err(Error::new(ErrorKind::SystemPromptTooLarge, what)
            .with("system", ledger.system())
            .with("tools", ledger.tools())
            .with("window", self.known())
            .with("leastWindow", least)
            .hint(format!(
                "offer fewer tools, or, if the model has a larger window, give `ctx serve` --window \
                 {least} or more"
            )))
    }
}

/// What is in every request whatever its messages, in the provider's tokens.
fn fixed(ledger: &TokenLedger) -> Tokens {
    ledger.corrected(ledger.system() + ledger.tools())
}

#[cfg(test)]
mod tests {
    use ctx_core::Counter;

    use super::*;

    fn limit_beside(room: Room, tools: u32) -> u32 {
        let ledger = TokenLedger::new(Counter::default(), room.told(), Tokens(4_000));
        let ledger = ledger.with_tools(Tokens(tools));
        (ledger.limit() - room.withheld(&ledger)).0
    }

    fn limit(room: Room) -> u32 {
        limit_beside(room, 0)
    }

    #[test]
    fn prompt_and_answer_fit_into_the_window_together() {
        let room = Room {
            window: Tokens(32_000),
            native: None,
            learned: None,
            least: Tokens(16_000),
            answer: Tokens(0),
            instructions: Tokens(0),
        };
        assert_eq!(limit(room), 24_000);
        assert_eq!(limit(Room { answer: Tokens(8_000), ..room }), 24_000);
        assert_eq!(limit(Room { answer: Tokens(14_000), ..room }), 18_000);
        assert_eq!(limit(Room { answer: Tokens(64_000), ..room }), 16_000);
        // The answer gives way to tools, as far as there is room.
        assert_eq!(limit_beside(Room { answer: Tokens(64_000), ..room }, 12_000), 18_000);
        assert_eq!(limit_beside(Room { answer: Tokens(64_000), ..room }, 23_000), 24_000);
        let told = Room { answer: Tokens(64_000), instructions: Tokens(5_000), ..room };
        assert_eq!(limit_beside(told, 12_000), 23_000);
        // A window that was given for the prompt leaves the rest of the model's to the answer.
        let large = Room { native: Some(Tokens(200_000)), ..room };
        assert_eq!(limit(Room { answer: Tokens(64_000), ..large }), 24_000);
    }

    #[test]
    fn a_window_under_the_least_is_kept_by_leaving_the_rest_empty() {
        let room = Room {
            window: Tokens(200_000),
            native: Some(Tokens(200_000)),
            learned: Some(Tokens(8_000)),
            least: Tokens(16_000),
            answer: Tokens(1_000),
            instructions: Tokens(0),
        };
        assert_eq!((room.told(), limit(room)), (Tokens(16_000), 6_000));
    }
}
