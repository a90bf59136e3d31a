//! The API: what may be asked, and who answers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State as Shared};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use ctx_core::{Error, ErrorKind};
use ctx_session::clock;
use serde::Deserialize;
use serde_json::json;

use super::Inspector;
use super::answer::{Answer, Refusal, json_of, later};
use super::diff::DiffAsked;
use super::events::events;
use super::memory::MemoryAsked;
use super::shape::{EntriesAsked, EntryAsked};
use super::source::{Opened, State};
use crate::http::Access;

/// So long a request waits for a session that is being read, before it says how far that is.
const PATIENCE: Duration = Duration::from_millis(400);

pub(super) fn routes(inspector: Arc<Inspector>) -> Router {
    let session = Router::new()
        .route("/", get(overview))
        .route("/requests/{number}", get(request))
        .route("/entries/{entry}", get(entry))
        .route("/compactions/{compaction}/diff", get(diff))
        .route("/compactions/{compaction}/undo", post(undo))
        .fallback(nothing);
    let api = Router::new()
        .route("/server", get(server))
        .route("/sessions", get(sessions))
        .nest("/sessions/{id}", session)
        .route("/memory", get(memory))
        .route("/events", get(listen))
        .method_not_allowed_fallback(nothing);
    Router::new().nest("/api", api).with_state(inspector)
}

type With = Shared<Arc<Inspector>>;
type Named<T> = Result<Path<T>, PathRejection>;
type Asked<T> = Result<Query<T>, QueryRejection>;

/// The answer to what is asked under a name of the page's, and is not there.
pub(super) async fn nothing() -> Response {
    let error = Error::new(ErrorKind::NotFound, "nothing is served here");
    Refusal::from(error.hint("docs/inspector.md lists what there is")).into_response()
}

async fn server(Shared(inspector): With) -> Answer {
    let agents = match inspector.memory.clone() {
        Some(memory) => blocking(move || Ok(memory.agents())).await?,
        None => Vec::new(),
    };
    json_of(&json!({
        "name": "ctx",
        "version": env!("CARGO_PKG_VERSION"),
        "writes": inspector.has_token,
        "agents": agents,
    }))
}

async fn sessions(Shared(inspector): With) -> Answer {
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

#[derive(Deserialize, Default)]
#[serde(default)]
struct From {
    from: usize,
}

async fn overview(Shared(inspector): With, id: Named<String>, asked: Asked<From>) -> Answer {
    let (id, from) = (named(id)?, query(asked)?.from);
    of_session(inspector, id, move |session| session.overview(from)).await
}

async fn request(
    Shared(inspector): With,
    path: Named<(String, String)>,
    asked: Asked<EntriesAsked>,
) -> Answer {
    let (id, number) = named(path)?;
    let (number, asked) = (number_of(&number)?, query(asked)?);
    of_session(inspector, id, move |session| session.request(number, &asked)).await
}

async fn entry(
    Shared(inspector): With,
    path: Named<(String, String)>,
    asked: Asked<EntryAsked>,
) -> Answer {
    let (id, entry) = named(path)?;
    let asked = query(asked)?;
    of_session(inspector, id, move |session| session.entry(&entry, &asked)).await
}

async fn diff(
    Shared(inspector): With,
    path: Named<(String, String)>,
    asked: Asked<DiffAsked>,
) -> Answer {
    let (id, compaction) = named(path)?;
    let asked = query(asked)?;
    of_session(inspector, id, move |session| session.diff(&compaction, &asked)).await
}

async fn undo(
    Shared(inspector): With,
    path: Named<(String, String)>,
    access: Option<Extension<Access>>,
) -> Answer {
    may_write(&inspector, access.is_some_and(|Extension(access)| access.writes))?;
    let (id, compaction) = named(path)?;
    let now = clock::now();
    let (sources, named) = (inspector.clone(), id.clone());
    of_session(inspector, id, move |session| {
        let undone = session.undo(&compaction, now)?;
        // Who asks next is told of the session as it is now.
        sources.sources.iter().for_each(|source| source.forget(&named));
        Ok(undone)
    })
    .await
}

async fn memory(Shared(inspector): With, asked: Asked<MemoryAsked>) -> Answer {
    let asked = query(asked)?;
    let Some(memory) = inspector.memory.clone() else {
        let error = Error::new(ErrorKind::NotFound, "this server looks at no memory");
        return Err(error.hint("`ctx inspect` and `ctx serve` look at those of $CTX_HOME").into());
    };
    let handle = tokio::runtime::Handle::current();
    let found = blocking(move || handle.block_on(memory.search(&asked)));
    json_of(&found.await?)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OfSession {
    session: Option<String>,
}

async fn listen(Shared(inspector): With, asked: Asked<OfSession>) -> Answer {
    let session = query(asked)?.session;
    let Ok(place) = inspector.listeners.clone().try_acquire_owned() else {
        let error = Error::new(ErrorKind::Locked, "too many pages listen already");
        return Err(Refusal::busy(error.hint("close some of them")));
    };
    Ok(events(inspector, session, place).into_response())
}

/// Does something with a session, or says how far it is.
async fn of_session<T: serde::Serialize + Send + 'static>(
    inspector: Arc<Inspector>,
    id: String,
    ask: impl FnOnce(&dyn Opened) -> ctx_core::Result<T> + Send + 'static,
) -> Answer {
    match open(inspector.clone(), id.clone()).await? {
        State::Open(session) => json_of(&blocking(move || ask(&*session)).await?),
        State::Working(mut progress) => {
            let done = progress.wait_for(|progress| progress.finished);
            let _ = tokio::time::timeout(PATIENCE, done).await;
            match open(inspector, id).await? {
                State::Open(session) => json_of(&blocking(move || ask(&*session)).await?),
                State::Working(progress) => {
                    let progress = *progress.borrow();
                    later(&json!({ "progress": progress }))
                }
            }
        }
    }
}

async fn open(inspector: Arc<Inspector>, id: String) -> Answer<State> {
    let found = blocking(move || {
        for source in &inspector.sources {
            if let Some(state) = source.open(&id)? {
                return Ok(state);
            }
        }
        Err(Error::new(ErrorKind::NotFound, "there is no such session")
            .with("id", id.chars().take(80).collect::<String>())
            .hint("`/api/sessions` lists those there are"))
    });
    Ok(found.await?)
}

/// Work that reads files, off the threads that serve others.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> ctx_core::Result<T> + Send + 'static,
) -> ctx_core::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Io, "the work was not done").source(error))?
}

fn named<T>(path: Named<T>) -> ctx_core::Result<T> {
    let Path(named) = path.map_err(|_| {
        Error::new(ErrorKind::NotFound, "there is nothing of that name")
            .hint("names are UTF-8, written with percent signs where they have to be")
    })?;
    Ok(named)
}

fn query<T>(asked: Asked<T>) -> ctx_core::Result<T> {
    let Query(asked) = asked.map_err(|error| {
        Error::new(ErrorKind::InvalidInput, format!("the query cannot be read: {error}"))
            .hint("docs/inspector.md lists what may be asked")
    })?;
    Ok(asked)
}

fn number_of(text: &str) -> ctx_core::Result<usize> {
    text.parse().map_err(|_| {
        Error::new(ErrorKind::NotFound, "there is no such request")
            .hint("requests are numbered from 1")
    })
}

/// Refuses who did not show the token.
fn may_write(inspector: &Inspector, may: bool) -> Answer<()> {
    if may {
        return Ok(());
    }
    let (message, hint) = match inspector.has_token {
        true => ("this needs the server's token", "send `authorization: Bearer TOKEN`"),
        false => {
            ("this server only reads", "start it with --token TOKEN, or set $CTX_SERVER_TOKEN")
        }
    };
    Err(Refusal::forbidden(Error::new(ErrorKind::InvalidInput, message).hint(hint)))
}
