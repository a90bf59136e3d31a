//! What a session contains, and how full its context is.

use std::path::Path;

use ctx_core::{EngineState, Result};
use ctx_eval::{SessionReport, StatusReport};
use ctx_runtime::Resolved;
use ctx_session::{FailedEngine, Transcript};

/// Returns the status of a transcript with the settings it would be run with.
///
/// # Errors
///
/// If the transcript cannot be read.
pub fn status(
    path: &Path,
    transcript: &Transcript,
    resolved: &Resolved,
    trouble: Option<FailedEngine>,
) -> Result<StatusReport> {
    // A recorded size determines the window: of a compaction, or of a larger prompt.
    let proof = resolved.proof.map(|proof| (proof.recorded, proof.catalogued));
    let known = StatusReport {
        session: SessionReport::of(path, transcript)?,
        engine_state: if trouble.is_some() { EngineState::Degraded } else { EngineState::Ok },
        engine_trouble: trouble,
        source: match resolved.proof {
            Some(proof) if proof.is_smaller() => "recordedCompaction".to_owned(),
            Some(_) => "recordedRequest".to_owned(),
            None => resolved.window.source.name().to_owned(),
        },
        auto_compacted_at: proof.filter(|(size, window)| size <= window).map(|(size, _)| size),
        answered_prompt: proof.filter(|(size, window)| size > window).map(|(size, _)| size),
        catalogued_window: proof.map(|(_, catalogued)| catalogued),
        should_warn: resolved.window.should_warn,
        should_block: resolved.window.should_block,
        profile: resolved.profile,
        engine: resolved.engine.id.clone(),
        engine_source: resolved.engine.source.name().to_owned(),
        ..StatusReport::default()
    };
    ctx_eval::status(transcript, &resolved.ledger(), known)
}
