//! The verbs of a supervised engine.

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, BootstrapRequest, BootstrapResult, CompactRequest, CompactResult,
    CompactionTrigger, ContextEngine, EngineHealth, EngineInfo, IngestRequest, IngestResult,
    Result, SubagentEnd, SubagentSpawn,
};
use ctx_engine_sdk::protocol::verb;

use super::live::BackgroundCall;
use super::{CompactionOutcome, SupervisedEngine};
use crate::layered::run;

#[async_trait]
impl ContextEngine for SupervisedEngine {
    fn info(&self) -> &EngineInfo {
        self.info.get().unwrap_or(&self.claimed)
    }

    async fn ingest(&self, request: IngestRequest) -> Result<IngestResult> {
        let session_id = request.session_id.clone();
        let ingested = self.pass(Some(&session_id), BackgroundCall::Ingest(request)).await?;
        Ok(IngestResult { ingested })
    }

    async fn assemble(&self, request: AssembleRequest) -> Result<Assembled> {
        let AssembleRequest { session_id, mut view, turn } = request;
        // The system prompt addition of the last request does not count in this request.
        view.set_system_addition(None);
        let mut addition = None;
        let (base, unavailable) = match self.base_for(&turn).await {
            Ok(base) => (base, None),
            Err(unavailable) => (None, Some(unavailable)),
        };
        let is_based = base.is_some();
        if let Some(base) = base {
            let (session_id, turn) = (session_id.clone(), turn.clone());
            let assembled = base.assemble(AssembleRequest { session_id, view, turn }).await?;
            addition.clone_from(&assembled.system_prompt_addition);
            view = assembled.into_view();
        }
        let edited = match unavailable {
            None => self.edit(&session_id, &mut view, &turn, is_based).await,
            Some(unavailable) => Err(unavailable),
        };
        let why = match edited {
            Ok(own) => {
                if !is_based {
                    run(&self.layers, &mut view, &turn).await?;
                }
                view.engine = Some(self.record().note(None));
                let both: Vec<String> = addition.into_iter().chain(own).collect();
                let addition = (!both.is_empty()).then(|| both.join("\n\n"));
                return Ok(Assembled { view, system_prompt_addition: addition });
            }
            Err(unavailable) => self.strict_error(unavailable)?,
        };
        let mut assembled = if is_based {
            Assembled { view, system_prompt_addition: addition }
        } else {
            self.fallback.assemble(AssembleRequest { session_id, view, turn }).await?
        };
        assembled.view.engine = Some(self.record().note(Some(why)));
        Ok(assembled)
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        let mut live = self.live.lock().await;
        live.now = request.turn.now;
        if let Err(unavailable) = self.bring_up(&mut live).await {
            self.strict_error(unavailable)?;
        } else if live.leases.is_granted(&request.session_id) {
            // If a compaction is required and the engine makes none, the fallback compacts.
            let must = request.force || request.trigger == CompactionTrigger::Overflow;
            let outcome = live.compact(&request).await;
            if outcome.is_ok() {
                self.record().succeeded(verb::COMPACT);
            }
            match outcome {
                Ok(CompactionOutcome::Compacted(compacted)) => {
                    let result = Some(compacted);
                    return Ok(CompactResult { ok: true, compacted: true, reason: None, result });
                }
                Ok(CompactionOutcome::Nothing(reason)) if !must => {
                    return Ok(CompactResult::nothing(reason));
                }
                Ok(CompactionOutcome::Nothing(reason) | CompactionOutcome::Declined(reason)) => {
                    tracing::debug!(engine = %self.spec.id, reason, "the default engine compacts");
                }
                Err(failure) => {
                    let session_id = Some(request.session_id.as_str());
                    let unavailable = self.failed(&mut live, session_id, verb::COMPACT, failure);
                    self.strict_error(unavailable)?;
                }
            }
        }
        drop(live);
        self.fallback.compact(request).await
    }

    async fn bootstrap(&self, request: BootstrapRequest) -> Result<BootstrapResult> {
        let mut live = self.live.lock().await;
        let session_id = request.session_id.clone();
        live.add_history(request);
        let done = match self.bring_up(&mut live).await {
            Err(unavailable) => Err(unavailable),
            Ok(()) => match live.bootstrap(&session_id).await {
                Ok(done) => {
                    self.record().succeeded(verb::BOOTSTRAP);
                    Ok(done)
                }
                Err(failure) => {
                    Err(self.failed(&mut live, Some(&session_id), verb::BOOTSTRAP, failure))
                }
            },
        };
        match done {
            Ok(done) => Ok(BootstrapResult {
                bootstrapped: done.bootstrapped,
                imported_messages: done.imported_messages,
                reason: done.reason,
            }),
            Err(unavailable) => {
                let reason = Some(self.strict_error(unavailable)?);
                Ok(BootstrapResult { reason, ..BootstrapResult::default() })
            }
        }
    }

    async fn commit_turn(&self, session_id: &str, advancement_key: &str) -> Result<()> {
        self.live.lock().await.add_ended_turn(session_id, advancement_key);
        self.pass(Some(session_id), BackgroundCall::CommitTurns).await.map(drop)
    }

    async fn after_turn(&self, session_id: &str) -> Result<()> {
        let work = BackgroundCall::of_session(verb::AFTER_TURN, session_id);
        self.pass(Some(session_id), work).await.map(drop)
    }

    async fn maintain(&self, session_id: &str) -> Result<()> {
        let work = BackgroundCall::of_session(verb::MAINTAIN, session_id);
        self.pass(Some(session_id), work).await.map(drop)
    }

    async fn prepare_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        self.pass(None, BackgroundCall::spawn(verb::PREPARE_SUBAGENT_SPAWN, spawn)).await.map(drop)
    }

    async fn rollback_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        self.pass(None, BackgroundCall::spawn(verb::ROLLBACK_SUBAGENT_SPAWN, spawn)).await.map(drop)
    }

    async fn on_subagent_ended(&self, child_session_key: &str, reason: SubagentEnd) -> Result<()> {
        self.pass(None, BackgroundCall::ended(child_session_key, reason)).await.map(drop)
    }

    fn health(&self) -> Option<EngineHealth> {
        Some(self.record().health(self.fallback_id()))
    }

    fn take_warnings(&self) -> Vec<String> {
        let of_layers = self.layers.iter().flat_map(|layer| layer.take_warnings());
        self.record().take_warnings().into_iter().chain(of_layers).collect()
    }

    async fn dispose(&self) -> Result<()> {
        if let Err(failure) = self.live.lock().await.dispose().await {
            tracing::debug!(engine = %self.spec.id, %failure, "dispose failed");
        }
        self.fallback.dispose().await
    }
}
