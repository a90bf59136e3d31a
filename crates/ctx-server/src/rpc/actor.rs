//! A session at work: its calls, one after the other.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind};
use ctx_runtime::Memories;
use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::mpsc;

use super::failure::{Code, Failure};
use super::message::{self, Call, answer};
use super::method::Method;
use super::session::Served;
use super::{open, params};
use crate::hosted::Host;

/// How many calls of one session may wait. A host that sends more waits itself.
pub(super) const WAITING: usize = 64;

/// Where answers go.
#[derive(Clone, Debug)]
pub(super) struct Answers(pub(super) mpsc::Sender<String>);

impl Answers {
    /// Answers a call, unless it is a notification. That nobody reads any more is found by who
    /// reads calls.
    pub(super) async fn give(&self, id: Option<&str>, result: Result<String, Failure>) {
        if let Some(id) = id {
            let _ = self.0.send(answer(id, result)).await;
        }
    }
}

/// Opens a session with the first call, and answers those that follow until it is closed or no more
/// can come. Then its engine is disposed of.
pub(super) async fn run(
    host: (Arc<Host>, Arc<Memories>),
    id: String,
    first: Call,
    mut calls: mpsc::Receiver<Call>,
    answers: Answers,
) {
    let opened = guarded(open_with(&host.0, host.1, id.clone(), &first)).await;
    let mut served = match opened {
        Ok((served, opened)) => {
            answers.give(first.id.as_deref(), Ok(opened)).await;
            served
        }
        Err(failure) => {
            answers.give(first.id.as_deref(), Err(failure)).await;
            return refuse_the_rest(&id, calls, &answers).await;
        }
    };
    while let Some(call) = calls.recv().await {
        if call.method == Method::Close {
            let result = close(&mut served, &call).await;
            // From here on the id is free: whoever waits for this answer may open it again.
            calls.close();
            answers.give(call.id.as_deref(), result).await;
            return refuse_the_rest(&id, calls, &answers).await;
        }
        let result = guarded(handle(&mut served, &call)).await;
        answers.give(call.id.as_deref(), result).await;
    }
    // Nobody is left to be told that it failed.
    let _ = guarded(dispose(&mut served)).await;
}

async fn refuse_the_rest(id: &str, mut calls: mpsc::Receiver<Call>, answers: &Answers) {
    calls.close();
    while let Some(call) = calls.recv().await {
        answers.give(call.id.as_deref(), Err(no_session(id))).await;
    }
}

/// The failure of a call for a session that is not open.
pub(super) fn no_session(id: &str) -> Failure {
    Error::new(ErrorKind::NotFound, "no such session is open")
        .with("sessionId", id)
        .hint("`open` it first")
        .into()
}

async fn open_with(
    host: &Host,
    memories: Arc<Memories>,
    id: String,
    call: &Call,
) -> Result<(Served, String), Failure> {
    let (served, opened) = open::open(host, memories, id, call.params()?).await?;
    Ok((served, message::json(&opened)?))
}

async fn close(served: &mut Served, call: &Call) -> Result<String, Failure> {
    let params::OfSession { .. } = call.params()?;
    guarded(dispose(served)).await
}

async fn dispose(served: &mut Served) -> Result<String, Failure> {
    let session = &mut served.session;
    // Calls that no request depends on may have failed since the last one.
    session.watch();
    let warnings = session.memory.close().await;
    session.engine.dispose().await?;
    message::json(&match warnings.is_empty() {
        true => json!({ "closed": true }),
        false => json!({ "closed": true, "warnings": warnings }),
    })
}

/// Runs what a call asks for. A panic is an answer, not the end of all sessions.
async fn guarded<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        Err(Failure::of_protocol(
            Code::Internal,
            "ctx itself failed at this call",
            "the session goes on; please report this with what stderr says",
        ))
    })
}

async fn handle(served: &mut Served, call: &Call) -> Result<String, Failure> {
    let ok = || message::json(&json!({ "ok": true }));
    let session = &mut served.session;
    match call.method {
        Method::Append => {
            let ids = served.append(call.params()?).await?;
            message::json(&json!({ "ids": ids }))
        }
        Method::Sync => {
            let synced = served.sync(call.params()?).await?;
            let ids = served.session.history.ids();
            message::json(&json!({
                "ids": ids,
                "common": synced.common,
                "kept": synced.kept,
                "added": synced.added,
                "removed": synced.removed,
            }))
        }
        Method::Assemble => message::json(&served.assemble(call.params()?).await?),
        Method::Compact => message::json(&served.compact(call.params()?).await?),
        Method::Usage => {
            let given: params::Usage = call.params()?;
            let factor = session.calibrate(given.prompt_tokens)?;
            message::json(&json!({ "calibration": factor }))
        }
        Method::CommitTurn => {
            let given: params::CommitTurn = call.params()?;
            session.engine.commit_turn(&session.id, &given.advancement_key).await?;
            ok()
        }
        Method::AfterTurn => {
            let params::OfSession { .. } = call.params()?;
            session.engine.after_turn(&session.id).await?;
            session.memory.tend();
            ok()
        }
        Method::Maintain => {
            let params::OfSession { .. } = call.params()?;
            session.engine.maintain(&session.id).await?;
            session.memory.tend();
            ok()
        }
        Method::PrepareSubagentSpawn => {
            let spawn = served.spawn(call.params()?);
            served.session.engine.prepare_subagent_spawn(&spawn).await?;
            ok()
        }
        Method::RollbackSubagentSpawn => {
            let spawn = served.spawn(call.params()?);
            served.session.engine.rollback_subagent_spawn(&spawn).await?;
            ok()
        }
        Method::OnSubagentEnded => {
            let given: params::SubagentEnded = call.params()?;
            session.engine.on_subagent_ended(&given.child_session_key, given.reason).await?;
            ok()
        }
        Method::Status => {
            let params::OfSession { .. } = call.params()?;
            message::json(&served.status()?)
        }
        Method::Initialize | Method::Open | Method::Close => Err(Failure::of_protocol(
            Code::Internal,
            "this call is answered elsewhere",
            "please report this",
        )),
    }
}
