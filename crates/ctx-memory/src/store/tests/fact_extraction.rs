//! Messages shown to models, and what happens to them if no model may be called.

use std::sync::mpsc;
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{Result, Summarizer, Summary, SummaryModels, SummaryRequest, Timer, Tokens, Usage};
use futures_util::future::{Either, select};

use super::*;
use crate::facts::{DailyBudget, DailySpend, FactStore, Scope, SpendLedger};

/// A model that signals each call, and answers only if configured to.
struct Asked {
    calls: mpsc::Sender<()>,
    heard: Mutex<Option<futures_channel::oneshot::Sender<()>>>,
    answers: bool,
}

#[async_trait]
impl Summarizer for Asked {
    fn name(&self) -> &str {
        "fake/model"
    }

    fn window(&self) -> Tokens {
        Tokens(32_000)
    }

    fn cost(&self, _: &Usage) -> Option<f64> {
        Some(0.125)
    }

    async fn summarize(&self, _: SummaryRequest) -> Result<Summary> {
        let _ = self.calls.send(());
        if let Some(heard) = self.heard.lock().unwrap().take() {
            let _ = heard.send(());
        }
        if !self.answers {
            std::future::pending::<()>().await;
        }
        Ok(Summary { text: "[]".into(), ..Summary::default() })
    }
}

/// A timer that never fires.
struct Still;

#[async_trait]
impl Timer for Still {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

/// Returns a session with a message to study, the counter of model calls, and the signal of the
/// first call.
fn studied(
    ledger: &Path,
    answers: bool,
) -> (SessionMemory, mpsc::Receiver<()>, futures_channel::oneshot::Receiver<()>) {
    let (calls, asked) = mpsc::channel();
    let (heard, first) = futures_channel::oneshot::channel();
    let model = Asked { calls, heard: Mutex::new(Some(heard)), answers };
    let models = SummaryModels { chain: vec![Arc::new(model)], timer: Arc::new(Still) };
    let memory = Memory::in_memory(settings());
    let session = SessionMemory::new(memory, "s", maker("s"))
        .with_facts(Arc::new(Mutex::new(FactStore::in_memory(Scope::Session))))
        .with_models(models, DailyBudget::default(), Some(ledger.to_owned()));
    let text = "We decided to use Redis for sessions.";
    session.archive(&[Arc::new(Entry::in_memory("e", Message::text(Role::User, text)))]).unwrap();
    waited(session.flush()).unwrap();
    (session, asked, first)
}

fn spent(ledger: &Path) -> (u32, f64) {
    let budget: DailySpend = serde_json::from_slice(&fs::read(ledger).unwrap()).unwrap();
    (budget.spent.calls, budget.spent.usd)
}

#[test]
fn messages_keep_waiting_while_another_process_extracts_facts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("budget.json");
    let (session, asked, _) = studied(&path, true);
    let other = Arc::new(SpendLedger::File(path.clone()));
    let looking = other.open(Timestamp(0)).unwrap().unwrap();
    assert_eq!(waited(session.extract_facts()), Vec::<String>::new());
    assert!(asked.try_recv().is_err(), "the ledger is in other hands");
    drop(looking);
    waited(session.extract_facts());
    assert!(asked.try_recv().is_ok(), "now it is looked at");
    assert_eq!(spent(&path), (1, 0.125));
    waited(session.extract_facts());
    assert!(asked.try_recv().is_err(), "once");
}

#[test]
fn the_cost_of_an_abandoned_call_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("budget.json");
    let (session, _asked, first) = studied(&path, false);
    let is_asked = matches!(waited(select(session.extract_facts(), first)), Either::Right(_));
    assert!(is_asked, "the model never answers");
    assert_eq!(spent(&path), (1, 0.125));
}
