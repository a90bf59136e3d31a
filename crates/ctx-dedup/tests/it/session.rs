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

const POINTER: &str = "[ctx: lines ";

fn range(text: &str) -> std::ops::Range<usize> {
    let (first, last) = text.split_once('-').unwrap();
    first.parse::<usize>().unwrap() - 1..last.parse().unwrap()
}

/// Returns the lines of a result as sent, by their numbers in the recorded one. `None` is a
/// line that a pointer replaced.
fn lines_of(text: &str) -> Vec<Option<&str>> {
    let lines = text.split('\n').map(|line| match line.strip_prefix(POINTER) {
        Some(rest) => vec![None; range(rest.split_once(" are lines ").unwrap().0).len()],
        None => vec![Some(line)],
    });
    lines.flatten().collect()
}

/// Returns the lines for which a line stands: itself, or the lines to which it points.
pub(crate) fn resolved(line: &str, request: &[Message]) -> Vec<String> {
    let Some(rest) = line.strip_prefix(POINTER) else { return vec![line.to_owned()] };
    let (own, rest) = rest.split_once(" are lines ").unwrap();
    let (earlier, rest) = rest.split_once(" of the result of call ").unwrap();
    let (call, rest) = rest.split_once(' ').unwrap();
    let by = rest.rsplit_once(", numbered ").map(|(_, by)| by.split_once(' ').unwrap());
    let shift: i64 = match by {
        Some((by, "higher]")) => by.parse().unwrap(),
        Some((by, "lower]")) => -by.parse::<i64>().unwrap(),
        _ => 0,
    };
    assert_eq!(range(own).len(), range(earlier).len());
    let mut results = request.iter().flat_map(Message::tool_results);
    let result = results.find(|result| &*result.call_id == call).expect("the target is sent");
    let text = result.plain_text();
    let renumbered = |line: &Option<&str>| {
        let line = line.expect("the line stands in full");
        match line.split_once('→') {
            Some((number, text)) => format!("{}→{text}", number.parse::<i64>().unwrap() + shift),
            None => line.to_owned(),
        }
    };
    lines_of(&text)[range(earlier)].iter().map(renumbered).collect()
}

/// Asserts that every pointer of the request leads to the lines that it replaced.
pub(crate) fn assert_resolvable(session: &Session) {
    let request = session.messages();
    for node in session.view.nodes().iter().filter(|node| node.is_live()) {
        let recorded = texts(&node.entry().message().unwrap());
        let sent = texts(&node.message().unwrap());
        for (sent, recorded) in sent.iter().zip(&recorded) {
            let pointed = sent.contains(POINTER);
            let whole = sent.split('\n').flat_map(|line| resolved(line, &request));
            let whole = whole.collect::<Vec<_>>().join("\n");
            // Of a truncated form, each pointer is checked for itself.
            if pointed && node.layer() == Some(Dedup::ID) {
                assert_eq!(&whole, recorded);
            }
            for line in sent.split('\n').filter(|line| line.starts_with(POINTER)) {
                let lines = resolved(line, &request).join("\n");
                assert!(recorded.contains(&lines), "{lines}");
            }
        }
    }
}
