//! Builds views, and resolves pointers independently of the layer.

use std::sync::Arc;

use ctx_core::{
    Block, ContextView, Counter, Entry, Finished, Layer, Message, Projection, RawJson, Role,
    Timestamp, TokenLedger, Tokens, ToolCall, TurnContext,
};
use ctx_dedup::{Config, Dedup, Mode};

pub(crate) struct Session {
    pub(crate) view: ContextView,
    pub(crate) entries: Vec<Arc<Entry>>,
    layer: Dedup,
}

pub(crate) fn config() -> Config {
    Config { mode: Mode::On, ..Config::default() }
}

impl Session {
    pub(crate) fn new(window: u32, config: Config, sent: Vec<Projection>) -> Self {
        let ledger = TokenLedger::new(Counter::default(), Tokens(window), Tokens(0));
        let view = ContextView::new(ledger).with_projections(sent);
        Self { view, entries: Vec::new(), layer: Dedup::new(config) }
    }

    pub(crate) fn push(&mut self, message: Message) {
        let id = format!("{:08x}", self.entries.len());
        let entry = Arc::new(Entry::in_memory(id, message));
        self.entries.push(entry.clone());
        self.view.append(entry).unwrap();
    }

    pub(crate) fn say(&mut self, role: Role) {
        self.push(Message::text(role, "and then?"));
    }

    /// Adds a message with one call for each text, and a message with their results.
    pub(crate) fn run(&mut self, texts: &[&str]) {
        let id = |n: usize| format!("c{}-{n}", self.entries.len());
        let ids: Vec<String> = (0..texts.len()).map(id).collect();
        let arguments = || RawJson::from_text(r#"{"path": "src/lib.rs"}"#);
        let call = |id: &String| Block::ToolCall(ToolCall::new(id.as_str(), "read", arguments()));
        let calls = ids.iter().map(call).collect();
        self.push(Message::new(Role::Assistant, calls));
        let results = ids.iter().zip(texts);
        let results =
            results.flat_map(|(id, text)| Message::tool_result(id.as_str(), *text).blocks);
        self.push(Message::new(Role::ToolResult, results.collect()));
    }

    /// Sends a request.
    pub(crate) fn send(&mut self) -> Finished {
        self.layer.apply(&mut self.view, None, &TurnContext::at(Timestamp(0))).unwrap();
        self.view.finish().unwrap()
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.view.messages().unwrap().iter().map(|message| Message::clone(message)).collect()
    }

    /// Returns the text of the results of an entry as sent; empty if it is not sent.
    pub(crate) fn sent(&self, entry: usize) -> String {
        let id = self.entries[entry].id();
        let node = self.view.nodes().iter().find(|node| node.entry().id() == id);
        node.map_or_else(String::new, |node| texts(&node.message().unwrap()).join("\n"))
    }
}

pub(crate) fn texts(message: &Message) -> Vec<String> {
    message.tool_results().map(|result| result.plain_text().into_owned()).collect()
}

/// Returns the lines for which a line stands: itself, or the lines to which it points.
pub(crate) fn resolved(line: &str, request: &[Message]) -> Vec<String> {
    let Some(rest) = line.strip_prefix("[ctx: lines ") else { return vec![line.to_owned()] };
    let (range, rest) = rest.split_once(" of the result of call ").unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    let (call, rest) = rest.split_once(' ').unwrap();
    let shift: i64 =
        match rest.rsplit_once(", numbered ").map(|(_, by)| by.split_once(' ').unwrap()) {
            Some((by, "higher]")) => by.parse().unwrap(),
            Some((by, "lower]")) => -by.parse::<i64>().unwrap(),
            _ => 0,
        };
    let mut results = request.iter().flat_map(Message::tool_results);
    let result = results.find(|result| &*result.call_id == call).expect("the target is sent");
    let text = result.plain_text();
    let lines: Vec<&str> = text.split('\n').collect();
    let renumbered = |line: &&str| match line.split_once('→') {
        Some((number, text)) => format!("{}→{text}", number.parse::<i64>().unwrap() + shift),
        None => (*line).to_owned(),
    };
    lines[first - 1..last].iter().map(renumbered).collect()
}

/// Asserts that every pointer of the request leads to the lines that it replaced.
pub(crate) fn assert_resolvable(session: &Session) {
    let request = session.messages();
    for node in session.view.nodes().iter().filter(|node| node.is_live()) {
        let recorded = texts(&node.entry().message().unwrap());
        let sent = texts(&node.message().unwrap());
        for (sent, recorded) in sent.iter().zip(&recorded) {
            let pointed = sent.contains("[ctx: lines ");
            let whole = sent.split('\n').flat_map(|line| resolved(line, &request));
            let whole = whole.collect::<Vec<_>>().join("\n");
            // Of a truncated form, each pointer is checked for itself.
            if pointed && node.layer() == Some(Dedup::ID) {
                assert_eq!(&whole, recorded);
            }
            for line in sent.split('\n').filter(|line| line.starts_with("[ctx: lines ")) {
                let lines = resolved(line, &request).join("\n");
                assert!(recorded.contains(&lines), "{lines}");
            }
        }
    }
}
