//! The guard as a hook that runs before a result is written to the transcript.

use std::sync::Arc;

use ctx_core::{
    Installed, Message, TokenLedger, ToolHooks, ToolResult, ToolResultHook, TurnContext,
};

use crate::replacement::rewritten;
use crate::single::{CallStatus, bound};
use crate::{ResultLimits, ToolGuard};

struct WriteGuard {
    guard: ToolGuard,
    limits: ResultLimits,
    ledger: TokenLedger,
}

impl ToolGuard {
    /// Bounds each tool result before it is stored, for as long as the returned value lives: one
    /// run.
    ///
    /// # Notes
    ///
    /// The transcript does not keep what this truncates. With a blob store, the whole text goes
    /// there first and the stored message says where. If that fails, the result is stored whole and
    /// truncated only on its way to the model. Without a blob store only the truncated text
    /// remains.
    ///
    /// Window and counter are those of the ledger at the time of the call. Only the caps for one
    /// result apply; the caps by age and by total belong to the layer. A result being written is in
    /// progress: it is truncated, never replaced by a placeholder.
    ///
    /// # Example
    ///
    /// ```
    /// use ctx_core::{Counter, Message, Timestamp, TokenLedger, Tokens, ToolHooks, TurnContext};
    /// use ctx_tool_guard::{Config, ToolGuard};
    ///
    /// let long = Message::tool_result("call", "x".repeat(50_000));
    /// let turn = TurnContext::at(Timestamp(0));
    /// let hooks = ToolHooks::default();
    /// let ledger = TokenLedger::new(Counter::default(), Tokens(32_000), Tokens(8_000));
    /// let installed = ToolGuard::new(Config::default()).install(&hooks, &ledger);
    /// assert_ne!(hooks.run(long.clone(), &turn), long);
    /// drop(installed); // the run is over
    /// assert_eq!(hooks.run(long.clone(), &turn), long);
    /// ```
    #[must_use = "the guard is removed when this is dropped"]
    pub fn install(&self, hooks: &ToolHooks, ledger: &TokenLedger) -> Installed {
        let limits = ResultLimits::new(self.config(), ledger.window());
        hooks.install(Arc::new(WriteGuard { guard: self.clone(), limits, ledger: ledger.clone() }))
    }
}

impl ToolResultHook for WriteGuard {
    fn on_tool_result(&self, message: &Message, turn: &TurnContext) -> Option<Message> {
        let counter = self.ledger.counter();
        let change = |result: &ToolResult| {
            let mut is_lost = false;
            let preserve = |text: &str| {
                let put = self.guard.blobs()?.put(&turn.ids.next_id(), text);
                is_lost = put.is_err();
                put.ok()
            };
            let status = CallStatus::InProgress;
            bound(result, &self.limits, counter, status, preserve).filter(|_| !is_lost)
        };
        rewritten(message, change).map(|(form, _)| form)
    }
}
