//! What of a session goes to its long-term memory, and the work on that which nobody waits for.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ctx_core::{ContextView, Entry, MemoryStore};
use ctx_memory::Leaving;
use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// So long the end of a session waits for vectors and facts that are being made. What was archived
/// is waited for in any case.
const LAST_WORK: Duration = Duration::from_secs(10);

/// So long a compaction waits until what it took out is found again.
const TAKEN_IN: Duration = Duration::from_secs(2);

/// A session's memory, if it has one: what is archived, and, beside the session's calls, vectors made
/// by a model and facts found by one.
#[derive(Default)]
pub struct Remembering {
    store: Option<Arc<dyn MemoryStore>>,
    /// What was archived of the view.
    leaving: Leaving,
    /// Whether anything was ever archived: without, there is nothing to end.
    was_used: bool,
    /// Whether something was archived that nobody has tended since.
    is_untended: bool,
    /// Whether something was compacted in which nobody has looked for facts since.
    is_unstudied: bool,
    at_work: Option<JoinHandle<Vec<String>>>,
    /// What work that begins now keeps until it ends.
    company: Option<Weak<dyn Any + Send + Sync>>,
    told: Vec<String>,
}

impl Remembering {
    /// The memory of a session.
    #[must_use]
    pub fn new(store: Option<Arc<dyn MemoryStore>>) -> Self {
        Self { store, ..Self::default() }
    }

    /// Where it archives, if it does.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<dyn MemoryStore>> {
        self.store.as_ref()
    }

    /// Has work that begins while this is there keep it until it ends: it may ask with it.
    pub fn accompany<T: Any + Send + Sync>(&mut self, company: &Arc<T>) {
        let company: Weak<T> = Arc::downgrade(company);
        self.company = Some(company);
    }

    /// Archives what has left a view, whichever engine took it out. It is on its way to the disk when
    /// this returns.
    pub fn archive(&mut self, view: &ContextView, was_compacted: bool) {
        if self.store.is_none() {
            return;
        }
        let entries = self.leaving.since(view);
        if !entries.is_empty() && !self.archive_entries(&entries) {
            self.leaving.again();
        }
        self.is_unstudied |= was_compacted;
        self.tend();
    }

    /// Archives messages. What comes next of them waits for [`tend`](Self::tend). Whether the memory
    /// took them.
    fn archive_entries(&mut self, entries: &[Arc<Entry>]) -> bool {
        let Some(store) = &self.store else { return false };
        (self.was_used, self.is_untended) = (true, true);
        let archived = store.archive(entries);
        let error = archived.err().map(|e| format!("what left the context was not archived: {e}"));
        self.told.extend(error.iter().cloned());
        error.is_none()
    }

    /// Archives what a compaction takes out, and waits until it is on disk.
    pub(crate) async fn archive_compacted(&mut self, entries: &[Arc<Entry>]) {
        if !self.archive_entries(entries) {
            return;
        }
        self.is_unstudied = true;
        if let Some(store) = &self.store
            && let Err(error) = store.flush().await
        {
            self.told.push(format!("what left the context was not archived: {error}"));
        }
    }

    /// Takes note that a layer may have archived something.
    pub(crate) fn note(&mut self) {
        (self.was_used, self.is_untended) = (true, true);
    }

    /// Waits until what was archived is found, and on disk. One that takes long goes on by itself, and
    /// one that fails is told of by who tends it.
    pub async fn taken_in(&self) {
        if let Some(store) = &self.store {
            let _ = timeout(TAKEN_IN, store.flush()).await;
        }
    }

    /// Has done beside the session's calls what none of them waits for.
    pub fn tend(&mut self) {
        let is_busy = self.at_work.as_ref().is_some_and(|work| !work.is_finished());
        if is_busy || !(self.is_untended || self.is_unstudied) {
            return;
        }
        self.reap();
        let Some(store) = self.store.clone() else { return };
        let studies = std::mem::take(&mut self.is_unstudied);
        self.is_untended = false;
        let company = self.company.as_ref().and_then(Weak::upgrade);
        self.at_work = Some(tokio::spawn(async move {
            let mut told = Vec::new();
            if let Err(error) = store.flush().await {
                told.push(format!("what left the context is kept in memory for now: {error}"));
            }
            told.extend(store.tend().await);
            if studies {
                told.extend(store.study().await);
            }
            drop(company);
            told
        }));
    }

    /// Takes over what work that is done has to tell.
    fn reap(&mut self) {
        if self.at_work.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(work) = self.at_work.take()
            && let Some(Ok(told)) = work.now_or_never()
        {
            self.told.extend(told);
        }
    }

    /// What a person should be told, each thing once.
    pub fn warnings(&mut self) -> Vec<String> {
        self.reap();
        std::mem::take(&mut self.told)
    }

    /// Waits until everything archived is on disk; what more is to be done, for a while.
    pub async fn close(&mut self) -> Vec<String> {
        let store = self.store.clone().filter(|_| self.was_used);
        let Some(store) = store else { return self.warnings() };
        if let Err(error) = store.flush().await {
            self.told.push(format!("what left the context is not all on disk: {error}"));
        }
        let last = async {
            // What came while the first was at work is for the second.
            for _ in 0..2 {
                self.tend();
                if let Some(work) = self.at_work.take() {
                    self.told.extend(work.await.unwrap_or_default());
                }
            }
        };
        if timeout(LAST_WORK, last).await.is_err() {
            self.told
                .push("memory was not tended to the end: vectors are made another time".into());
        }
        std::mem::take(&mut self.told)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use ctx_core::{
        Counter, Entry, Message, RecallRequest, Recollection, Result, Role, TokenLedger, Tokens,
    };

    use super::*;

    /// Remembers whose messages it was given.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>, Mutex<Option<Weak<()>>>);

    #[async_trait::async_trait]
    impl MemoryStore for Told {
        fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
            let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            told.extend(entries.iter().map(|entry| entry.id().to_string()));
            Ok(())
        }

        async fn recall(&self, _: RecallRequest) -> Result<Recollection> {
            Ok(Recollection::default())
        }

        async fn flush(&self) -> Result<()> {
            Ok(())
        }

        async fn study(&self) -> Vec<String> {
            let asked = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            let is_there = asked.as_ref().is_some_and(|with| with.upgrade().is_some());
            vec![if is_there { "asked".into() } else { "nobody to ask".into() }]
        }
    }

    #[tokio::test]
    async fn whoever_is_there_when_work_begins_is_there_until_it_ends() {
        let told = Arc::new(Told::default());
        let mut memory = Remembering::new(Some(told.clone()));
        let model = Arc::new(());
        *told.1.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(&model));
        memory.accompany(&model);
        memory.archive(&view(&["a", "b", "c"], 2), true);
        // The request is answered before anybody has studied.
        drop(model);
        assert_eq!(memory.close().await, ["asked"]);
        let with = told.1.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert!(with.is_some_and(|with| with.upgrade().is_none()), "and no longer");
    }

    /// A view of some messages, of which the first ones were left out.
    fn view(ids: &[&str], left_out: usize) -> ContextView {
        let ledger = TokenLedger::new(Counter::default(), Tokens(32_000), Tokens(2_000));
        let mut view = ContextView::new(ledger);
        for id in ids {
            let entry = Entry::held(*id, Message::text(Role::Assistant, format!("I am {id}")));
            view.append(Arc::new(entry)).unwrap();
        }
        (0..left_out).for_each(|at| {
            view.drop(at, "engine", "for the test");
        });
        view.finish().unwrap();
        view
    }

    #[tokio::test]
    async fn a_view_that_was_made_anew_has_a_past_of_its_own() {
        let told = Arc::new(Told::default());
        let mut memory = Remembering::new(Some(told.clone()));
        memory.archive(&view(&["a", "b", "c", "d"], 3), false);
        // What was told differs now: the host went back, and the engine left out something else.
        let later = view(&["x", "y", "d"], 2);
        memory.archive(&later, false);
        memory.archive(&later, false);
        let told = told.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert_eq!(told, ["a", "b", "c", "x", "y"]);
    }
}
