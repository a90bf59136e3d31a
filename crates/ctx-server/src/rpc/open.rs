//! `open`: from names and configuration to a session.

use std::collections::HashMap;
use std::sync::Arc;

use ctx_core::{
    BootstrapRequest, CounterKind, Error, ErrorKind, MemoryStore, Projection, Result, Services,
    Store, SummaryModels, Tokens,
};
use ctx_dialect::json::string;
use ctx_engine_registry::{Config, Selection};
use ctx_runtime::{
    Asked, EngineWatch, Memories, MemoryAt, Resolved, Wanted, summary_models, workspace_search,
};
use ctx_session::blobs::FileBlobs;
use ctx_session::key::FileId;
use ctx_session::log::RandomIds;
use ctx_session::values::{FileStore, PassingStore};
use serde::Serialize;
use serde_json::Value;

use super::Host;
use super::history::History;
use super::memory::Remembering;
use super::params::Open;
use super::session::{Sent, Session};

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

/// What a session file brings.
#[derive(Default)]
struct Recorded {
    history: History,
    forms: Vec<Projection>,
    model: Option<(String, String)>,
    window: Option<Tokens>,
    system: Option<String>,
    tools: Option<String>,
}

/// Opens a session under the id given.
pub(super) async fn open(
    host: &Host,
    memories: Arc<Memories>,
    id: String,
    given: Open<'_>,
) -> Result<(Session, Opened)> {
    let mut recorded = match &given.session_file {
        Some(path) => read(host, path)?,
        None => Recorded::default(),
    };
    let config = config(host, given.config.clone())?;
    let (resolved, mut warnings) = {
        let wanted = wanted(&given, &mut recorded)?;
        let resolved = wanted.resolve(config)?;
        let by_param: fn(Tokens) -> String =
            |minimum| format!("give a window of {minimum} or more");
        resolved.check_window(given.window.is_some().then_some(by_param))?;
        let warnings: Vec<String> = resolved.warning().into_iter().collect();
        (resolved, warnings)
    };
    let writers =
        summary_models(&resolved.config, given.summary_model.as_deref(), given.model.as_deref())?;
    for error in writers.iter().flat_map(|writers| &writers.missing) {
        warnings.push(format!("a fallback is left out: {error}"));
    }
    let agent = match &given.agent {
        Some(agent) => FileId::new(agent.clone())?,
        None => FileId::main(),
    };
    // What nobody can ask for again is kept nowhere.
    let store: Arc<dyn Store> = match given.session_id {
        Some(_) => Arc::new(FileStore::at(host.home.store_dir(&agent))),
        None => Arc::<PassingStore>::default(),
    };
    let indexes = host.home.workspaces_dir(&agent);
    let warn = |warning| warnings.push(warning);
    let workspace = workspace_search(&resolved.config, &indexes, resolved.counter, warn);
    let workspace = workspace.unwrap_or_else(|error| {
        warnings.push(format!("the workspace is left out: {error}"));
        None
    });
    let models = writers.map(|writers| writers.models);
    let at = match given.session_id {
        Some(_) => MemoryAt::Folder(host.home.memory_dir(&agent)),
        None => MemoryAt::Nowhere,
    };
    let memory = Memory { resolved: resolved.clone(), at, models: models.clone() };
    let (memory, told) = memory.open(memories, agent.to_string(), id.clone()).await?;
    warnings.extend(told);
    let services = Services {
        workspace,
        memory: memory.clone(),
        store: Some(store),
        blobs: Some(Arc::new(FileBlobs::at(host.home.tool_results_dir(&agent)))),
        summary_models: models,
        ..Services::default()
    };
    let engine = resolved.engine(&services)?;
    let file = given.session_file.as_ref().map(|path| path.display().to_string());
    if let Some(file) = file {
        let request = BootstrapRequest { session_id: id.clone(), session_file: Some(file) };
        let done = engine.bootstrap(request).await?;
        if done.bootstrapped {
            recorded.history.all_ingested();
        }
    }
    let last_request = recorded.history.items().iter().rev().find_map(|i| i.entry.timestamp());
    let forms: HashMap<_, _> =
        recorded.forms.into_iter().map(|form| (form.key.clone(), form)).collect();
    let session = Session {
        id,
        watch: EngineWatch::new(&host.home),
        untold: None,
        engine,
        memory: Remembering::new(memory),
        ledger: resolved.ledger(),
        resolved,
        format: given.format,
        history: recorded.history,
        ids: Arc::new(RandomIds),
        forms,
        view: None,
        edits_told: 0,
        in_force: None,
        compactions: 0,
        last_request,
        sent: Sent::default(),
    };
    let opened = opened(&session, warnings);
    Ok((session, opened))
}

/// A memory that is wanted.
struct Memory {
    resolved: Resolved,
    at: MemoryAt,
    models: Option<SummaryModels>,
}

impl Memory {
    /// Opens it, with what a person should be told. A model may have to be loaded for it: other
    /// sessions go on meanwhile.
    async fn open(
        self,
        memories: Arc<Memories>,
        agent: String,
        session: String,
    ) -> Result<(Option<Arc<dyn MemoryStore>>, Vec<String>)> {
        let work = move || {
            let (Self { resolved, at, models }, mut told) = (self, Vec::new());
            let (names, warn) = ((&*agent, &*session), |warning| told.push(warning));
            let memory = memories.of_session(&resolved, &at, names, models.as_ref(), warn)?;
            Ok((memory, told))
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| Error::new(ErrorKind::Io, "the memory was not opened").source(error))?
    }
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
        reserve: given.reserve_tokens,
        system: system.or_else(|| recorded.system.take()),
        tools: tools.or_else(|| recorded.tools.take()),
    })
}

/// Reads a transcript, with what ctx keeps beside it. Nothing is ever written there: the host stores
/// what it gets.
fn read(host: &Host, path: &std::path::Path) -> Result<Recorded> {
    let transcript = ctx_session::open(&host.home, path)?;
    Ok(Recorded {
        history: History::of(transcript.context(None)?.entries),
        forms: transcript.sent_forms(None)?,
        model: transcript.model()?,
        window: transcript.window().map(Tokens),
        system: transcript.system_prompt()?,
        tools: transcript.tools()?,
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
