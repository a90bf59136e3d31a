//! Engines that follow the instructions in the newest message.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, Compacted, ContextEngine,
    EngineInfo, Error, ErrorKind, IngestRequest, IngestResult, Result,
};
use ctx_engine_registry::{BuildContext, EngineRegistration, Slot, inventory};

/// How often an engine `counted` was disposed of.
pub(super) static DISPOSED: AtomicUsize = AtomicUsize::new(0);

struct Obedient {
    info: EngineInfo,
    ingested: AtomicUsize,
}

impl Obedient {
    fn build(id: &'static str) -> Result<Arc<dyn ContextEngine>> {
        let info = EngineInfo {
            id: id.into(),
            name: "Obedient".into(),
            version: "1".into(),
            owns_compaction: true,
        };
        Ok(Arc::new(Self { info, ingested: AtomicUsize::new(0) }))
    }
}

inventory::submit! {
    EngineRegistration {
        slot: Slot::ContextEngine,
        id: "obedient",
        source: "tests",
        about: "follows the instructions in the newest message",
        build: |_: &BuildContext<'_>| Obedient::build("obedient"),
    }
}

inventory::submit! {
    EngineRegistration {
        slot: Slot::ContextEngine,
        id: "counted",
        source: "tests",
        about: "counts how often it is disposed of",
        build: |_: &BuildContext<'_>| Obedient::build("counted"),
    }
}

#[async_trait]
impl ContextEngine for Obedient {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    async fn ingest(&self, request: IngestRequest) -> Result<IngestResult> {
        let seen = self.ingested.fetch_add(1, Ordering::SeqCst);
        if request.message.plain_text() == "ingest fails once" && seen == 0 {
            return Err(Error::new(ErrorKind::Timeout, "not now").retryable());
        }
        Ok(IngestResult { ingested: true })
    }

    async fn assemble(&self, mut request: AssembleRequest) -> Result<Assembled> {
        let newest = request.view.nodes().last().map(|node| node.message()).transpose()?;
        let mut addition = None;
        match newest.map(|message| message.plain_text()).as_deref() {
            Some("fail") => {
                return Err(Error::new(ErrorKind::Contract, "the engine broke its contract")
                    .with("engine", "obedient")
                    .hint("take another"));
            }
            Some("panic") => panic!("as instructed"),
            Some("drop") => {
                request.view.drop(0, "obedient", "as instructed");
            }
            Some("add") => addition = Some("said by the engine".to_owned()),
            Some("count") => {
                addition = Some(self.ingested.load(Ordering::SeqCst).to_string());
            }
            _ => {}
        }
        Ok(Assembled { view: request.view, system_prompt_addition: addition })
    }

    /// Keeps everything from the entry named in the instructions on.
    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        let Some(kept) = request.custom_instructions else {
            return Ok(CompactResult::nothing("no entry was named"));
        };
        Ok(CompactResult {
            ok: true,
            compacted: true,
            reason: None,
            result: Some(Compacted {
                summary: "what was said before".to_owned(),
                first_kept_entry_id: kept.into(),
                tokens_before: request.view.total(),
                tokens_after: None,
                details: None,
                staying: Vec::new(),
                projections: Vec::new(),
            }),
        })
    }

    async fn dispose(&self) -> Result<()> {
        if self.info.id == "counted" {
            DISPOSED.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
