//! Opens the session of a conversation for a request.

use ctx_core::{Result, Tokens};
use ctx_runtime::{ModelSource, SessionSpec};

use super::Attempt;
use crate::hosted::{self, History, RecordedSession, Retain, SessionOptions, SummarySource};
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
            (state.learned, state.reported_window, state.asks) =
                (LearnedWindow::default(), None, 0);
        }
        let mut wanted = SessionSpec {
            engine: settings.engine.clone(),
            agent: settings.agent.clone(),
            model: model.map(str::to_owned),
            provider: None,
            model_source: ModelSource::Recorded,
            window: settings.window,
            ..SessionSpec::default()
        };
        let is_reported = self.ask_window(state, &wanted).await?;
        wanted.native = state.reported_window;
        if state.session.is_some() {
            if state.model.as_deref() == model && !is_reported {
                return Ok(());
            }
            // Cuts are kept, whatever happens to this request.
            state.saved = state.inherit();
            state.session = None;
        }
        let saved = state.saved.clone().within(&self.ids);
        let mut history = History::new(Retain::Digest);
        history.reserve_ids(saved.next_id);
        let window = wanted.clone().resolve(&settings.host.config)?.window.tokens;
        let by_flag: fn(Tokens) -> String = |minimum| format!("give --window {minimum} or more");
        let options = SessionOptions {
            id: conversation.id.clone(),
            is_persistent: true,
            agent: settings.agent.clone(),
            config: settings.host.config.clone(),
            wanted,
            window_hint: Some(by_flag),
            summaries: match settings.config.summaries {
                SummariesBy::Upstream => SummarySource::By(state.summaries.models(window)),
                SummariesBy::Model => SummarySource::Configured(None),
                SummariesBy::Extractive => SummarySource::Extractive,
            },
            recorded: RecordedSession {
                history,
                projections: saved.projections,
                ..RecordedSession::default()
            },
            session_file: None,
        };
        let memories = self.proxy.memories.clone();
        let (mut session, warnings) = hosted::open(&settings.host, memories, options).await?;
        for warning in warnings {
            self.proxy.warn(&warning);
        }
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

    /// Asks the server for an unknown window, and returns whether it reported it now. Some servers
    /// report only loaded models, so it is asked at several requests.
    async fn ask_window(
        &self,
        state: &mut ConversationState,
        wanted: &SessionSpec,
    ) -> Result<bool> {
        const TIMES: u32 = 3;
        let settings = &self.proxy.settings;
        if state.reported_window.is_some() || state.asks == TIMES || settings.window.is_some() {
            return Ok(false);
        }
        state.asks += 1;
        let known = wanted.clone().resolve(&settings.host.config)?;
        if known.window.source.name() != "default" {
            state.asks = TIMES;
            return Ok(false);
        }
        let model = self.request.model.as_deref().unwrap_or("(none)");
        let Some(window) = query_window(self.proxy, self.client_request, model).await else {
            let assumed = known.window.tokens;
            self.proxy.warn(&format!(
                "the window of model {model:?} is unknown, and its server does not report it: {assumed} \
                 tokens are assumed; give `ctx serve` the right number: --window N",
            ));
            return Ok(false);
        };
        // An engine has a minimum window; the effective one is the server's.
        state.reported_window = Some(window.max(known.guard.hard_min_tokens));
        state.learned.report(window);
        Ok(true)
    }
}
