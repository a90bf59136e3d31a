//! Builds views.

use std::sync::Arc;

use ctx_core::{
    Block, ContextView, Counter, CounterKind, Entry, Layer, Message, RawJson, Role, Timestamp,
    TokenLedger, Tokens, ToolCall, TurnContext,
};
use ctx_pruning::{Config, Pruning};

pub(crate) struct Session {
    pub(crate) view: ContextView,
    calls: usize,
}

impl Session {
    pub(crate) fn new(window: u32) -> Self {
        Self::counted(window, CounterKind::Chars4)
    }

    pub(crate) fn counted(window: u32, kind: CounterKind) -> Self {
        let ledger = TokenLedger::new(Counter::new(kind), Tokens(window), Tokens(0));
        Self { view: ContextView::new(ledger), calls: 0 }
    }

    pub(crate) fn push(&mut self, message: Message) {
        let id = format!("{:08x}", self.view.len());
        self.view.append(Arc::new(Entry::in_memory(id, message))).unwrap();
    }

    /// Adds a user message and an answer.
    pub(crate) fn talk(&mut self) {
        self.push(Message::text(Role::User, "and then?"));
        self.push(Message::text(Role::Assistant, "well"));
    }

    /// Adds a call of `tool` and its result; returns the result's position.
    pub(crate) fn run(&mut self, tool: &str, content: Vec<Block>) -> usize {
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        let call = ToolCall::new(id.as_str(), tool, RawJson::from_text("{}"));
        self.push(Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
        let mut message = Message::tool_result(id.as_str(), "");
        if let Some(Block::ToolResult(result)) = message.blocks.first_mut() {
            result.content = content;
        }
        self.push(message);
        self.view.len() - 1
    }

    pub(crate) fn read(&mut self, chars: usize) -> usize {
        self.run("read", vec![Block::text("x".repeat(chars))])
    }

    /// Adds a turn: a user message, a tool call with a result of `chars` characters, an answer.
    pub(crate) fn turn(&mut self, chars: usize) -> usize {
        self.push(Message::text(Role::User, "read it"));
        let at = self.read(chars);
        self.push(Message::text(Role::Assistant, "done"));
        at
    }

    /// Prunes as if the last request were `idle_minutes` minutes ago.
    pub(crate) fn prune(&mut self, config: &Config, idle_minutes: i64) -> usize {
        let before = self.view.edits().len();
        let turn = turn_context(Some(idle_minutes));
        Pruning::new(config.clone()).unwrap().apply(&mut self.view, None, &turn).unwrap();
        self.view.edits().len() - before
    }

    pub(crate) fn text(&self, at: usize) -> String {
        let message = self.view.node(at).message().unwrap();
        message.tool_results().map(|r| r.plain_text().into_owned()).collect()
    }
}

pub(crate) fn turn_context(idle_minutes: Option<i64>) -> TurnContext {
    let now = 1_000_000_000;
    TurnContext {
        last_request: idle_minutes.map(|m| Timestamp(now - m * 60_000)),
        ..TurnContext::at(Timestamp(now))
    }
}
