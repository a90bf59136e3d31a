//! Making a request.

use ctx_core::{AssembleRequest, ChatRequest, Result, Tokens};
use tracing::Instrument;

use super::{Sent, Turn};

/// How often a request is assembled anew because it was compacted. What the second one leaves too
/// large, `finish` trims.
const LOOKS: usize = 2;

impl Turn<'_> {
    /// Assembles the next request. Its forms are kept, and so are compactions that the engine made
    /// on the way: what is sent is what the file says.
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
        let inner = self.inner();
        let mut look = 0;
        let mut is_trusted = true;
        loop {
            look += 1;
            let now = self.now();
            let mut view = self.session.take_view(&inner.home).await?;
            view.ledger_mut().set_pending(Tokens::ZERO);
            let setting = self.session.setting()?;
            let turn = self.session.turn(&inner.settings.ids, setting);
            let engine = setting.engine.clone();
            if is_trusted {
                let request = AssembleRequest { session_id: self.session.id.clone(), view, turn };
                let assembled = engine.assemble(request).await;
                self.watch();
                view = assembled?.into_view();
            }
            view.finish()?;
            let edits = view.edits().get(self.session.counted..).unwrap_or_default();
            inner.counts.edits(edits);
            if !edits.is_empty()
                && let Some(setting) = &mut self.session.setting
            {
                setting.memory.note();
            }
            self.session.counted = view.edits().len();
            self.say_warnings();
            self.session.keep_forms(&view.take_projections())?;
            let compactions = view.take_compactions();
            let again = !compactions.is_empty() && look < LOOKS;
            span.record("messages", view.len());
            span.record("tokens", view.used().get());
            span.record("window", view.ledger().window().get());
            if !compactions.is_empty() {
                let refused = Box::pin(self.store_all(compactions, &view, now)).await?;
                // What would be sent is not what the file says, whatever the engine makes of it.
                is_trusted = again || !refused;
                if again || refused {
                    continue;
                }
            }
            let system = joined(&inner.settings.system, view.system_addition());
            let manifest = view.manifest();
            self.session.sent = Some(Sent::of(&manifest));
            self.outcome.manifest = Some(manifest);
            let messages = view.messages()?;
            let card = self.session.own.models[self.model].card();
            let max_tokens = longest_answer(card.max_output, view.ledger().window() - view.used());
            self.session.view = Some(view);
            return Ok(ChatRequest {
                system,
                messages,
                tools: self.session.setting()?.specs.clone(),
                max_tokens,
                session_id: Some(self.session.id.clone()),
                thinking: self.session.own.thinking.clone(),
            });
        }
    }

    /// Remembers for other programs how the engine fared.
    pub(super) fn watch(&mut self) {
        let newest = self.session.newest;
        let Some(setting) = &mut self.session.setting else { return };
        if let Err(error) = setting.watch.note(&*setting.engine, newest) {
            setting.warnings.push(format!("how the engine fared is not remembered: {error}"));
        }
    }
}

/// Answers of models whose limit nobody knows are seldom longer.
const USUAL_ANSWER: Tokens = Tokens(16_384);

/// How long the answer may be: as long as the model has it, and no longer than what is left of the
/// window, which some providers count it to.
fn longest_answer(most: Option<Tokens>, left: Tokens) -> Option<Tokens> {
    match most {
        Some(most) => Some(most.min(left)),
        None => (left < USUAL_ANSWER).then_some(left),
    }
}

/// The system prompt with what an engine adds to it.
pub(super) fn joined(system: &Option<String>, addition: Option<&str>) -> Option<String> {
    match (system.as_deref(), addition) {
        (Some(system), Some(addition)) => Some(format!("{system}\n\n{addition}")),
        (system, addition) => system.or(addition).map(str::to_owned),
    }
}
