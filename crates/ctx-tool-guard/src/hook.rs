//! The guard as a hook that runs before a result is written to the transcript.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use ctx_core::{Message, TokenLedger, ToolResult, TurnContext};

use crate::replacement::rewritten;
use crate::single::{CallStatus, bound};
use crate::{ResultLimits, ToolGuard};

/// The guards of the tool results of one session; none by default. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct ToolHooks(Arc<Mutex<Vec<Weak<WriteGuard>>>>);

impl ToolHooks {
    /// Passes a tool result through all guards, in the order of installation.
    pub fn run(&self, message: Message, turn: &TurnContext) -> Message {
        let mut installed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        installed.retain(|guard| guard.strong_count() > 0);
        let guards: Vec<_> = installed.iter().filter_map(Weak::upgrade).collect();
        drop(installed);
        guards.iter().fold(message, |m, guard| guard.bounded(&m, turn).unwrap_or(m))
    }
}

/// Bounds tool results before they are stored, until it is dropped.
#[derive(Debug)]
pub struct WriteGuard {
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
    /// The transcript does not keep the truncated part. With a blob store, the whole text goes
    /// there first and the stored message says where. If that fails, the result is stored whole and
    /// truncated only on its way to the model. Without a blob store only the truncated text
    /// remains.
    ///
    /// Window and counter come from the ledger at the time of the call. Only the caps for one
    /// result apply; the caps by age and by total belong to the layer. A result being written is in
    /// progress: it is truncated, never replaced by a placeholder.
    ///
    /// # Example
    ///
    /// ```
    /// use ctx_core::{Counter, Message, Timestamp, TokenLedger, Tokens, TurnContext};
    /// use ctx_tool_guard::{Config, ToolGuard, ToolHooks};
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
    pub fn install(&self, hooks: &ToolHooks, ledger: &TokenLedger) -> Arc<WriteGuard> {
        let limits = ResultLimits::new(self.config(), ledger.window());
        let guard = Arc::new(WriteGuard { guard: self.clone(), limits, ledger: ledger.clone() });
        hooks.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&guard));
        guard
    }
}

impl WriteGuard {
    /// Returns the message to store instead, if the result is too long.
    fn bounded(&self, message: &Message, turn: &TurnContext) -> Option<Message> {
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
