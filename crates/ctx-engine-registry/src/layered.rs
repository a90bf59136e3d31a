//! The engine that consists of layers, in order.

use std::borrow::Cow;

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, ContextEngine, ContextView,
    EngineInfo, IngestRequest, IngestResult, Layer, Result, TurnContext,
};

/// Runs each layer on the view. The state between turns is in the view.
pub struct LayeredEngine {
    info: EngineInfo,
    layers: Vec<Box<dyn Layer>>,
}

impl LayeredEngine {
    /// Creates an engine of these layers, which it runs in this order.
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

    /// Returns the layers' ids, in order.
    pub fn layers(&self) -> impl Iterator<Item = &'static str> {
        self.layers.iter().map(|layer| layer.id())
    }
}

/// Runs each layer on the view, in order.
pub(crate) async fn run(
    layers: &[Box<dyn Layer>],
    view: &mut ContextView,
    turn: &TurnContext,
) -> Result<()> {
    for layer in layers {
        let prepared = match layer.prepare(view, turn) {
            Some(pending) => Some(pending.await?),
            None => None,
        };
        layer.apply(view, prepared, turn)?;
    }
    Ok(())
}

ctx_core::partial_debug!(
    LayeredEngine,
    it,
    id = it.info.id,
    layers = it.layers().collect::<Vec<_>>()
);

#[async_trait]
impl ContextEngine for LayeredEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    async fn ingest(&self, _: IngestRequest) -> Result<IngestResult> {
        Ok(IngestResult::default())
    }

    /// Returns false: layers read the view alone.
    fn ingests(&self) -> bool {
        false
    }

    async fn assemble(&self, mut request: AssembleRequest) -> Result<Assembled> {
        run(&self.layers, &mut request.view, &request.turn).await?;
        // A layer may have set a system prompt addition, in this request or before.
        let system_prompt_addition = request.view.system_addition().map(str::to_owned);
        Ok(Assembled { view: request.view, system_prompt_addition })
    }

    /// Uses the first layer that can compact. Drops of other layers have no summary, and are not
    /// stored.
    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        match self.layers.iter().find_map(|layer| layer.compact(&request)) {
            Some(pending) => pending.await,
            None => Ok(CompactResult::nothing("no layer of the engine compacts")),
        }
    }

    fn take_warnings(&self) -> Vec<String> {
        self.layers.iter().flat_map(|layer| layer.take_warnings()).collect()
    }
}
