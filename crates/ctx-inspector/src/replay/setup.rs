//! The settings of replays.

use ctx_config::{Config, Profile};
use ctx_core::{CounterKind, Result, Tokens};
use ctx_eval::{Baseline, ReplaySetup};
use ctx_runtime::{SessionSpec, SharedMemories, Stores, memory_session};
use ctx_session::key::FileId;
use ctx_session::{Home, Transcript};

use super::listing::ListedSession;
use crate::shape::SourceKind;

/// Configuration, home and overrides for all replays.
#[derive(Clone, Debug)]
pub struct ReplaySettings {
    /// The effective configuration.
    pub config: Config,
    /// The home of sessions, and of ctx's overlays of other programs' transcripts.
    pub home: Home,
    /// The overrides.
    pub fit: ReplayOverrides,
}

/// Overrides for all replays. Unset fields follow from the configuration and the transcript.
#[derive(Clone, Debug, Default)]
pub struct ReplayOverrides {
    /// The context window.
    pub window: Option<Tokens>,
    /// The engine.
    pub engine: Option<String>,
    /// The agent; default: the owner of the session.
    pub agent: Option<String>,
    /// The profile.
    pub profile: Option<Profile>,
    /// The counter.
    pub counter: Option<CounterKind>,
    /// The model.
    pub model: Option<String>,
}

/// Resolves all settings and builds the engine; also returns warnings. Nothing is persisted.
pub(super) fn replay_setup(
    with: &ReplaySettings,
    listed: &ListedSession,
    transcript: &Transcript,
) -> Result<(ReplaySetup, Vec<String>)> {
    let is_ours = listed.head.source == SourceKind::Store;
    let own = || listed.head.agent.clone().filter(|_| is_ours);
    let agent = with.fit.agent.clone().or_else(own);
    let mut wanted = SessionSpec {
        profile: with.fit.profile,
        counter: with.fit.counter,
        engine: with.fit.engine.clone(),
        agent: agent.clone(),
        window: with.fit.window,
        ..SessionSpec::of(transcript)?
    };
    if let Some(name) = &with.fit.model {
        wanted = wanted.with_model(name);
    }
    let resolved = wanted.in_home(&with.home, &listed.path).resolve(&with.config)?;
    resolved.check_window(None)?;
    let mut warnings: Vec<String> = resolved.warning().into_iter().collect();
    let agent = agent.unwrap_or_else(|| FileId::main().to_string());
    let name = memory_session(transcript.header.id.as_deref(), &listed.path);
    let (memories, warn) = (SharedMemories::default(), |warning| warnings.push(warning));
    let services =
        resolved.services(&memories, Stores::discarding(), (&agent, &name), None, warn)?;
    let ledger = resolved.ledger();
    let setup = ReplaySetup {
        baseline: Baseline::of(transcript, &ledger)?,
        ledger,
        engine: resolved.engine(&services)?,
        profile: resolved.profile,
        model: resolved.model,
        prices: resolved.prices,
        details: true,
    };
    Ok((setup, warnings))
}
