//! The engine that is nothing but layers, in order.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, Compacted, ContextEngine,
    EngineInfo, IngestRequest, IngestResult, Layer, Result,
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
        Ok(Assembled { view: request.view, system_prompt_addition: None })
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        let before = request.view.used();
        let (session_id, view, turn) = (request.session_id, request.view, request.turn);
        let assembled = self.assemble(AssembleRequest { session_id, view, turn }).await?;
        let mut view = assembled.view;
        let finished = view.finish()?;
        let Some(first) = view.nodes().first() else {
            return Ok(CompactResult::nothing("the session is empty"));
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
            }),
        })
    }
}
