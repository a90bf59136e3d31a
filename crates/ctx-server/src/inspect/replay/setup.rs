//! What a transcript is replayed with.

use ctx_core::{CounterKind, Profile, Result, Tokens};
use ctx_engine_registry::Config;
use ctx_eval::Baseline;
use ctx_runtime::{Memories, Stores, Wanted, memory_session};
use ctx_session::Transcript;
use ctx_session::key::FileId;
use ctx_session::paths::Home;

use super::listed::Listed;
use crate::inspect::shape::SourceKind;

/// Configuration, home, and what is wanted of every session.
#[derive(Clone, Debug)]
pub struct With {
    /// The configuration in force.
    pub config: Config,
    /// Where sessions are, and what ctx keeps beside files of others.
    pub home: Home,
    /// What the context is fitted to.
    pub fit: Fit,
}

/// What the context is fitted to; what is absent follows from configuration and transcript.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    /// The model's window.
    pub window: Option<Tokens>,
    /// The engine.
    pub engine: Option<String>,
    /// The agent; without one that whose session it is.
    pub agent: Option<String>,
    /// The profile.
    pub profile: Option<Profile>,
    /// The counter.
    pub counter: Option<CounterKind>,
    /// The model.
    pub model: Option<String>,
}

/// What the replay is made with, and what is to be told of it.
pub(super) struct Fitted {
    pub(super) setup: ctx_eval::Setup,
    pub(super) warnings: Vec<String>,
}

/// Settles everything and builds the engine. Nothing that it does stays anywhere.
pub(super) fn fitted(with: &With, listed: &Listed, transcript: &Transcript) -> Result<Fitted> {
    let is_ours = listed.head.source == SourceKind::Store;
    let own = || listed.head.agent.clone().filter(|_| is_ours);
    let agent = with.fit.agent.clone().or_else(own);
    let mut wanted = Wanted {
        profile: with.fit.profile,
        counter: with.fit.counter,
        engine: with.fit.engine.clone(),
        agent: agent.clone(),
        window: with.fit.window,
        ..Wanted::of(transcript)?
    };
    if let Some(name) = &with.fit.model {
        wanted = wanted.with_model(name);
    }
    let resolved = wanted.resolve(&with.config)?;
    resolved.check_window(None)?;
    let mut warnings: Vec<String> = resolved.warning().into_iter().collect();
    let agent = agent.unwrap_or_else(|| FileId::main().to_string());
    let name = memory_session(transcript.header().id.as_deref(), &listed.path);
    let (memories, warn) = (Memories::default(), |told| warnings.push(told));
    let services = resolved.services(&memories, Stores::passing(), (&agent, &name), None, warn)?;
    let ledger = resolved.ledger();
    let setup = ctx_eval::Setup {
        baseline: Baseline::of(transcript, &ledger)?,
        ledger,
        engine: resolved.engine(&services)?,
        profile: resolved.profile,
        model: resolved.model,
        prices: resolved.prices,
        details: true,
    };
    Ok(Fitted { setup, warnings })
}
