//! The routes of the API.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State as Shared};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use ctx_core::{Error, ErrorKind};
use ctx_server::http::Access;
use ctx_session::clock;
use ctx_trace::SessionTrace;
use ctx_trace::stats::{Stats, Status};
use serde::Deserialize;
use serde_json::json;

use super::Inspector;
use super::diff::DiffQuery;
use super::events::events;
use super::memory::MemoryQuery;
use super::response::{ApiError, ApiResult, accepted, json_of};
use super::shape::{EntriesQuery, EntryQuery};
use super::source::{SessionView, SourceState};

/// The time that a request waits for a session that is being read, before it returns the progress.
const PATIENCE: Duration = Duration::from_millis(400);

pub(super) fn routes(inspector: Arc<Inspector>) -> Router {
    let session = Router::new()
        .route("/", get(overview))
        .route("/requests/{number}", get(request))
        .route("/entries/{entry}", get(entry))
        .route("/compactions/{compaction}/diff", get(diff))
        .route("/compactions/{compaction}/why", get(why))
        .route("/compactions/{compaction}/undo", post(undo))
        .fallback(nothing);
    let api = Router::new()
        .route("/server", get(server))
        .route("/sessions", get(sessions))
        .route("/stats", get(stats))
        .route("/status", get(status))
        .nest("/sessions/{id}", session)
        .route("/memory", get(memory))
        .route("/events", get(listen))
        .method_not_allowed_fallback(nothing);
    Router::new().nest("/api", api).with_state(inspector)
}

type InspectorState = Shared<Arc<Inspector>>;
type PathParams<T> = Result<Path<T>, PathRejection>;
type QueryParams<T> = Result<Query<T>, QueryRejection>;

/// The response for unknown paths below the page's prefixes.
pub(super) async fn nothing() -> Response {
    let error = Error::new(ErrorKind::NotFound, "not found");
    ApiError::from(error.hint("docs/inspector.md lists the routes")).into_response()
}

async fn server(Shared(inspector): InspectorState) -> ApiResult {
    let memory = inspector.memory.clone();
    json_of(&json!({
        "name": "ctx",
        "version": env!("CARGO_PKG_VERSION"),
        "writes": inspector.has_token,
        "agents": blocking(move || Ok(memory.agents())).await?,
    }))
}

async fn sessions(Shared(inspector): InspectorState) -> ApiResult {
    let heads = blocking(move || {
        let mut heads = Vec::new();
        for source in &inspector.sources {
            heads.extend(source.sessions()?);
        }
        heads.sort_by_key(|head| std::cmp::Reverse(head.last_at));
        Ok(heads)
    });
    json_of(&json!({ "sessions": heads.await? }))
}

async fn stats(Shared(inspector): InspectorState) -> ApiResult {
    let report = blocking(move || {
        let mut stats = Stats::default();
        let sessions = inspector.trace.iter().flat_map(|trace| trace.sessions());
        sessions.for_each(|session| stats.add_trace(&session));
        Ok(stats.report())
    });
    json_of(&report.await?)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StatusQuery {
    project: Option<String>,
    since: i64,
}

/// The status of the conversation with the newest request, among those in a folder or in an unknown
/// one, and how many requests they had.
async fn status(Shared(inspector): InspectorState, query: QueryParams<StatusQuery>) -> ApiResult {
    let query = parse_query(query)?;
    let found = blocking(move || {
        let sessions = inspector.trace.iter().flat_map(|trace| trace.sessions());
        let asked = sessions.filter(|session| {
            query.project.is_none()
                || session.info.project.is_none()
                || session.info.project == query.project
        });
        let last_at = |session: &SessionTrace| session.requests.last().map(|record| record.at.0);
        let new: Vec<_> = asked.filter(|session| last_at(session) >= Some(query.since)).collect();
        let records = new.iter().flat_map(|session| &session.requests);
        let requests = records.filter(|record| record.at.0 >= query.since).count();
        let newest = new.iter().max_by_key(|session| last_at(session));
        Ok((newest.and_then(Status::of), requests))
    });
    let (status, requests) = found.await?;
    let line = status.as_ref().map(Status::to_string);
    json_of(&json!({ "line": line, "status": status, "requests": requests }))
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FromQuery {
    from: usize,
}

async fn overview(
    Shared(inspector): InspectorState,
    id: PathParams<String>,
    query: QueryParams<FromQuery>,
) -> ApiResult {
    let (id, from) = (path_params(id)?, parse_query(query)?.from);
    of_session(inspector, id, move |session| session.overview(from)).await
}

async fn request(
    Shared(inspector): InspectorState,
    path: PathParams<(String, String)>,
    query: QueryParams<EntriesQuery>,
) -> ApiResult {
    let (id, number) = path_params(path)?;
    let (number, query) = (number_of(&number)?, parse_query(query)?);
    of_session(inspector, id, move |session| session.request(number, &query)).await
}

async fn entry(
    Shared(inspector): InspectorState,
    path: PathParams<(String, String)>,
    query: QueryParams<EntryQuery>,
) -> ApiResult {
    let (id, entry) = path_params(path)?;
    let query = parse_query(query)?;
    of_session(inspector, id, move |session| session.entry(&entry, &query)).await
}

async fn diff(
    Shared(inspector): InspectorState,
    path: PathParams<(String, String)>,
    query: QueryParams<DiffQuery>,
) -> ApiResult {
    let (id, compaction) = path_params(path)?;
    let query = parse_query(query)?;
    of_session(inspector, id, move |session| session.diff(&compaction, &query)).await
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LineQuery {
    line: String,
}

async fn why(
    Shared(inspector): InspectorState,
    path: PathParams<(String, String)>,
    query: QueryParams<LineQuery>,
) -> ApiResult {
    let (id, compaction) = path_params(path)?;
    let line = parse_query(query)?.line;
    of_session(inspector, id, move |session| {
        Ok(json!({ "lines": session.why(&compaction, &line)? }))
    })
    .await
}

async fn undo(
    Shared(inspector): InspectorState,
    path: PathParams<(String, String)>,
    access: Option<Extension<Access>>,
) -> ApiResult {
    may_write(&inspector, access.is_some_and(|Extension(access)| access.writes))?;
    let (id, compaction) = path_params(path)?;
    let now = clock::now();
    let (sources, named) = (inspector.clone(), id.clone());
    of_session(inspector, id, move |session| {
        let undone = session.undo(&compaction, now)?;
        // The next request shows the new state of the session.
        sources.sources.iter().for_each(|source| source.forget(&named));
        Ok(undone)
    })
    .await
}

async fn memory(Shared(inspector): InspectorState, query: QueryParams<MemoryQuery>) -> ApiResult {
    let query = parse_query(query)?;
    let handle = tokio::runtime::Handle::current();
    let found = blocking(move || handle.block_on(inspector.memory.search(&query)));
    json_of(&found.await?)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SessionQuery {
    session: Option<String>,
}

async fn listen(Shared(inspector): InspectorState, query: QueryParams<SessionQuery>) -> ApiResult {
    let session = parse_query(query)?.session;
    let Ok(permit) = inspector.listeners.clone().try_acquire_owned() else {
        let error = Error::new(ErrorKind::Locked, "too many open pages");
        return Err(ApiError::busy(error.hint("close some of them")));
    };
    Ok(events(inspector, session, permit).into_response())
}

/// Runs `work` with a session, or returns its progress.
async fn of_session<T: serde::Serialize + Send + 'static>(
    inspector: Arc<Inspector>,
    id: String,
    ask: impl FnOnce(&dyn SessionView) -> ctx_core::Result<T> + Send + 'static,
) -> ApiResult {
    let mut state = open(inspector.clone(), id.clone()).await?;
    if let SourceState::Working(progress) = &mut state {
        let done = progress.wait_for(|progress| progress.finished);
        let _ = tokio::time::timeout(PATIENCE, done).await.map(drop);
        state = open(inspector, id).await?;
    }
    match state {
        SourceState::Open(session) => json_of(&blocking(move || ask(&*session)).await?),
        SourceState::Working(progress) => {
            let progress = *progress.borrow();
            accepted(&json!({ "progress": progress }))
        }
    }
}

async fn open(inspector: Arc<Inspector>, id: String) -> ApiResult<SourceState> {
    let found = blocking(move || {
        for source in &inspector.sources {
            if let Some(state) = source.open(&id)? {
                return Ok(state);
            }
        }
        Err(Error::new(ErrorKind::NotFound, "unknown session")
            .with("id", ctx_core::text::head_chars(&id, 80))
            .hint("`/api/sessions` lists the sessions"))
    });
    Ok(found.await?)
}

/// Runs file work on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> ctx_core::Result<T> + Send + 'static,
) -> ctx_core::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Io, "the request was not completed").source(error))?
}

fn path_params<T>(path: PathParams<T>) -> ctx_core::Result<T> {
    let Path(named) = path.map_err(|_| {
        Error::new(ErrorKind::NotFound, "invalid name in the path")
            .hint("names must be percent-encoded UTF-8")
    })?;
    Ok(named)
}

fn parse_query<T>(query: QueryParams<T>) -> ctx_core::Result<T> {
    let Query(query) = query.map_err(|error| {
        Error::new(ErrorKind::InvalidInput, format!("invalid query: {error}"))
            .hint("docs/inspector.md lists the parameters")
    })?;
    Ok(query)
}

fn number_of(text: &str) -> ctx_core::Result<usize> {
    text.parse().map_err(|_| {
        Error::new(ErrorKind::NotFound, "unknown request").hint("requests are numbered from 1")
    })
}

/// Refuses requests without the token.
fn may_write(inspector: &Inspector, may: bool) -> ApiResult<()> {
    if may {
        return Ok(());
    }
    let (message, hint) = match inspector.has_token {
        true => ("the server's token is required", "send `authorization: Bearer TOKEN`"),
        false => {
            ("this server is read-only", "start it with --token TOKEN, or set $CTX_SERVER_TOKEN")
        }
    };
    Err(ApiError::forbidden(Error::new(ErrorKind::InvalidInput, message).hint(hint)))
}
