//! Finding out that a model goes round in circles.

use ctx_core::{ContentHash, Message, Role, ToolCall, ToolOutput};

/// How many identical calls with identical results are enough.
const ENOUGH: usize = 3;

/// The last calls, and what they gave.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    last: Option<(String, ContentHash)>,
    times: usize,
    reason: Option<String>,
}

impl Repeated {
    /// Takes a call and its result. The reason, if it is the one too many.
    pub(super) fn note(&mut self, call: &ToolCall, output: &ToolOutput) -> Option<&str> {
        let said = format!("{}\n{}", call.name, call.arguments.as_str());
        let gave = ContentHash::of(&Message::new(Role::ToolResult, output.content.clone()));
        let this = Some((said, gave));
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

    /// Why no more tools are run, once that is so.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}
