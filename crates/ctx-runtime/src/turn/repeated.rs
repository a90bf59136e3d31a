//! Detects a model that repeats the same call.

use ctx_core::{ContentHash, Message, Role, ToolCall, ToolOutput};

/// Number of identical calls with identical results that stops the loop.
const ENOUGH: usize = 3;

/// The last call and its result, and how many times in a row it was made.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    last: Option<(String, ContentHash)>,
    times: usize,
    reason: Option<String>,
}

impl Repeated {
    /// Records a call and its result. Returns the reason to stop when the limit is reached, and only
    /// once.
    pub(super) fn note(&mut self, call: &ToolCall, output: &ToolOutput) -> Option<&str> {
        let call_text = format!("{}\n{}", call.name, call.arguments.as_str());
        let output_hash = ContentHash::of(&Message::new(Role::ToolResult, output.content.clone()));
        let this = Some((call_text, output_hash));
        self.times = if self.last == this { self.times + 1 } else { 1 };
        self.last = this;
        if self.times < ENOUGH || self.reason.is_some() {
            return None;
        }
        self.reason = Some(format!(
            "the same call of {} gave the same result {ENOUGH} times: no more tools are run in \
             this turn; answer with what is known",
            call.name,
        ));
        self.reason.as_deref()
    }

    /// Returns why no more tools run, once stopped.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}
