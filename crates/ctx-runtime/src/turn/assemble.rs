//! Assembles a request.

use ctx_core::text::Slice;
use ctx_core::{AssembleRequest, ChatRequest, ContextView, Result, Tokens};
use tracing::Instrument;

use super::Turn;
use crate::session::SentRequest;

/// Maximum number of times that the engine assembles one request: once, and again after a
/// compaction. `finish` trims what is still too large.
const MAX_ATTEMPTS: usize = 2;

impl Turn<'_> {
    /// Assembles the next request. Its projections and the engine's compactions are stored, so the
    /// request always matches the file.
    pub(super) async fn assemble(&mut self) -> Result<ChatRequest> {
        let span = tracing::debug_span!(
            "assemble",
            session = %self.session.id,
            messages = tracing::field::Empty,
            tokens = tracing::field::Empty,
            window = tracing::field::Empty,
        );
        self.assembled(&span).instrument(span.clone()).await
    }

    async fn assembled(&mut self, span: &tracing::Span) -> Result<ChatRequest> {
        let pool = self.pool;
        let mut attempt = 0;
        let mut is_trusted = true;
        loop {
            attempt += 1;
            let now = self.now();
            let mut view = self.session.take_view(&pool.home).await?;
            view.ledger_mut().pending = Tokens::ZERO;
            let setup = self.session.setup()?;
            let turn = self.session.turn(&pool.settings.ids);
            let engine = setup.engine.clone();
            if is_trusted {
                let request = AssembleRequest { session_id: self.session.id.clone(), view, turn };
                let assembled = engine.assemble(request).await;
                self.record_health();
                view = assembled?.into_view();
            }
            view.finish()?;
            self.count_edits(&view);
            self.notify_warnings();
            self.session.store_projections(&view.take_projections())?;
            let compactions = view.take_compactions();
            let again = !compactions.is_empty() && attempt < MAX_ATTEMPTS;
            span.record("messages", view.len());
            span.record("tokens", view.used().get());
            span.record("window", view.ledger().window().get());
            if !compactions.is_empty() {
                let refused = Box::pin(self.store_all(compactions, &view, now)).await?;
                // After a rejected compaction the request does not match the file. The last attempt
                // does without the engine.
                is_trusted = again || !refused;
                if again || refused {
                    continue;
                }
            }
            let system = joined(&pool.settings.system, view.system_addition());
            let manifest = view.manifest();
            self.session.sent = Some(SentRequest::of(&manifest));
            self.outcome.manifest = Some(manifest);
            let messages = view.messages()?;
            let card = self.session.overrides.models[self.model].card();
            let max_tokens = longest_answer(card.max_output, view.ledger().window() - view.used());
            self.session.view = Some(view);
            return Ok(ChatRequest {
                system,
                messages,
                tools: self.session.setup()?.specs.clone(),
                max_tokens,
                session_id: Some(self.session.id.clone()),
                thinking: self.session.overrides.thinking.clone(),
            });
        }
    }

    /// Counts the edits that this assembly added.
    fn count_edits(&mut self, view: &ContextView) {
        let edits = view.edits().slice(self.session.counted..);
        self.pool.layers.edits(edits);
        if !edits.is_empty()
            && let Some(setup) = &mut self.session.setup
        {
            setup.memory.mark_used();
        }
        self.session.counted = view.edits().len();
    }

    /// Records the engine's health for other programs.
    pub(super) fn record_health(&mut self) {
        let newest = self.session.newest;
        let Some(setup) = &mut self.session.setup else { return };
        if let Err(error) = setup.health.record(&*setup.engine, newest) {
            setup.warnings.push(format!("cannot record the engine's health: {error}"));
        }
    }
}

/// Default answer limit for models whose limit is unknown.
const USUAL_ANSWER: Tokens = Tokens(16_384);

/// Returns the answer limit: the model's maximum, but no more than the rest of the window, as some
/// providers count the answer as part of it.
fn longest_answer(most: Option<Tokens>, left: Tokens) -> Option<Tokens> {
    match most {
        Some(most) => Some(most.min(left)),
        None => (left < USUAL_ANSWER).then_some(left),
    }
}

/// Returns the system prompt with the engine's addition.
pub(super) fn joined(system: &Option<String>, addition: Option<&str>) -> Option<String> {
    match (system.as_deref(), addition) {
        (Some(system), Some(addition)) => Some(format!("{system}\n\n{addition}")),
        (system, addition) => system.or(addition).map(str::to_owned),
    }
}
