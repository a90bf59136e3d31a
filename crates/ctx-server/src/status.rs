//! What a session contains, and how full its context is.

use std::path::Path;

use ctx_core::Result;
use ctx_eval::{SessionReport, StatusReport, StatusSetup};
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
    let setup = StatusSetup {
        engine_trouble: trouble,
        ledger: resolved.ledger(),
        source: match resolved.proof {
            Some(proof) if proof.is_smaller() => "recordedCompaction".to_owned(),
            Some(_) => "recordedRequest".to_owned(),
            None => resolved.window.source.name().to_owned(),
        },
        proof: resolved.proof.map(|proof| (proof.recorded, proof.catalogued)),
        should_warn: resolved.window.should_warn,
        should_block: resolved.window.should_block,
        profile: resolved.profile,
        engine: resolved.engine.id.clone(),
        engine_source: resolved.engine.source.name().to_owned(),
    };
    ctx_eval::status(transcript, SessionReport::of(path, transcript)?, &setup)
}
