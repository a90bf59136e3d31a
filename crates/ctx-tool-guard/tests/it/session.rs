//! Builds views, and a blob store in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ctx_core::{
    BlobStore, Block, ContextView, Counter, CounterKind, Entry, Error, ErrorKind, Image, Layer,
    Message, RawJson, Result, Role, Timestamp, TokenLedger, Tokens, ToolCall, TurnContext,
};
use ctx_tool_guard::ToolGuard;

pub(crate) struct Session {
    pub(crate) view: ContextView,
    pub(crate) turn: TurnContext,
    calls: usize,
}

impl Session {
    pub(crate) fn new(window: u32) -> Self {
        Self::counted(window, CounterKind::Chars4)
    }

    pub(crate) fn counted(window: u32, kind: CounterKind) -> Self {
        let turn = TurnContext::at(Timestamp(1_000_000_000_000));
        Self { view: ContextView::new(ledger(window, kind)), turn, calls: 0 }
    }

    pub(crate) fn push(&mut self, message: Message) {
        let id = format!("{}-{:08x}", self.calls, self.view.len());
        self.view.append(Arc::new(Entry::in_memory(id, message))).unwrap();
    }

    pub(crate) fn say(&mut self, role: Role, text: &str) {
        self.push(Message::text(role, text));
    }

    /// Adds parallel calls, and their results as separate messages. Returns the first position.
    pub(crate) fn run(&mut self, contents: Vec<Vec<Block>>) -> usize {
        let ids: Vec<String> =
            contents.iter().enumerate().map(|(n, _)| format!("{}-{n}", self.calls)).collect();
        self.calls += 1;
        let call = |id: &String| {
            Block::ToolCall(ToolCall::new(id.as_str(), "read", RawJson::from_text("{}")))
        };
        self.push(Message::new(Role::Assistant, ids.iter().map(call).collect()));
        let first = self.view.len();
        for (id, content) in ids.iter().zip(contents) {
            self.push(result(id, content));
        }
        first
    }

    pub(crate) fn read(&mut self, text: &str) -> usize {
        self.run(vec![vec![Block::text(text)]])
    }

    /// Runs the guard. Returns the number of edits it made.
    pub(crate) fn guard(&mut self, guard: &ToolGuard) -> usize {
        let before = self.view.edits().len();
        guard.apply(&mut self.view, None, &self.turn).unwrap();
        self.view.edits().len() - before
    }

    pub(crate) fn text(&self, at: usize) -> String {
        let message = self.view.node(at).message().unwrap();
        message.tool_results().map(|r| r.plain_text().into_owned()).collect()
    }
}

pub(crate) fn ledger(window: u32, kind: CounterKind) -> TokenLedger {
    TokenLedger::new(Counter::new(kind), Tokens(window), Tokens(0))
}

pub(crate) fn result(id: &str, content: Vec<Block>) -> Message {
    let mut message = Message::tool_result(id, "");
    if let Some(Block::ToolResult(result)) = message.blocks.first_mut() {
        result.content = content;
    }
    message
}

pub(crate) fn image() -> Block {
    Block::Image(Image { mime_type: "image/png".into(), data: "AA==".into(), is_url: false })
}

/// A blob store in memory that can fail.
#[derive(Default)]
pub(crate) struct Blobs {
    pub(crate) files: Mutex<BTreeMap<String, String>>,
    pub(crate) expired: Mutex<Vec<Timestamp>>,
    pub(crate) is_full: bool,
}

impl BlobStore for Blobs {
    fn put(&self, name: &str, text: &str) -> Result<String> {
        if self.is_full {
            return Err(Error::new(ErrorKind::Io, "no space left"));
        }
        self.files.lock().unwrap().insert(name.to_owned(), text.to_owned());
        Ok(format!("/agents/main/tool-results/{name}.txt"))
    }

    fn expire(&self, before: Timestamp) -> Result<usize> {
        self.expired.lock().unwrap().push(before);
        Ok(0)
    }
}
