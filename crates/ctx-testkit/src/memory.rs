//! A memory with configured answers, and views to show to layers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{
    ContextView, Counter, Entry, Error, ErrorKind, Layer, MemoryStore, Message, Passage,
    RecallRequest, RecalledFact, Recollection, Result, Role, Timestamp, TokenLedger, Tokens,
    TurnContext,
};

use crate::locked;

/// Answers every query with its configured answer, and records queries and messages.
#[derive(Default)]
pub struct ScriptedMemory {
    /// What it recalls.
    pub answer: Mutex<Recollection>,
    /// The requests it got.
    pub asked: Mutex<Vec<RecallRequest>>,
    /// The ids of the archived entries.
    pub archived: Mutex<Vec<String>>,
    /// Whether every call fails.
    pub fails: bool,
    /// Whether it omits what the model already sees.
    pub is_considerate: bool,
}

impl ScriptedMemory {
    /// Returns a memory of passages, best first, and facts. The entry of passage `n` is `old<n>`.
    pub fn with(passages: &[&str], facts: &[&str]) -> Arc<Self> {
        let passage = |(at, text): (usize, &&str)| Passage {
            text: (*text).to_owned(),
            score: 1.0 - at as f32 / 100.0,
            role: Role::User,
            timestamp: Timestamp(at as i64 * 60_000),
            session: None,
            entry: Some(format!("old{at}").into()),
            adjacent: false,
        };
        let fact = |text: &&str| RecalledFact {
            kind: "decision".into(),
            text: (*text).to_owned(),
            score: 1.0,
            entries: Vec::new(),
        };
        let answer = Recollection {
            facts: facts.iter().map(fact).collect(),
            passages: passages.iter().enumerate().map(passage).collect(),
            warnings: Vec::new(),
        };
        Arc::new(Self { answer: Mutex::new(answer), ..Self::default() })
    }

    /// Like [`with`](Self::with), without facts, and omits what the model already sees.
    pub fn unseen(passages: &[&str]) -> Arc<Self> {
        let memory = Self::with(passages, &[]);
        let answer = Mutex::new(locked(&memory.answer).clone());
        Arc::new(Self { answer, is_considerate: true, ..Self::default() })
    }

    /// Returns the queries it got.
    pub fn queries(&self) -> Vec<String> {
        locked(&self.asked).iter().map(|request| request.query.clone()).collect()
    }
}

#[async_trait]
impl MemoryStore for ScriptedMemory {
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
        if self.fails {
            return Err(Error::new(ErrorKind::Io, "the disk is full"));
        }
        locked(&self.archived).extend(entries.iter().map(|e| e.id().to_string()));
        Ok(())
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        let mut answer = locked(&self.answer).clone();
        if self.is_considerate {
            let is_seen =
                |p: &Passage| p.entry.as_ref().is_some_and(|id| request.visible.contains(id));
            answer.passages.retain(|passage| !is_seen(passage));
        }
        locked(&self.asked).push(request);
        if self.fails { Err(Error::new(ErrorKind::Io, "the index is gone")) } else { Ok(answer) }
    }

    async fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns an empty view of a window, with a reserve of a fifth.
pub fn view(window: u32) -> ContextView {
    ContextView::new(TokenLedger::new(Counter::default(), Tokens(window), Tokens(window / 5)))
}

/// Appends a message; its entry id is its position.
pub fn say(view: &mut ContextView, role: Role, text: &str) -> String {
    let id = format!("e{}", view.edits().len() + view.len() + view.dropped().len());
    view.append(Arc::new(Entry::in_memory(id.clone(), Message::text(role, text))))
        .expect("a message");
    id
}

/// Runs the layers on the view, like an engine, and finishes the turn, like a host.
pub fn turn(layers: &[&dyn Layer], view: &mut ContextView) {
    let turn = TurnContext::at(Timestamp(1_770_733_860_000));
    for layer in layers {
        let prepared = layer.prepare(view, &turn).map(|pending| {
            futures_util::FutureExt::now_or_never(pending)
                .expect("nothing is waited for")
                .expect("an answer")
        });
        layer.apply(view, prepared, &turn).expect("edits");
    }
    view.finish().expect("a request");
}

/// Returns the texts of the request.
pub fn texts(view: &ContextView) -> Vec<String> {
    view.messages().expect("messages").iter().map(|message| message.plain_text()).collect()
}
