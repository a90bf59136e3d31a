//! The engine that is nothing but layers, in order.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, Compacted, ContextEngine,
    EngineInfo, IngestRequest, IngestResult, Layer, Result, Role,
};

/// Runs each layer over the view. It keeps nothing between turns: the view does.
pub struct LayeredEngine {
    info: EngineInfo,
    layers: Vec<Box<dyn Layer>>,
}

impl LayeredEngine {
    /// An engine of the given layers, run in the order given.
    #[must_use]
    pub fn new(
        id: impl Into<Cow<'static, str>>,
        name: impl Into<Cow<'static, str>>,
        layers: Vec<Box<dyn Layer>>,
    ) -> Self {
        let info = EngineInfo {
            id: id.into(),
            name: name.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            owns_compaction: false,
        };
        Self { info, layers }
    }

    /// The layers' ids, in order.
    pub fn layers(&self) -> impl Iterator<Item = &'static str> {
        self.layers.iter().map(|layer| layer.id())
    }
}

impl fmt::Debug for LayeredEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredEngine")
            .field("id", &self.info.id)
            .field("layers", &self.layers().collect::<Vec<_>>())
            .finish()
    }
}

#[async_trait]
impl ContextEngine for LayeredEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    async fn ingest(&self, _: IngestRequest) -> Result<IngestResult> {
        Ok(IngestResult::default())
    }

    async fn assemble(&self, mut request: AssembleRequest) -> Result<Assembled> {
        for layer in &self.layers {
            let prepared = match layer.prepare(&request.view, &request.turn) {
                Some(pending) => Some(pending.await?),
                None => None,
            };
            layer.apply(&mut request.view, prepared, &request.turn)?;
        }
        // A layer may have put something beside the system prompt, in this request or before.
        let system_prompt_addition = request.view.system_addition().map(str::to_owned);
        Ok(Assembled { view: request.view, system_prompt_addition })
    }

    /// The first layer that can compact does. Where none can, what the layers leave out when the
    /// request is assembled is all there is.
    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        if let Some(pending) = self.layers.iter().find_map(|layer| layer.compact(&request)) {
            return pending.await;
        }
        let before = request.view.used();
        let (session_id, view, turn) = (request.session_id, request.view, request.turn);
        let assembled = self.assemble(AssembleRequest { session_id, view, turn }).await?;
        let mut view = assembled.view;
        let finished = view.finish()?;
        // System messages stand before all history and always stay: they say nothing of the cut.
        let mut history = view.nodes().iter().filter(|n| n.is_live() && n.role() != &Role::System);
        let Some(first) = history.next() else {
            return Ok(CompactResult::nothing("the session holds no history"));
        };
        if finished.tokens >= before {
            return Ok(CompactResult::nothing("the session is small enough"));
        }
        Ok(CompactResult {
            ok: true,
            compacted: true,
            reason: None,
            result: Some(Compacted {
                summary: String::new(),
                first_kept_entry_id: first.entry().id().clone(),
                tokens_before: before,
                tokens_after: Some(finished.tokens),
                details: None,
                staying: Vec::new(),
                projections: Vec::new(),
            }),
        })
    }

    fn take_warnings(&self) -> Vec<String> {
        self.layers.iter().flat_map(|layer| layer.take_warnings()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use ctx_core::{
        CompactionTrigger, ContextView, Counter, Entry, Message, Prepared, SequentialIds,
        Timestamp, TokenLedger, Tokens, TurnContext,
    };

    use super::*;

    struct DropOldest;

    impl Layer for DropOldest {
        fn id(&self) -> &'static str {
            "drop-oldest"
        }
        fn apply(
            &self,
            view: &mut ContextView,
            _: Option<Prepared>,
            _: &TurnContext,
        ) -> Result<()> {
            let oldest = view.nodes().iter().position(|n| n.role() == &Role::User);
            if let Some(oldest) = oldest {
                view.drop(oldest, self.id(), "old");
            }
            Ok(())
        }
    }

    fn compacted(roles: &[Role]) -> CompactResult {
        let ledger = TokenLedger::new(Counter::default(), Tokens(32_000), Tokens(8_000));
        let mut view = ContextView::new(ledger);
        for (at, role) in roles.iter().enumerate() {
            let message = Message::text(role.clone(), format!("message {at}"));
            view.append(Arc::new(Entry::held(format!("e{at}"), message))).unwrap();
        }
        let turn = TurnContext {
            now: Timestamp(0),
            last_request: None,
            ids: Arc::new(SequentialIds::default()),
            profile: Default::default(),
        };
        let request = CompactRequest::new("s", view, turn, CompactionTrigger::Manual);
        let engine = LayeredEngine::new("t", "t", vec![Box::new(DropOldest)]);
        let mut compact = pin!(engine.compact(request));
        match compact.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result.unwrap(),
            Poll::Pending => panic!("layers without a prepare wait for nothing"),
        }
    }

    #[test]
    fn the_first_kept_entry_is_one_that_was_kept() {
        let first_kept = |roles: &[Role]| {
            let result = compacted(roles).result.expect("something was left out");
            result.first_kept_entry_id.to_string()
        };
        assert_eq!(first_kept(&[Role::User, Role::Assistant, Role::User]), "e1");
        assert_eq!(first_kept(&[Role::System, Role::User, Role::Assistant, Role::User]), "e2");
    }

    #[test]
    fn a_session_without_history_is_not_compacted() {
        assert!(!compacted(&[Role::System]).compacted);
    }
}
