//! Processes the calls of a session, one at a time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind};
use ctx_hosted::{Host, ReadableMessages};
use ctx_runtime::SharedMemories;
use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::error::{ErrorCode, RpcError};
use super::message::{self, RpcCall, answer};
use super::method::Method;
use super::session::RpcSession;
use super::{open, params};

/// The queue capacity of a session. A host that sends more must wait.
pub(super) const WAITING: usize = 64;

/// The output for answers.
#[derive(Clone, Debug)]
pub(super) struct Answers(pub(super) mpsc::Sender<String>);

impl Answers {
    /// Answers a call, unless it is a notification. A closed output is detected by the reader of
    /// calls.
    pub(super) async fn give(&self, id: Option<&str>, result: Result<String, RpcError>) {
        if let Some(id) = id {
            let _ = self.0.send(answer(id, result)).await;
        }
    }
}

/// Opens a session with the first call, and answers further calls until the session is closed or
/// the queue ends. Then disposes of the engine.
pub(super) async fn run(
    host: (Arc<Host>, Arc<SharedMemories>),
    id: String,
    first: RpcCall,
    mut calls: mpsc::Receiver<RpcCall>,
    answers: Answers,
) {
    let opened = guarded(async {
        let (served, opened) = open::open(&host.0, host.1, id.clone(), first.params()?).await?;
        Ok((served, message::json(&opened)?))
    });
    let mut served = match opened.await {
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
            // From here on the id is free: after this answer, the host may open it again.
            calls.close();
            answers.give(call.id.as_deref(), result).await;
            return refuse_the_rest(&id, calls, &answers).await;
        }
        let span = served.span(call.method);
        let result = guarded(handle(&mut served, &call).instrument(span)).await;
        answers.give(call.id.as_deref(), result).await;
    }
    // No caller is left to receive the error.
    let _ = guarded(dispose(&mut served)).await;
}

async fn refuse_the_rest(id: &str, mut calls: mpsc::Receiver<RpcCall>, answers: &Answers) {
    calls.close();
    while let Some(call) = calls.recv().await {
        answers.give(call.id.as_deref(), Err(no_session(id))).await;
    }
}

/// Returns the error of a call for a session that is not open.
pub(super) fn no_session(id: &str) -> RpcError {
    Error::new(ErrorKind::NotFound, "session not open")
        .with("sessionId", id)
        .hint("`open` it first")
        .into()
}

async fn close(served: &mut RpcSession, call: &RpcCall) -> Result<String, RpcError> {
    let params::SessionParams { .. } = call.params()?;
    guarded(dispose(served)).await
}

async fn dispose(served: &mut RpcSession) -> Result<String, RpcError> {
    let session = &mut served.session;
    // Background calls may have failed since the last check.
    session.watch();
    let warnings = session.memory.close().await;
    session.engine.dispose().await?;
    message::json(&match warnings.is_empty() {
        true => json!({ "closed": true }),
        false => json!({ "closed": true, "warnings": warnings }),
    })
}

/// Runs a call. A panic becomes an error answer and does not affect other sessions.
async fn guarded<T>(work: impl Future<Output = Result<T, RpcError>>) -> Result<T, RpcError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        Err(RpcError::of_protocol(
            ErrorCode::Internal,
            "internal error of ctx in this call",
            "the session continues; please report this with the output on stderr",
        ))
    })
}

async fn handle(served: &mut RpcSession, call: &RpcCall) -> Result<String, RpcError> {
    let ok = || message::json(&json!({ "ok": true }));
    let session = &mut served.session;
    match call.method {
        Method::Append => {
            let ids = served.append(call.params()?).await?;
            message::json(&json!({ "ids": ids }))
        }
        Method::Sync => sync(served, call).await,
        Method::Assemble => message::json(&served.assemble(call.params()?).await?),
        Method::Fit => message::json(&served.fit(call.params()?).await?),
        Method::Compact => message::json(&served.compact(call.params()?).await?),
        Method::Undo => {
            let params::SessionParams { .. } = call.params()?;
            let undone = session.in_force.is_some();
            session.undo();
            message::json(&json!({ "undone": undone }))
        }
        Method::Expand => {
            let given: params::Expand = call.params()?;
            let all = ReadableMessages::of(session, std::iter::empty());
            message::json(&json!({ "messages": all.expand(&given.id) }))
        }
        Method::Recall => {
            let given: params::Recall = call.params()?;
            let all = ReadableMessages::of(session, std::iter::empty());
            message::json(&json!({ "found": all.recall(&given.query) }))
        }
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
            let params::SessionParams { .. } = call.params()?;
            session.engine.after_turn(&session.id).await?;
            session.memory.maintain();
            ok()
        }
        Method::Maintain => {
            let params::SessionParams { .. } = call.params()?;
            session.engine.maintain(&session.id).await?;
            session.memory.maintain();
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
            let params::SessionParams { .. } = call.params()?;
            message::json(&served.status()?)
        }
        Method::Initialize | Method::Open | Method::Close => {
            Err(RpcError::of_protocol(ErrorCode::Internal, "unexpected call", "please report this"))
        }
    }
}

async fn sync(served: &mut RpcSession, call: &RpcCall) -> Result<String, RpcError> {
    let synced = served.sync(call.params()?).await?;
    message::json(&json!({
        "ids": served.session.history.ids(),
        "common": synced.common,
        "kept": synced.kept,
        "added": synced.added,
        "removed": synced.removed,
    }))
}
