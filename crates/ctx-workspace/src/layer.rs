//! Includes files of the workspace in a request.

use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{
    ContextView, Counter, Entry, EntryId, Layer, MemoryStore, Message, NodeState, Pending,
    Prepared, RecallRequest, Result, Role, Snippet, Tokens, TurnContext, Views, Warnings,
    WorkspaceAnswer, WorkspaceSearch,
};

use crate::{
    Config, ContextBlock, Placement, build_context, question_of, rank, sessions, should_search,
};
use ctx_search::block::{escaped, is_recalled};

/// Earlier blocks stay until all blocks together exceed this many times the largest block: removing
/// one breaks the provider's cached prefix from there on.
const BLOCKS_KEPT: u32 = 4;

/// Includes the workspace files that match the newest user message, if that message asks for them
/// (see [`should_search`]).
///
/// # Notes
///
/// The block is rebuilt only for a new user message. It is inserted before that message. Under
/// profile `ponybunny`, it is appended to the system prompt while the message that asked for it is
/// the newest. If the workspace cannot be searched, the block is missing and a warning is reported;
/// the request continues.
///
/// # Default
///
/// Off: `agents.defaults.workspace` names no folder.
pub struct WorkspaceLayer {
    config: Config,
    workspace: Arc<dyn WorkspaceSearch>,
    memory: Option<Arc<dyn MemoryStore>>,
    state: Mutex<LayerState>,
}

#[derive(Default)]
struct LayerState {
    views: Views<ShownContext>,
    warnings: Warnings,
}

/// The workspace state of a view.
#[derive(Default)]
struct ShownContext {
    /// The user message that was examined last.
    asked: Option<EntryId>,
    /// The blocks among its messages, oldest first.
    blocks: Vec<(EntryId, Tokens)>,
    /// The block in the system prompt.
    addition: Option<String>,
}

/// What `prepare` passes to `apply`.
struct PreparedSearch {
    newest: EntryId,
    answer: WorkspaceAnswer,
}

impl WorkspaceLayer {
    /// The layer's name in manifests.
    pub(crate) const ID: &'static str = "workspace";

    /// Returns a layer that searches `workspace`, and `memory` as well if configured.
    #[must_use]
    pub fn new(
        config: Config,
        workspace: Arc<dyn WorkspaceSearch>,
        memory: Option<Arc<dyn MemoryStore>>,
    ) -> Self {
        let memory = memory.filter(|_| config.sessions);
        Self { config, workspace, memory, state: Mutex::default() }
    }
}

impl Layer for WorkspaceLayer {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn prepare(&self, view: &ContextView, turn: &TurnContext) -> Option<Pending> {
        let node = view.node(view.newest_user_at()?);
        let newest = node.entry().id().clone();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.views.of(view).asked.as_ref() == Some(&newest) {
            return None;
        }
        let text = node.message().map(|message| message.plain_text());
        let live = view.nodes().iter().filter(|node| node.is_live());
        let request = RecallRequest {
            query: String::new(),
            now: turn.now,
            visible: live.map(|node| node.entry().id().clone()).collect(),
            min_score: 0.0,
            passages: self.config.limit as usize,
            facts: 0,
        };
        let recalled = view.nodes().iter().filter(|node| node.state() == NodeState::Inserted);
        let recalled = recalled.filter_map(|node| Some(node.message().ok()?.plain_text()));
        let search = Search {
            workspace: self.workspace.clone(),
            memory: self.memory.clone(),
            recalled: recalled.filter(|text| is_recalled(text)).collect(),
            limit: self.config.limit as usize,
        };
        Some(Box::pin(async move {
            let text = text?;
            let question = should_search(&text).and_then(|_| question_of(&text));
            let answer = match question {
                None => WorkspaceAnswer::default(),
                Some(question) => search.of(question, request).await,
            };
            Ok(Box::new(PreparedSearch { newest, answer }) as Prepared)
        }))
    }

    fn apply(
        &self,
        view: &mut ContextView,
        prepared: Option<Prepared>,
        turn: &TurnContext,
    ) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let LayerState { views, warnings } = &mut *state;
        let shown = views.of(view);
        if view.used() > view.ledger().limit() {
            // The block of the current message stays: the model relies on it.
            let past = shown.blocks.len().saturating_sub(1);
            take_out(view, shown.blocks.drain(..past));
        }
        let Some(asked) = prepared.and_then(|prepared| prepared.downcast::<PreparedSearch>().ok())
        else {
            // A request in between may have removed it.
            if self.config.placement == Placement::SystemPrompt
                && view.system_addition() != shown.addition.as_deref()
            {
                view.set_system_addition(shown.addition.clone());
            }
            return Ok(());
        };
        let PreparedSearch { newest, answer } = *asked;
        answer.warnings.into_iter().for_each(|warning| warnings.push(warning));
        match self.config.placement {
            Placement::SystemPrompt => self.add(view, shown, &answer.snippets),
            Placement::BeforeNewest => self.insert(view, shown, &answer.snippets, turn)?,
        }
        shown.asked = Some(newest);
        Ok(())
    }

    fn take_warnings(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).warnings.take()
    }
}

impl WorkspaceLayer {
    /// Returns the block, as far as it fits.
    fn block(&self, view: &ContextView, snippets: &[Snippet]) -> Option<ContextBlock> {
        let room = view.ledger().limit() - view.used();
        let counter: Counter = *view.ledger().counter();
        let cap = self.config.budget(view.ledger().window()).min(room);
        build_context(snippets, cap, &counter)
    }

    /// Replaces the block in the system prompt.
    fn add(&self, view: &mut ContextView, shown: &mut ShownContext, snippets: &[Snippet]) {
        view.set_system_addition(None);
        shown.addition = self.block(view, snippets).map(|block| block.text);
        view.set_system_addition(shown.addition.clone());
    }

    /// Inserts the block before the newest user message.
    fn insert(
        &self,
        view: &mut ContextView,
        shown: &mut ShownContext,
        snippets: &[Snippet],
        turn: &TurnContext,
    ) -> Result<()> {
        let largest = self.config.budget(view.ledger().window());
        let all = shown.blocks.iter().map(|(_, tokens)| *tokens).sum::<Tokens>();
        if !snippets.is_empty()
            && all.get() + largest.get() > largest.get() * u64::from(BLOCKS_KEPT)
        {
            take_out(view, shown.blocks.drain(..));
        }
        let Some(block) = self.block(view, snippets) else { return Ok(()) };
        let id: EntryId = turn.ids.next_id().into();
        let entry = Entry::in_memory(id.clone(), Message::text(Role::User, block.text));
        let at = view.newest_user_at().unwrap_or(view.len());
        view.insert(at, Arc::new(entry), Self::ID, words(block.snippets))?;
        shown.blocks.push((id, block.tokens));
        Ok(())
    }
}

/// The sources to search.
struct Search {
    workspace: Arc<dyn WorkspaceSearch>,
    memory: Option<Arc<dyn MemoryStore>>,
    /// Recalled text that is already in the request.
    recalled: Vec<String>,
    limit: usize,
}

impl Search {
    /// Returns the best results of all sources, ranked.
    async fn of(&self, question: &str, request: RecallRequest) -> WorkspaceAnswer {
        let mut answer = match self.workspace.search(question, self.limit).await {
            Ok(answer) => answer,
            Err(error) => WorkspaceAnswer {
                warnings: vec![format!("the workspace was not searched: {error}")],
                ..WorkspaceAnswer::default()
            },
        };
        let mut recalled = Vec::new();
        if let Some(memory) = &self.memory {
            let request = RecallRequest { query: question.to_owned(), ..request };
            match memory.recall(request).await {
                Ok(mut found) => {
                    answer.warnings.extend(found.warnings);
                    found.passages.retain(|passage| {
                        let text = escaped(passage.text.trim());
                        !self.recalled.iter().any(|block| block.contains(&*text))
                    });
                    recalled = sessions(found.passages);
                }
                Err(error) => answer.warnings.push(format!("nothing was recalled: {error}")),
            }
        }
        answer.snippets = rank(shared(answer.snippets, recalled, self.limit));
        answer
    }
}

/// Returns the best `limit` results of two sources. Their scores are not comparable, so each source
/// gets half of the places, plus those the other leaves free, and its best score is scaled to 1.
fn shared(mut files: Vec<Snippet>, mut recalled: Vec<Snippet>, limit: usize) -> Vec<Snippet> {
    for source in [&mut files, &mut recalled] {
        source.sort_by(|a, b| b.score.total_cmp(&a.score));
        let best = source.first().map_or(0.0, |best| best.score);
        if best > 0.0 && best.is_finite() {
            source.iter_mut().for_each(|snippet| snippet.score /= best);
        }
    }
    recalled.truncate((limit / 2).max(limit.saturating_sub(files.len())));
    files.truncate(limit - recalled.len());
    files.append(&mut recalled);
    files
}

fn words(snippets: usize) -> String {
    let what = if snippets == 1 { "1 snippet".to_owned() } else { format!("{snippets} snippets") };
    format!("{what} of the workspace that fit the newest message")
}

fn take_out(view: &mut ContextView, blocks: impl Iterator<Item = (EntryId, Tokens)>) {
    let ids: Vec<EntryId> = blocks.map(|(id, _)| id).collect();
    for id in ids {
        let of = |node: &ctx_core::Node| node.is_live() && *node.entry().id() == id;
        if let Some(at) = view.nodes().iter().position(of) {
            view.drop(at, WorkspaceLayer::ID, "of the workspace, for an earlier message");
        }
    }
}

ctx_core::partial_debug!(WorkspaceLayer, it, config = it.config);
