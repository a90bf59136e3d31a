//! `open`: from names and configuration to a session.

use std::sync::Arc;

use ctx_core::{CounterKind, Error, ErrorKind, Result, Tokens};
use ctx_dialect::json::string;
use ctx_engine_registry::{Config, Selection};
use ctx_runtime::{Asked, Memories, Wanted};
use serde::Serialize;
use serde_json::Value;

use super::params::Open;
use super::session::Served;
use crate::hosted::{self, Host, Opening, Recorded, Session, Summaries};

/// What a session was opened with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    session_id: String,
    engine: Value,
    selected_by: ctx_engine_registry::SelectedBy,
    profile: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    counter: &'static str,
    window: Tokens,
    /// Who said how large the window is.
    source: &'static str,
    reserve: Tokens,
    limit: Tokens,
    system: Tokens,
    tools: Tokens,
    /// Messages that the session file brought.
    messages: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Opens a session under the id given.
pub(super) async fn open(
    host: &Host,
    memories: Arc<Memories>,
    id: String,
    given: Open<'_>,
) -> Result<(Served, Opened)> {
    let mut recorded = match &given.session_file {
        Some(path) => Recorded::read(host, path)?,
        None => Recorded::default(),
    };
    let config = config(host, given.config.clone())?;
    let by_param: fn(Tokens) -> String = |minimum| format!("give a window of {minimum} or more");
    let opening = Opening {
        id,
        is_kept: given.session_id.is_some(),
        agent: given.agent.clone(),
        config,
        wanted: wanted(&given, &mut recorded)?,
        window_hint: given.window.is_some().then_some(by_param),
        summaries: Summaries::Configured(given.summary_model),
        recorded,
        session_file: given.session_file,
    };
    let (session, warnings) = hosted::open(host, memories, opening).await?;
    let opened = opened(&session, warnings);
    Ok((Served { session, format: given.format }, opened))
}

fn opened(session: &Session, warnings: Vec<String>) -> Opened {
    let (ledger, resolved) = (&session.ledger, &session.resolved);
    let Selection { source: selected_by, .. } = resolved.engine;
    Opened {
        session_id: session.id.clone(),
        engine: session.engine_state(),
        selected_by,
        profile: resolved.profile.name(),
        provider: resolved.provider.clone(),
        model: resolved.model.clone(),
        counter: ledger.counter().kind().name(),
        window: ledger.window(),
        source: resolved.window.source.name(),
        reserve: ledger.reserve(),
        limit: ledger.limit(),
        system: ledger.system(),
        tools: ledger.tools(),
        messages: session.history.len(),
        warnings,
    }
}

fn wanted(given: &Open<'_>, recorded: &mut Recorded) -> Result<Wanted> {
    let known = |error: Error| error.hint("give one of the known counters, or none");
    let counter =
        given.counter.as_deref().map(str::parse::<CounterKind>).transpose().map_err(known)?;
    let (provider, model) = match &given.model {
        Some(model) => (given.provider.clone(), Some(model.clone())),
        None => {
            let (provider, model) = recorded.model.take().unzip();
            (given.provider.clone().or(provider), model)
        }
    };
    // Who says how large the window is may name a model that nobody knows.
    let asked = match given.model.is_some() && given.window.is_none() {
        true => Asked::ByName,
        false => Asked::InPassing,
    };
    let system = given.system_prompt.map(|raw| match string(raw) {
        Some(text) => text.into_owned(),
        None => ctx_dialect::anthropic::system_text(raw),
    });
    let tools = given.tools.map(|raw| raw.get().to_owned());
    Ok(Wanted {
        profile: given.profile,
        counter,
        engine: given.engine.clone(),
        agent: given.agent.clone(),
        provider,
        model,
        asked,
        window: given.window,
        native: recorded.window,
        auto_compacted_at: None,
        answered: None,
        reserve: given.reserve_tokens,
        system: system.or_else(|| recorded.system.take()),
        tools: tools.or_else(|| recorded.tools.take()),
    })
}

/// The configuration in force, with the keys of this session over it. A host passes on what it
/// found somewhere; only the user's own file may let an engine into the process.
fn config(host: &Host, over: Option<Value>) -> Result<Config> {
    let Some(over) = over else { return Ok(host.config.clone()) };
    let engines = over.pointer("/plugins/engines").and_then(Value::as_object);
    let trusts = |engine: &Value| engine.get("trust").is_some();
    if let Some((id, _)) = engines.into_iter().flatten().find(|(_, engine)| trusts(engine)) {
        return Err(Error::new(ErrorKind::Config, "a session cannot trust an engine")
            .with("key", format!("plugins.engines.{id}.trust"))
            .hint("set it in ctx.json5, which is the user's own"));
    }
    host.config.clone().overlaid(over)
}
