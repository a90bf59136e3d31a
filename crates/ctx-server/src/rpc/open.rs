//! `open`: opens a session from names and configuration.

use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{CounterKind, Error, ErrorKind, Result, Tokens};
use ctx_dialect::json::string;
use ctx_hosted::{Host, HostedSession, RecordedSession, SessionOptions, SummarySource};
use ctx_runtime::{ModelSource, SessionSpec, SharedMemories};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fit::HostList;
use super::params::Open;
use super::session::{RpcSession, Sizes};

/// The result of `open`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenResult {
    session_id: String,
    engine: Value,
    selected_by: ctx_engine_registry::SelectedBy,
    profile: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    counter: &'static str,
    #[serde(flatten)]
    sizes: Sizes,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Opens a session with the given id.
pub(super) async fn open(
    host: &Host,
    memories: Arc<SharedMemories>,
    id: String,
    given: Open<'_>,
) -> Result<(RpcSession, OpenResult)> {
    let mut recorded = match &given.session_file {
        Some(path) => RecordedSession::read(host, path)?,
        None => RecordedSession::default(),
    };
    let config = config(host, given.config.clone())?;
    let by_param: fn(Tokens) -> String = |minimum| format!("give a window of {minimum} or more");
    let options = SessionOptions {
        id,
        is_persistent: given.session_id.is_some(),
        agent: given.agent.clone(),
        config,
        spec: session_spec(&given, &mut recorded)?,
        window_hint: given.window.is_some().then_some(by_param),
        summaries: SummarySource::Configured(given.summary_model),
        recorded,
        session_file: given.session_file,
    };
    let (session, warnings) = ctx_hosted::open(host, memories, options).await?;
    let opened = opened(&session, warnings);
    Ok((
        RpcSession {
            session,
            format: given.format,
            list: HostList::new(given.format),
            was_continued: false,
        },
        opened,
    ))
}

fn opened(session: &HostedSession, warnings: Vec<String>) -> OpenResult {
    let resolved = &session.resolved;
    OpenResult {
        session_id: session.id.clone(),
        engine: session.engine_state(),
        selected_by: resolved.engine.source,
        profile: resolved.profile.name(),
        provider: resolved.provider.clone(),
        model: resolved.model.clone(),
        counter: session.ledger.counter().kind.name(),
        sizes: Sizes::of(session),
        warnings,
    }
}

fn session_spec(given: &Open<'_>, recorded: &mut RecordedSession) -> Result<SessionSpec> {
    let known = |error: Error| error.hint("give one of the known counters, or omit it");
    let counter =
        given.counter.as_deref().map(str::parse::<CounterKind>).transpose().map_err(known)?;
    let (provider, model) = match &given.model {
        Some(model) => (given.provider.clone(), Some(model.clone())),
        None => {
            let (provider, model) = recorded.model.take().unzip();
            (given.provider.clone().or(provider), model)
        }
    };
    // With an explicit window, the model may be unknown.
    let model_source = match given.model.is_some() && given.window.is_none() {
        true => ModelSource::Requested,
        false => ModelSource::Recorded,
    };
    let system = given.system_prompt.map(prompt_text);
    let tools = given.tools.map(|raw| raw.get().to_owned());
    Ok(SessionSpec {
        profile: given.profile,
        counter,
        engine: given.engine.clone(),
        agent: given.agent.clone(),
        provider,
        model,
        model_source,
        window: given.window,
        native: recorded.window,
        auto_compacted_at: None,
        answered: None,
        reserve: given.reserve_tokens,
        system: system.or_else(|| recorded.system.take()),
        tools: tools.or_else(|| recorded.tools.take()),
    })
}

/// Returns a system prompt: text, or text blocks in Anthropic's format.
pub(super) fn prompt_text(raw: &RawValue) -> String {
    match string(raw) {
        Some(text) => text.into_owned(),
        None => ctx_dialect::anthropic::system_text(raw),
    }
}

/// Returns the configuration with the overrides of this session. A host may pass untrusted
/// overrides; only the user's own file may load an engine into the process.
fn config(host: &Host, over: Option<Value>) -> Result<Config> {
    let Some(over) = over else { return Ok(host.config.clone()) };
    let engines = over.pointer("/plugins/engines").and_then(Value::as_object);
    let trusts = |engine: &Value| engine.get("trust").is_some();
    if let Some((id, _)) = engines.into_iter().flatten().find(|(_, engine)| trusts(engine)) {
        return Err(Error::new(ErrorKind::Config, "a session cannot mark an engine as trusted")
            .with("key", format!("plugins.engines.{id}.trust"))
            .hint("set it in the user's ctx.json5"));
    }
    host.config.clone().overlaid(over)
}
