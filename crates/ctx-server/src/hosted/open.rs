//! From names and configuration to a session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{
    BootstrapRequest, Error, ErrorKind, Projection, Result, Services, SummaryModels, Tokens,
};
use ctx_engine_registry::Config;
use ctx_runtime::{
    EngineWatch, Memories, Remembering, Resolved, Stores, Wanted, Writers, summary_models,
};
use ctx_session::key::FileId;
use ctx_session::log::RandomIds;

use super::Host;
use super::history::History;
use super::session::{Sent, Session};

/// What a session is opened with.
pub(crate) struct Opening {
    pub(crate) id: String,
    /// Whether the host can ask for it again under its id. What nobody can ask for again is kept
    /// nowhere.
    pub(crate) is_kept: bool,
    pub(crate) agent: Option<String>,
    pub(crate) config: Config,
    pub(crate) wanted: Wanted,
    /// What to advise where the window is too small, if the host gave it.
    pub(crate) window_hint: Option<fn(Tokens) -> String>,
    pub(crate) summaries: Summaries,
    pub(crate) recorded: Recorded,
    pub(crate) session_file: Option<PathBuf>,
}

/// Who writes summaries.
pub(crate) enum Summaries {
    /// The model of that name, or the one that is configured.
    Configured(Option<String>),
    /// These.
    By(SummaryModels),
    /// Nobody: they are extracted.
    Extracted,
}

/// What there is of a session already.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) history: History,
    pub(crate) forms: Vec<Projection>,
    pub(crate) model: Option<(String, String)>,
    pub(crate) window: Option<Tokens>,
    pub(crate) system: Option<String>,
    pub(crate) tools: Option<String>,
}

/// Opens a session, with what a person should be told.
pub(crate) async fn open(
    host: &Host,
    memories: Arc<Memories>,
    opening: Opening,
) -> Result<(Session, Vec<String>)> {
    let Opening { id, is_kept, mut recorded, .. } = opening;
    let model = opening.wanted.model.clone();
    let resolved = opening.wanted.resolve(&opening.config)?;
    resolved.check_window(opening.window_hint)?;
    let mut warnings: Vec<String> = resolved.warning().into_iter().collect();
    let models = match opening.summaries {
        Summaries::Configured(asked) => {
            let writers = summary_models(&resolved.config, asked.as_deref(), model.as_deref())?;
            warnings.extend(writers.iter().flat_map(Writers::left_out));
            writers.map(|writers| writers.models)
        }
        Summaries::By(models) => Some(models),
        Summaries::Extracted => None,
    };
    let agent = match &opening.agent {
        Some(agent) => FileId::new(agent.clone())?,
        None => FileId::main(),
    };
    let at_home = Stores::of(&host.home, &agent);
    let stores = match is_kept {
        true => at_home,
        false => {
            Stores { blobs: at_home.blobs, workspaces: at_home.workspaces, ..Stores::passing() }
        }
    };
    let (services, told) =
        services(memories, resolved.clone(), stores, (agent.to_string(), id.clone()), models)
            .await?;
    warnings.extend(told);
    let engine = resolved.engine(&services)?;
    if let Some(file) = opening.session_file {
        let file = Some(file.display().to_string());
        let request = BootstrapRequest { session_id: id.clone(), session_file: file };
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
        memory: Remembering::new(services.memory),
        ledger: resolved.ledger(),
        reported: None,
        resolved,
        history: recorded.history,
        ids: Arc::new(RandomIds),
        forms,
        formed: Vec::new(),
        view: None,
        edits_told: 0,
        in_force: None,
        compactions: 0,
        last_request,
        sent: Sent::default(),
    };
    Ok((session, warnings))
}

impl Recorded {
    /// Reads a transcript, with what ctx keeps beside it. Nothing is ever written there: the host
    /// stores what it gets.
    pub(crate) fn read(host: &Host, path: &Path) -> Result<Self> {
        let transcript = ctx_session::open(&host.home, path)?;
        Ok(Self {
            history: History::of(transcript.context(None)?.entries),
            forms: transcript.sent_forms(None)?,
            model: transcript.model()?,
            window: transcript.window().map(Tokens),
            system: transcript.system_prompt()?,
            tools: transcript.tools()?,
        })
    }
}

/// What the engine is built with, and what a person should be told of it. A model may have to be loaded
/// for a memory: other sessions go on meanwhile.
async fn services(
    memories: Arc<Memories>,
    resolved: Resolved,
    stores: Stores,
    (agent, session): (String, String),
    models: Option<SummaryModels>,
) -> Result<(Services, Vec<String>)> {
    let work = move || {
        let mut told = Vec::new();
        let warn = |warning| told.push(warning);
        let services = resolved.services(&memories, stores, (&*agent, &*session), models, warn)?;
        Ok((services, told))
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::new(ErrorKind::Io, "the memory was not opened")
            .source(error)
            .hint("the program is shutting down, or this is an error of ctx: see its log")
    })?
}
