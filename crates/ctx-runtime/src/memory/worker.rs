//! Archives a session in its long-term memory, and runs the background work on the archive.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ctx_core::{ContextView, Entry, MemoryStore};
use ctx_memory::DepartedMessages;
use futures_util::FutureExt;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long the end of a session waits for pending vectors and facts. It always waits for
/// archiving.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a compaction waits until the messages it removed can be found.
const SEARCHABLE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session's memory, if it has one: the archive and, in the background, vectors and facts made by
/// models.
#[derive(Default)]
pub struct MemoryWorker {
    store: Option<Arc<dyn MemoryStore>>,
    /// The messages of the view that are already archived.
    left_view: DepartedMessages,
    /// Whether anything was archived; if not, closing has nothing to do.
    was_used: bool,
    /// Whether something was archived since the last background work.
    needs_maintenance: bool,
    /// Whether something was compacted since the last extraction of facts.
    needs_extraction: bool,
    task: Option<JoinHandle<Vec<String>>>,
    /// A value that new background work keeps alive until it ends.
    kept_alive: Option<Weak<dyn Any + Send + Sync>>,
    warnings: Vec<String>,
}

impl MemoryWorker {
    /// Creates it for the memory of a session.
    pub fn new(store: Option<Arc<dyn MemoryStore>>) -> Self {
        Self { store, ..Self::default() }
    }

    /// Returns the memory store, if there is one.
    pub fn store(&self) -> Option<&Arc<dyn MemoryStore>> {
        self.store.as_ref()
    }

    /// Keeps `value` alive while background work that uses it runs.
    pub fn keep_alive<T: Any + Send + Sync>(&mut self, value: &Arc<T>) {
        let value: Weak<T> = Arc::downgrade(value);
        self.kept_alive = Some(value);
    }

    /// Archives the messages that left a view, whichever engine removed them. When this returns,
    /// they are queued for the disk.
    pub fn archive(&mut self, view: &ContextView, was_compacted: bool) {
        if self.store.is_none() {
            return;
        }
        let entries = self.left_view.take_new(view);
        if !entries.is_empty() && !self.archive_entries(&entries) {
            self.left_view.reset();
        }
        self.needs_extraction |= was_compacted;
        self.maintain();
    }

    /// Archives messages; further work on them waits for [`maintain`](Self::maintain). Returns
    /// whether the memory accepted them.
    fn archive_entries(&mut self, entries: &[Arc<Entry>]) -> bool {
        let Some(store) = &self.store else { return false };
        (self.was_used, self.needs_maintenance) = (true, true);
        let archived = store.archive(entries);
        let error = archived
            .err()
            .map(|e| format!("messages that left the context were not archived: {e}"));
        self.warnings.extend(error.iter().cloned());
        error.is_none()
    }

    /// Archives the messages that a compaction removes, and waits until they are on disk.
    pub(crate) async fn archive_compacted(&mut self, entries: &[Arc<Entry>]) {
        if !self.archive_entries(entries) {
            return;
        }
        self.needs_extraction = true;
        if let Some(store) = &self.store
            && let Err(error) = store.flush().await
        {
            self.warnings
                .push(format!("messages that left the context were not archived: {error}"));
        }
    }

    /// Records that a layer may have archived something.
    pub(crate) fn mark_used(&mut self) {
        (self.was_used, self.needs_maintenance) = (true, true);
    }

    /// Waits until archived messages can be found and are on disk. Slow work continues in the
    /// background, and `maintain` reports failures.
    pub async fn wait_until_searchable(&self) {
        if let Some(store) = &self.store {
            let _ = timeout(SEARCHABLE_TIMEOUT, store.flush()).await;
        }
    }

    /// Starts the pending work in the background.
    pub fn maintain(&mut self) {
        let is_busy = self.task.as_ref().is_some_and(|work| !work.is_finished());
        if is_busy || !(self.needs_maintenance || self.needs_extraction) {
            return;
        }
        self.collect_warnings();
        let Some(store) = self.store.clone() else { return };
        let extracts = std::mem::take(&mut self.needs_extraction);
        self.needs_maintenance = false;
        let kept_alive = self.kept_alive.as_ref().and_then(Weak::upgrade);
        self.task = Some(tokio::spawn(async move {
            let mut warnings = Vec::new();
            if let Err(error) = store.flush().await {
                warnings
                    .push(format!("messages that left the context are not on disk yet: {error}"));
            }
            warnings.extend(store.maintain().await);
            if extracts {
                warnings.extend(store.extract_facts().await);
            }
            drop(kept_alive);
            warnings
        }));
    }

    /// Collects the warnings of finished work.
    fn collect_warnings(&mut self) {
        if self.task.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(work) = self.task.take()
            && let Some(Ok(warnings)) = work.now_or_never()
        {
            self.warnings.extend(warnings);
        }
    }

    /// Returns warnings for the user, each only once.
    pub fn warnings(&mut self) -> Vec<String> {
        self.collect_warnings();
        std::mem::take(&mut self.warnings)
    }

    /// Waits until everything archived is on disk, and a limited time for the remaining work.
    pub async fn close(&mut self) -> Vec<String> {
        let store = self.store.clone().filter(|_| self.was_used);
        let Some(store) = store else { return self.warnings() };
        if let Err(error) = store.flush().await {
            self.warnings
                .push(format!("some messages that left the context are not on disk: {error}"));
        }
        let last = async {
            // The second round handles what arrived during the first.
            for _ in 0..2 {
                self.maintain();
                if let Some(work) = self.task.take() {
                    self.warnings.extend(work.await.unwrap_or_default());
                }
            }
        };
        if timeout(CLOSE_TIMEOUT, last).await.is_err() {
            self.warnings.push(
                "memory maintenance is incomplete: missing vectors are computed later".into(),
            );
        }
        std::mem::take(&mut self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use ctx_core::{
        Counter, Entry, Message, RecallRequest, Recollection, Result, Role, TokenLedger, Tokens,
    };

    use super::*;

    /// Records the messages it received.
    #[derive(Default)]
    struct RecordedMemory(Mutex<Vec<String>>, Mutex<Option<Weak<()>>>);

    #[async_trait::async_trait]
    impl MemoryStore for RecordedMemory {
        fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
            let mut archived = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            archived.extend(entries.iter().map(|entry| entry.id().to_string()));
            Ok(())
        }

        async fn recall(&self, _: RecallRequest) -> Result<Recollection> {
            Ok(Recollection::default())
        }

        async fn flush(&self) -> Result<()> {
            Ok(())
        }

        async fn extract_facts(&self) -> Vec<String> {
            let model = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            let is_alive = model.as_ref().is_some_and(|model| model.upgrade().is_some());
            vec![if is_alive { "the model was alive".into() } else { "dropped".into() }]
        }
    }

    #[tokio::test]
    async fn a_kept_value_lives_until_background_work_ends() {
        let store = Arc::new(RecordedMemory::default());
        let mut memory = MemoryWorker::new(Some(store.clone()));
        let model = Arc::new(());
        *store.1.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::downgrade(&model));
        memory.keep_alive(&model);
        memory.archive(&view(&["a", "b", "c"], 2), true);
        // The request is answered before facts are extracted.
        drop(model);
        assert_eq!(memory.close().await, ["the model was alive"]);
        let model = store.1.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert!(model.is_some_and(|model| model.upgrade().is_none()), "it is dropped at the end");
    }

    /// Creates a view of messages, with the first ones dropped.
    fn view(ids: &[&str], dropped: usize) -> ContextView {
        let ledger = TokenLedger::new(Counter::default(), Tokens(32_000), Tokens(2_000));
        let mut view = ContextView::new(ledger);
        for id in ids {
            let entry = Entry::in_memory(*id, Message::text(Role::Assistant, format!("I am {id}")));
            view.append(Arc::new(entry)).unwrap();
        }
        (0..dropped).for_each(|at| {
            view.drop(at, "engine", "for the test");
        });
        view.finish().unwrap();
        view
    }

    #[tokio::test]
    async fn another_view_archives_its_own_removed_messages() {
        let store = Arc::new(RecordedMemory::default());
        let mut memory = MemoryWorker::new(Some(store.clone()));
        memory.archive(&view(&["a", "b", "c", "d"], 3), false);
        // The request differs now: the host went back, and the engine dropped other messages.
        let later = view(&["x", "y", "d"], 2);
        memory.archive(&later, false);
        memory.archive(&later, false);
        let archived = store.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert_eq!(archived, ["a", "b", "c", "x", "y"]);
    }
}
