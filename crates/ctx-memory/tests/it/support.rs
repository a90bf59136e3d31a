//! A memory with configured answers, and views to show to layers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_config::{Profile, Section};
use ctx_core::{
    ContextView, Counter, Entry, Error, ErrorKind, Layer, MemoryStore, Message, Passage,
    RecallRequest, RecalledFact, Recollection, Result, Role, Timestamp, TokenLedger, Tokens,
    TurnContext,
};

/// A section under a profile.
pub(crate) fn section_of<T: Section>(profile: &str) -> T {
    let profile: Profile = profile.parse().expect("a profile");
    ctx_config::Config::for_profile(profile).section().expect("a valid section")
}

/// Answers every query with its configured answer, and records queries and messages.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) answer: Mutex<Recollection>,
    pub(crate) asked: Mutex<Vec<RecallRequest>>,
    pub(crate) archived: Mutex<Vec<String>>,
    pub(crate) fails: bool,
    /// Whether it omits what the model already sees.
    pub(crate) is_considerate: bool,
}

impl Told {
    pub(crate) fn with(passages: &[&str], facts: &[&str]) -> Arc<Self> {
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
    pub(crate) fn unseen(passages: &[&str]) -> Arc<Self> {
        let told = Self::with(passages, &[]);
        let answer = Mutex::new(told.answer.lock().expect("no test panicked before").clone());
        Arc::new(Self { answer, is_considerate: true, ..Self::default() })
    }

    pub(crate) fn queries(&self) -> Vec<String> {
        self.asked
            .lock()
            .expect("no test panicked before")
            .iter()
            .map(|request| request.query.clone())
            .collect()
    }
}

#[async_trait]
impl MemoryStore for Told {
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
        if self.fails {
            return Err(Error::new(ErrorKind::Io, "the disk is full"));
        }
        self.archived
            .lock()
            .expect("no test panicked before")
            .extend(entries.iter().map(|e| e.id().to_string()));
        Ok(())
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        let mut answer = self.answer.lock().expect("no test panicked before").clone();
        if self.is_considerate {
            let is_seen =
                |p: &Passage| p.entry.as_ref().is_some_and(|id| request.visible.contains(id));
            answer.passages.retain(|passage| !is_seen(passage));
        }
        self.asked.lock().expect("no test panicked before").push(request);
        match self.fails {
            true => Err(Error::new(ErrorKind::Io, "the index is gone")),
            false => Ok(answer),
        }
    }

    async fn flush(&self) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn view(window: u32) -> ContextView {
    ContextView::new(TokenLedger::new(Counter::default(), Tokens(window), Tokens(window / 5)))
}

/// Appends a message; its entry id is its position.
pub(crate) fn say(view: &mut ContextView, role: Role, text: &str) -> String {
    let id = format!("e{}", view.edits().len() + view.len() + view.dropped().len());
    view.append(Arc::new(Entry::in_memory(id.clone(), Message::text(role, text))))
        .expect("a message");
    id
}

/// Runs the layers on the view, like an engine, and finishes the turn, like a host.
pub(crate) fn turn(layers: &[&dyn Layer], view: &mut ContextView) {
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
pub(crate) fn texts(view: &ContextView) -> Vec<String> {
    view.messages().expect("messages").iter().map(|message| message.plain_text()).collect()
}
