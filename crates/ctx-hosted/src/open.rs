//! Opens a session from names and configuration.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{
    BootstrapRequest, Error, ErrorKind, Projection, Result, Services, SummaryModels, Tokens,
};
use ctx_runtime::{
    EngineHealthRecorder, MemoryWorker, Resolved, SessionSpec, SharedMemories, Stores,
    SummaryModelChain, summary_models,
};
use ctx_session::RandomIds;
use ctx_session::key::FileId;

use super::Host;
use super::history::History;
use super::session::{HostedSession, SentRequest};

/// The parameters of a session.
pub struct SessionOptions {
    /// The id, unique within the process.
    pub id: String,
    /// Whether the host can reopen it by id. Otherwise nothing is persisted.
    pub is_persistent: bool,
    /// The agent that owns the session; default: `main`.
    pub agent: Option<String>,
    /// The configuration, with the overrides of this session.
    pub config: Config,
    /// Model, window, engine, system prompt and tools.
    pub spec: SessionSpec,
    /// A hint for a window that is too small, if the host set the window.
    pub window_hint: Option<fn(Tokens) -> String>,
    /// Which models write summaries.
    pub summaries: SummarySource,
    /// What exists already.
    pub recorded: RecordedSession,
    /// The transcript that the engine may read at the start.
    pub session_file: Option<PathBuf>,
}

/// Which models write summaries.
pub enum SummarySource {
    /// The model of that name, or the configured one.
    Configured(Option<String>),
    /// The given models.
    By(SummaryModels),
    /// None: summaries are extractive.
    Extractive,
}

/// The existing state of a session.
#[derive(Default)]
pub struct RecordedSession {
    /// The messages.
    pub history: History,
    /// The forms in which they were sent.
    pub projections: Vec<Projection>,
    /// The provider and the model.
    pub model: Option<(String, String)>,
    /// The window of the model.
    pub window: Option<Tokens>,
    /// The system prompt.
    pub system: Option<String>,
    /// The tools, as JSON.
    pub tools: Option<String>,
}

/// Opens a session; also returns warnings for the user.
pub async fn open(
    host: &Host,
    memories: Arc<SharedMemories>,
    options: SessionOptions,
) -> Result<(HostedSession, Vec<String>)> {
    let SessionOptions { id, is_persistent, mut recorded, .. } = options;
    let model = options.spec.model.clone();
    let resolved = options.spec.resolve(&options.config)?;
    resolved.check_window(options.window_hint)?;
    let mut warnings: Vec<String> = resolved.warning().into_iter().collect();
    let models = models(options.summaries, &resolved, model.as_deref(), &mut warnings)?;
    let agent = match &options.agent {
        Some(agent) => FileId::new(agent.clone())?,
        None => FileId::main(),
    };
    let at_home = Stores::of(&host.home, &agent);
    let stores = match is_persistent {
        true => at_home,
        false => {
            Stores { blobs: at_home.blobs, workspaces: at_home.workspaces, ..Stores::discarding() }
        }
    };
    let (services, more) =
        services(memories, resolved.clone(), stores, (agent.to_string(), id.clone()), models)
            .await?;
    warnings.extend(more);
    let engine = resolved.engine(&services)?;
    if let Some(file) = options.session_file.map(|file| file.display().to_string()) {
        let request = BootstrapRequest { session_id: id.clone(), session_file: Some(file) };
        let done = engine.bootstrap(request).await?;
        if done.bootstrapped {
            recorded.history.all_ingested();
        }
    }
    let last_request = recorded.history.items().iter().rev().find_map(|i| i.entry.timestamp());
    let projections: HashMap<_, _> =
        recorded.projections.into_iter().map(|form| (form.key.clone(), form)).collect();
    let session = HostedSession {
        id,
        watch: EngineHealthRecorder::new(&host.home),
        watch_error: None,
        engine,
        memory: MemoryWorker::new(services.memory),
        ledger: resolved.ledger(),
        reported: None,
        resolved,
        history: recorded.history,
        ids: Arc::new(RandomIds),
        projections,
        new_projections: Vec::new(),
        view: None,
        reported_edits: 0,
        in_force: None,
        compactions: 0,
        last_request,
        waits_for_models: true,
        sent: SentRequest::default(),
    };
    Ok((session, warnings))
}

/// Returns the models that write summaries.
fn models(
    summaries: SummarySource,
    resolved: &Resolved,
    model: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Option<SummaryModels>> {
    Ok(match summaries {
        SummarySource::Configured(name) => {
            let writers = summary_models(&resolved.config, name.as_deref(), model)?;
            warnings.extend(writers.iter().flat_map(SummaryModelChain::warnings));
            writers.map(|writers| writers.models)
        }
        SummarySource::By(models) => Some(models),
        SummarySource::Extractive => None,
    })
}

impl RecordedSession {
    /// Reads a transcript and ctx's files beside it. It writes nothing there: the host stores the
    /// results.
    pub fn read(host: &Host, path: &Path) -> Result<Self> {
        let transcript = ctx_session::open(&host.home, path)?;
        Ok(Self {
            history: History::of(transcript.context(None)?.entries),
            projections: transcript.projections(None)?,
            model: transcript.model()?,
            window: transcript.window.map(Tokens),
            system: transcript.system_prompt,
            tools: transcript.tools,
        })
    }
}

/// Returns the services for the engine, and warnings for the user. Loading a model for memory does
/// not block other sessions.
async fn services(
    memories: Arc<SharedMemories>,
    resolved: Resolved,
    stores: Stores,
    (agent, session): (String, String),
    models: Option<SummaryModels>,
) -> Result<(Services, Vec<String>)> {
    let work = move || {
        let mut warnings = Vec::new();
        let warn = |warning| warnings.push(warning);
        let services = resolved.services(&memories, stores, (&*agent, &*session), models, warn)?;
        Ok((services, warnings))
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::new(ErrorKind::Io, "cannot open the memory")
            .source(error)
            .hint("the program is shutting down, or ctx failed: see its log")
    })?
}
