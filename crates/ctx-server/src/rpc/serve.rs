//! Reads and writes lines, with a task per session in between.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, IdSource, Result};
use ctx_hosted::Host;
use ctx_runtime::SharedMemories;
use ctx_session::RandomIds;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::actor::{self, Answers, WAITING, no_session};
use super::dialect::Dialect;
use super::error::{ErrorCode, RpcError};
use super::message::{self, RpcCall};
use super::method::Method;
use super::{MAX_LINE_BYTES, PROTOCOL, params};
use crate::lines::{self, InputLine, QUEUE, Writer};

/// Answers the calls from `input` on `output` until the input ends; then finishes pending calls and
/// disposes of all engines.
///
/// # Errors
///
/// [`ErrorKind::Io`] if reading or writing fails. A failed call is an answer, not an error.
pub fn serve(
    host: Host,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<()> {
    let runtime = lines::runtime()?;
    let (lines_in, lines) = mpsc::channel(QUEUE);
    let (answers, answers_out) = mpsc::channel(QUEUE);
    lines::read("ctx-rpc-in", input, MAX_LINE_BYTES, move |line| {
        match lines_in.blocking_send(line) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    let writer = Writer::start("ctx-rpc-out", output, answers_out)?;
    let read = runtime.block_on(Dispatch::new(host, Answers(answers)).run(lines));
    writer.end()?;
    read.map_err(|error| lines::unread("cannot read calls", error))
}

/// Passes each call to its session.
struct Dispatch {
    host: Arc<Host>,
    memories: Arc<SharedMemories>,
    sessions: HashMap<String, mpsc::Sender<RpcCall>>,
    tasks: JoinSet<()>,
    answers: Answers,
}

impl Dispatch {
    fn new(host: Host, answers: Answers) -> Self {
        let (memories, sessions) = (Arc::default(), HashMap::new());
        Self { host: Arc::new(host), memories, sessions, tasks: JoinSet::new(), answers }
    }

    async fn run(mut self, mut lines: mpsc::Receiver<io::Result<InputLine>>) -> io::Result<()> {
        let mut end = Ok(());
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                // The other side closed the output.
                () = self.answers.0.closed() => None,
            };
            match line {
                Some(Ok(line)) => self.take(line).await,
                Some(Err(error)) => {
                    end = Err(error);
                    break;
                }
                None => break,
            }
        }
        // Each session processes its queue, and then ends.
        self.sessions.clear();
        while self.tasks.join_next().await.is_some() {}
        end
    }

    async fn take(&mut self, line: InputLine) {
        let text = match line {
            InputLine::Text(text) if text.iter().all(u8::is_ascii_whitespace) => return,
            InputLine::Text(text) => text,
            InputLine::TooLong => {
                let failure = RpcError::of_protocol(
                    ErrorCode::InvalidRequest,
                    "line too long",
                    "send a long history in several `append` calls",
                );
                let failure = failure.with("most", MAX_LINE_BYTES);
                return self.answers.give(Some("null"), Err(failure)).await;
            }
        };
        match RpcCall::parse(text) {
            Ok(call) => self.call(call).await,
            Err(refused) => self.answers.give(refused.id.as_deref(), Err(refused.failure)).await,
        }
    }

    async fn call(&mut self, call: RpcCall) {
        // Remove the tasks of closed sessions.
        while self.tasks.try_join_next().is_some() {}
        let result = match call.method {
            Method::Initialize => initialize(&call),
            Method::Open => match self.open(&call) {
                Ok((id, calls)) => {
                    let host = (self.host.clone(), self.memories.clone());
                    let answers = self.answers.clone();
                    self.tasks.spawn(actor::run(host, id, call, calls, answers));
                    return;
                }
                Err(failure) => Err(failure),
            },
            _ => match self.session(&call) {
                Ok(session) => match session.send(call).await {
                    Ok(()) => return,
                    Err(mpsc::error::SendError(call)) => {
                        let id = call.session_id().unwrap_or_default();
                        self.sessions.remove(&id);
                        return self.answers.give(call.id.as_deref(), Err(no_session(&id))).await;
                    }
                },
                Err(failure) => Err(failure),
            },
        };
        self.answers.give(call.id.as_deref(), result).await;
    }

    fn session(&self, call: &RpcCall) -> std::result::Result<mpsc::Sender<RpcCall>, RpcError> {
        let id = call.session_id();
        let id = id.ok_or_else(|| RpcError::of_params("missing sessionId"))?;
        self.sessions.get(&id).cloned().ok_or_else(|| no_session(&id))
    }

    /// Creates the queue of a session.
    fn open(
        &mut self,
        call: &RpcCall,
    ) -> std::result::Result<(String, mpsc::Receiver<RpcCall>), RpcError> {
        // Report invalid parameters before the id is taken.
        let params::Open { session_id, .. } = call.params()?;
        let id = session_id.unwrap_or_else(|| RandomIds.next_id());
        if self.sessions.get(&id).is_some_and(|session| !session.is_closed()) {
            return Err(Error::new(ErrorKind::Conflict, "session already open")
                .with("sessionId", &id)
                .hint("`close` it first, or use another sessionId")
                .into());
        }
        let (sender, calls) = mpsc::channel(WAITING);
        self.sessions.insert(id.clone(), sender);
        Ok((id, calls))
    }
}

fn initialize(call: &RpcCall) -> std::result::Result<String, RpcError> {
    let params::Initialize { .. } = call.params()?;
    message::json(&json!({
        "name": "ctx",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "methods": Method::names(),
        "formats": Dialect::NAMES,
        "maxLineBytes": MAX_LINE_BYTES,
    }))
}
