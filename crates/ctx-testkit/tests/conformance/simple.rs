//! A small correct engine, with optional defects.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, BootstrapRequest, BootstrapResult, CompactRequest, CompactResult,
    Compacted, ContextEngine, ContextView, EngineInfo, Entry, EntryId, Error, ErrorKind,
    IngestRequest, IngestResult, Message, Node, Result, Role, Services, SubagentEnd,
    SummaryRequest, Tokens,
};
use ctx_testkit::conformance::Start;

/// The defect of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    VersionIsAWord,
    IdIsASentence,
    EachInstanceDiffers,
    MakesAViewOfItsOwn,
    NothingToSayIsAnError,
    RefusesSessions,
    IngestsTwice,
    LeavesTooMuch,
    DropsResults,
    DropsPinned,
    DropsSystem,
    ReadsAscii,
    DropsLineEnds,
    PanicsOverLargeMessages,
    CountsRequests,
    MixesSessions,
    TrustsItself,
    IsBusyForEver,
    WaitsForItsModel,
    LiesAboutTokens,
    ReadsEachForEach,
    Leaks,
    RepeatsItselfAfterRestart,
    CountsCommits,
    CompactsNothing,
    CutsAtNoEntry,
    SplitsGroups,
    SwellsSummaries,
    IgnoresAttempts,
    DeclinesSmallSessions,
    KnowsItsChildren,
    KeepsRolledBack,
}

/// Drops the oldest messages, and compacts to a line.
pub(crate) struct Simple {
    info: EngineInfo,
    fault: Fault,
    services: Services,
    ingested: Mutex<HashSet<(String, EntryId)>>,
    decided: Mutex<HashSet<EntryId>>,
    last_said: Mutex<String>,
    children: Mutex<HashSet<String>>,
    restarted: Mutex<HashMap<String, u64>>,
    leaked: Mutex<Vec<Vec<u8>>>,
    busy: AtomicBool,
    requests: AtomicU64,
}

/// Creates instances with a fault.
pub(crate) fn with(
    fault: Fault,
) -> impl Fn(&Start) -> Result<Arc<dyn ContextEngine>> + Send + Sync + 'static {
    let instances = AtomicU64::new(0);
    move |start| {
        let nth = instances.fetch_add(1, Ordering::Relaxed);
        let id = match fault {
            Fault::IdIsASentence => "my very own engine".to_owned(),
            Fault::EachInstanceDiffers => format!("simple-{nth}"),
            _ => "simple".to_owned(),
        };
        let version = if fault == Fault::VersionIsAWord { "latest" } else { "1.2.3" };
        let info = EngineInfo {
            id: id.into(),
            name: "Simple".into(),
            version: version.into(),
            owns_compaction: true,
        };
        Ok(Arc::new(Simple {
            info,
            fault,
            services: start.services.clone(),
            ingested: Mutex::default(),
            decided: Mutex::default(),
            last_said: Mutex::default(),
            children: Mutex::default(),
            restarted: Mutex::default(),
            leaked: Mutex::default(),
            busy: AtomicBool::default(),
            requests: AtomicU64::default(),
        }))
    }
}

impl Simple {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    async fn store(&self, key: &str, value: &[u8]) -> Result<()> {
        match &self.services.store {
            Some(store) => store.put(key, value).await,
            None => Ok(()),
        }
    }

    async fn stored(&self, key: &str) -> Result<Option<Vec<u8>>> {
        match &self.services.store {
            Some(store) => Ok(store.get(key).await?.filter(|value| !value.is_empty())),
            None => Ok(None),
        }
    }

    /// Calls a model, and waits for it without a deadline.
    async fn wait_for_model(&self) -> Result<()> {
        let models = self.services.summary_models.as_ref();
        let Some(model) = models.and_then(|models| models.chain.first()) else { return Ok(()) };
        let (system, prompt) = ("sum up".to_owned(), "all of it".to_owned());
        model.summarize(SummaryRequest { system, prompt, max_tokens: Tokens(100) }).await?;
        Ok(())
    }

    fn fit(&self, view: &mut ContextView, room: Tokens) {
        let mut decided = lock(&self.decided);
        for at in 0..view.len() {
            if view.total() <= room {
                break;
            }
            let id = view.node(at).entry().id().clone();
            if self.is(Fault::TrustsItself) && decided.contains(&id) {
                continue;
            }
            view.drop(at, "simple", "oldest");
            decided.insert(id);
        }
    }

    fn break_view(&self, session: &str, mut view: ContextView) -> Result<ContextView> {
        match self.fault {
            Fault::NothingToSayIsAnError if view.is_empty() => {
                return Err(Error::new(ErrorKind::InvalidInput, "there is nothing to assemble"));
            }
            Fault::RefusesSessions => {
                return Err(Error::new(ErrorKind::Contract, "no session, please"));
            }
            Fault::PanicsOverLargeMessages => {
                let large = view.nodes().iter().any(|node| node.tokens() > Tokens(140_000));
                assert!(!large, "attempt to subtract with overflow");
            }
            Fault::MakesAViewOfItsOwn => return copy(&view, |_| true),
            Fault::DropsResults => {
                let newest = view.nodes().iter().rev().take(8).map(|node| node.entry().id());
                let newest: HashSet<&EntryId> = newest.collect();
                let passes =
                    |node: &Node| node.results().is_empty() || newest.contains(node.entry().id());
                return copy(&view, passes);
            }
            Fault::DropsPinned => {
                return copy(&view, |node| !(node.pinned && node.role() == &Role::User));
            }
            Fault::DropsSystem => return copy(&view, |node| node.role() != &Role::System),
            Fault::ReadsAscii => {
                replace(&mut view, |text| {
                    text.chars().map(|c| if c.is_ascii() { c } else { '\u{fffd}' }).collect()
                })?;
            }
            Fault::DropsLineEnds => replace(&mut view, |text| text.replace('\r', ""))?,
            Fault::ReadsEachForEach => {
                for _ in 0..view.len() {
                    for node in view.nodes() {
                        node.message()?;
                    }
                }
            }
            Fault::Leaks => lock(&self.leaked).push(vec![1; 300_000]),
            Fault::RepeatsItselfAfterRestart => {
                if let Some(times) = lock(&self.restarted).get_mut(session) {
                    *times += 1;
                    let note = Message::text(Role::User, "what was said before the restart");
                    let entry = Entry::in_memory(format!("note-{times}"), note);
                    view.insert(view.len(), Arc::new(entry), "simple", "remembered")?;
                }
            }
            _ => {}
        }
        Ok(view)
    }

    fn addition(&self, session: &str, view: &ContextView) -> Result<Option<String>> {
        match self.fault {
            Fault::CountsRequests => {
                let n = self.requests.fetch_add(1, Ordering::Relaxed);
                Ok(Some(format!("This is request {n}.")))
            }
            Fault::MixesSessions => {
                let newest = view.nodes().iter().rfind(|node| node.is_user());
                let said = newest.map(|node| node.message()).transpose()?;
                let said = said.map(|message| message.plain_text()).unwrap_or_default();
                let mut last = lock(&self.last_said);
                let before = std::mem::replace(&mut *last, format!("{session}: {said}"));
                Ok(Some(before))
            }
            _ => Ok(None),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies the nodes of a view that `passes` accepts.
fn copy(view: &ContextView, passes: impl Fn(&Node) -> bool) -> Result<ContextView> {
    let mut copy = ContextView::new(view.ledger().clone());
    for node in view.nodes().iter().filter(|node| node.is_live() && passes(node)) {
        copy.append(Arc::clone(node.entry()))?;
        let at = copy.len().saturating_sub(1);
        if node.pinned && copy.nodes().last().is_some_and(|n| n.entry().id() == node.entry().id()) {
            copy.pin(at, "simple", "was pinned");
        }
    }
    Ok(copy)
}

fn replace(view: &mut ContextView, with: impl Fn(&str) -> String) -> Result<()> {
    for at in 0..view.len() {
        let message = view.node(at).message()?;
        let mut form = Message::clone(&message);
        for block in &mut form.blocks {
            if let ctx_core::Block::Text { text } = block {
                *text = with(text);
            }
        }
        if form != *message {
            view.replace(at, form, "simple", "cleaned")?;
        }
    }
    Ok(())
}

#[async_trait]
impl ContextEngine for Simple {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    async fn ingest(&self, request: IngestRequest) -> Result<IngestResult> {
        let is_new = lock(&self.ingested).insert((request.session_id, request.entry));
        Ok(IngestResult { ingested: is_new || self.is(Fault::IngestsTwice) })
    }

    async fn assemble(&self, request: AssembleRequest) -> Result<Assembled> {
        if self.is(Fault::IsBusyForEver) {
            if self.busy.swap(true, Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Locked, "another call is at work"));
            }
            tokio::task::yield_now().await;
            self.busy.store(false, Ordering::Relaxed);
        }
        if self.is(Fault::WaitsForItsModel) {
            self.wait_for_model().await?;
        }
        let mut view = self.break_view(&request.session_id, request.view)?;
        let system_prompt_addition = self.addition(&request.session_id, &view)?;
        let addition =
            system_prompt_addition.as_deref().map(|text| view.ledger().counter().text(text));
        let room = view.ledger().budget() - addition.unwrap_or_default();
        let room = if self.is(Fault::LeavesTooMuch) { room + Tokens(1_000) } else { room };
        self.fit(&mut view, room);
        Ok(Assembled { view, system_prompt_addition })
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        let view = &request.view;
        if view.len() < 12 {
            let declined = CompactResult {
                ok: false,
                compacted: false,
                reason: Some("the session is small".into()),
                result: None,
            };
            return Ok(match self.fault {
                Fault::DeclinesSmallSessions => declined,
                _ => CompactResult::nothing("the session is small"),
            });
        }
        let attempt = if self.is(Fault::IgnoresAttempts) { 1 } else { request.attempt };
        let wanted = request.token_budget.unwrap_or(Tokens(8_000)).get() / u64::from(attempt) / 2;
        let mut left = 0;
        let mut kept = view.len();
        while kept > 1 && left < wanted {
            kept -= 1;
            left += view.node(kept).tokens().get();
        }
        let whole = |at: &usize| view.cut_at(view.node(*at).entry().id()).is_ok();
        let cut = match self.fault {
            Fault::SplitsGroups => (kept..view.len()).find(|at| !whole(at)),
            _ => (kept..view.len()).find(whole),
        };
        let Some(first) = cut else { return Ok(CompactResult::nothing("all is recent")) };
        let first_kept_entry_id = match self.fault {
            Fault::CutsAtNoEntry => "no-such-entry".into(),
            _ => view.node(first).entry().id().clone(),
        };
        let summary = match self.fault {
            Fault::SwellsSummaries => "and then it went on ".repeat(20_000),
            _ => format!("{first} messages came before this one."),
        };
        let tokens_after = match self.fault {
            Fault::LiesAboutTokens => Some(Tokens(900_000)),
            _ => None,
        };
        let compacted = !self.is(Fault::CompactsNothing);
        Ok(CompactResult {
            ok: true,
            compacted,
            reason: None,
            result: compacted.then(|| Compacted {
                summary,
                first_kept_entry_id,
                tokens_before: view.total(),
                tokens_after,
                details: None,
                staying: Vec::new(),
                projections: Vec::new(),
            }),
        })
    }

    async fn bootstrap(&self, request: BootstrapRequest) -> Result<BootstrapResult> {
        if self.is(Fault::RepeatsItselfAfterRestart) && self.stored("turns").await?.is_some() {
            lock(&self.restarted).insert(request.session_id, 0);
        }
        Ok(BootstrapResult::default())
    }

    async fn commit_turn(&self, session_id: &str, key: &str) -> Result<()> {
        let turn = format!("{session_id}/{key}");
        let is_new = self.stored(&turn).await?.is_none();
        if is_new || self.is(Fault::CountsCommits) {
            self.store(&turn, b"committed").await?;
            let mut turns = self.stored("turns").await?.unwrap_or_default();
            turns.push(b'.');
            self.store("turns", &turns).await?;
        }
        Ok(())
    }

    async fn prepare_subagent_spawn(&self, spawn: &ctx_core::SubagentSpawn) -> Result<()> {
        let child = &spawn.child_session_key;
        lock(&self.children).insert(child.clone());
        self.store(child, b"parent").await
    }

    async fn rollback_subagent_spawn(&self, spawn: &ctx_core::SubagentSpawn) -> Result<()> {
        let child = &spawn.child_session_key;
        lock(&self.children).remove(child);
        if self.is(Fault::KeepsRolledBack) { Ok(()) } else { self.store(child, b"").await }
    }

    async fn on_subagent_ended(&self, child: &str, _: SubagentEnd) -> Result<()> {
        let was_known = lock(&self.children).remove(child);
        if !was_known && self.is(Fault::KnowsItsChildren) {
            return Err(Error::new(ErrorKind::NotFound, "unknown child"));
        }
        Ok(())
    }
}
