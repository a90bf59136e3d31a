//! Opens the session of a conversation for a request.

use ctx_core::{Result, SummaryModels, Tokens};
use ctx_engine_registry::DEFAULT_ENGINE;
use ctx_hosted::{History, HostedSession, RecordedSession, Retain, SessionOptions, SummarySource};
use ctx_layers::compaction;
use ctx_runtime::{ModelSource, SessionSpec};

use super::Attempt;
use crate::proxy::config::SummariesBy;
use crate::proxy::conversation::{Conversation, ConversationState};
use crate::proxy::learned_window::LearnedWindow;
use crate::proxy::store::SavedConversation;
use crate::proxy::window_query::query_window;

impl Attempt<'_> {
    /// Opens the session, unless it is open for this model.
    pub(super) async fn open(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
    ) -> Result<()> {
        let model = self.request.model.as_deref();
        let settings = &self.proxy.settings;
        if state.model.as_deref() != model {
            state.learned = LearnedWindow::default();
            (state.reported_window, state.window_queries) = (None, 0);
        }
        let mut spec = SessionSpec {
            engine: settings.engine.clone(),
            agent: settings.agent.clone(),
            model: model.map(str::to_owned),
            provider: None,
            model_source: ModelSource::Recorded,
            window: settings.window,
            ..SessionSpec::default()
        };
        let is_reported = self.query_unknown_window(state, &spec).await?;
        spec.native = state.reported_window;
        if state.session.is_some() {
            if state.model.as_deref() == model && !is_reported {
                return Ok(());
            }
            // The cuts are kept even if this request fails.
            state.saved = state.inherit();
            state.session = None;
        }
        let saved = state.saved.clone().within(&self.ids);
        let mut history = History::new(Retain::Digest);
        history.reserve_ids(saved.next_id);
        let window = spec.clone().resolve(&settings.host.config)?.window.tokens;
        let recorded = RecordedSession {
            history,
            projections: saved.projections,
            ..RecordedSession::default()
        };
        let models = state.summaries.models(window);
        let options = self.options(conversation, spec, models, recorded);
        let memories = self.proxy.memories.clone();
        let (mut session, warnings) = ctx_hosted::open(&settings.host, memories, options).await?;
        for warning in warnings {
            self.proxy.warn(&warning);
        }
        state.compaction = self.background_config(&mut session)?;
        session.in_force = saved.in_force;
        if let Some((counted, estimated)) = saved.reported {
            session.correct(counted, estimated);
        }
        self.proxy.trace.session(self.info(&conversation.id, &session));
        state.session = Some(session);
        state.model = model.map(str::to_owned);
        state.saved = SavedConversation::default();
        Ok(())
    }

    fn options(
        &self,
        conversation: &Conversation,
        spec: SessionSpec,
        upstream: SummaryModels,
        recorded: RecordedSession,
    ) -> SessionOptions {
        let settings = &self.proxy.settings;
        SessionOptions {
            id: conversation.id.clone(),
            is_persistent: true,
            agent: settings.agent.clone(),
            config: settings.host.config.clone(),
            spec,
            window_hint: Some(|minimum| format!("give --window {minimum} or more")),
            summaries: match settings.config.summaries {
                SummariesBy::Upstream => SummarySource::By(upstream),
                SummariesBy::Model => SummarySource::Configured(None),
                SummariesBy::Extractive => SummarySource::Extractive,
            },
            recorded,
            session_file: None,
        }
    }

    /// Returns the settings of compactions in the background. Without them, requests of the session
    /// wait for summaries.
    fn background_config(&self, session: &mut HostedSession) -> Result<Option<compaction::Config>> {
        let settings = &self.proxy.settings;
        let is_built_in = session.resolved.engine.id == DEFAULT_ENGINE;
        session.waits_for_models = settings.config.background_ratio >= 1.0 || !is_built_in;
        if session.waits_for_models {
            return Ok(None);
        }
        compaction::Config::resolve(&settings.host.config).map(Some)
    }

    /// Queries the server for an unknown window. Returns whether the server reported it now. Some
    /// servers report only loaded models, so several requests repeat the query.
    async fn query_unknown_window(
        &self,
        state: &mut ConversationState,
        spec: &SessionSpec,
    ) -> Result<bool> {
        const TIMES: u32 = 3;
        let settings = &self.proxy.settings;
        let is_over = state.window_queries == TIMES;
        if state.reported_window.is_some() || is_over || settings.window.is_some() {
            return Ok(false);
        }
        state.window_queries += 1;
        let known = spec.clone().resolve(&settings.host.config)?;
        if known.window.source.name() != "default" {
            state.window_queries = TIMES;
            return Ok(false);
        }
        let model = self.request.model.as_deref().unwrap_or("(none)");
        let window = match self.request.window.map(Tokens::saturating_from) {
            None => query_window(self.proxy, self.client_request, model).await,
            by_request => by_request,
        };
        let Some(window) = window else {
            let assumed = known.window.tokens;
            self.proxy.warn(&format!(
                "the window of model {model:?} is unknown, and its server does not report it: \
                 {assumed} tokens are assumed; give `ctx serve` the right number: --window N",
            ));
            return Ok(false);
        };
        // An engine has a minimum window; the effective one is the server's.
        state.reported_window = Some(window.max(known.guard.hard_min_tokens));
        state.learned.report(window);
        Ok(true)
    }
}
