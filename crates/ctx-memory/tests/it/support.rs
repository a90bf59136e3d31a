//! A memory that says what it was told, and views to show to layers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{
    ContextView, Counter, Entry, Error, ErrorKind, Layer, MemoryStore, Message, Passage,
    RecallRequest, RecalledFact, Recollection, Result, Role, SequentialIds, Timestamp, TokenLedger,
    Tokens, TurnContext,
};

/// Answers every query with what it was given, and remembers what it was asked and told.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) answer: Mutex<Recollection>,
    pub(crate) asked: Mutex<Vec<RecallRequest>>,
    pub(crate) archived: Mutex<Vec<String>>,
    pub(crate) fails: bool,
    /// Whether it keeps to itself what the model sees.
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

    /// The same, but what the model sees is not brought back.
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

/// Appends what somebody says; the entry is named after its place.
pub(crate) fn say(view: &mut ContextView, role: Role, text: &str) -> String {
    let id = format!("e{}", view.edits().len() + view.len() + view.left_out().len());
    view.append(Arc::new(Entry::held(id.clone(), Message::text(role, text)))).expect("a message");
    id
}

/// Shows the view to a layer, as an engine does, and finishes it as a host does.
pub(crate) fn turn(layers: &[&dyn Layer], view: &mut ContextView) {
    let turn = TurnContext {
        now: Timestamp(1_770_733_860_000),
        last_request: None,
        ids: Arc::new(SequentialIds::default()),
        profile: ctx_core::Profile::default(),
    };
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

/// The texts of the request.
pub(crate) fn texts(view: &ContextView) -> Vec<String> {
    view.messages().expect("messages").iter().map(|message| message.plain_text()).collect()
}
