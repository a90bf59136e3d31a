//! Lines in, lines out, and a task for each session in between.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, IdSource, Result};
use ctx_runtime::Memories;
use ctx_session::log::RandomIds;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::actor::{self, Answers, WAITING, no_session};
use super::failure::{Code, Failure};
use super::message::{self, Call};
use super::method::Method;
use super::{MAX_LINE_BYTES, PROTOCOL, params};
use crate::hosted::Host;
use crate::lines::{self, Line, QUEUE, Writer};

/// Answers the calls of `input` on `output` until the input ends; then what was asked is finished
/// and all engines are disposed of.
///
/// # Errors
///
/// [`ErrorKind::Io`] if reading or writing fails. A call that fails is an answer, not an error.
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
    read.map_err(|error| lines::unread("calls cannot be read", error))
}

/// Hands each call to its session.
struct Dispatch {
    host: Arc<Host>,
    memories: Arc<Memories>,
    sessions: HashMap<String, mpsc::Sender<Call>>,
    tasks: JoinSet<()>,
    answers: Answers,
}

impl Dispatch {
    fn new(host: Host, answers: Answers) -> Self {
        let (memories, sessions) = (Arc::default(), HashMap::new());
        Self { host: Arc::new(host), memories, sessions, tasks: JoinSet::new(), answers }
    }

    async fn run(mut self, mut lines: mpsc::Receiver<io::Result<Line>>) -> io::Result<()> {
        let mut end = Ok(());
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                // Nobody reads answers any more.
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
        // Each session works off what waits for it, and then ends.
        self.sessions.clear();
        while self.tasks.join_next().await.is_some() {}
        end
    }

    async fn take(&mut self, line: Line) {
        let text = match line {
            Line::Text(text) if text.iter().all(u8::is_ascii_whitespace) => return,
            Line::Text(text) => text,
            Line::TooLong => {
                let failure = Failure::of_protocol(
                    Code::InvalidRequest,
                    "the line is too long",
                    "tell a long history in several calls of `append`",
                );
                let failure = failure.with("most", MAX_LINE_BYTES);
                return self.answers.give(Some("null"), Err(failure)).await;
            }
        };
        match Call::parse(text) {
            Ok(call) => self.call(call).await,
            Err(refused) => self.answers.give(refused.id.as_deref(), Err(refused.failure)).await,
        }
    }

    async fn call(&mut self, call: Call) {
        // Tasks that are done are taken away, however many sessions come and go.
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

    fn session(&self, call: &Call) -> std::result::Result<mpsc::Sender<Call>, Failure> {
        let id = call.session_id();
        let id = id.ok_or_else(|| Failure::of_params("the call names no sessionId"))?;
        self.sessions.get(&id).cloned().ok_or_else(|| no_session(&id))
    }

    /// Makes room for a session.
    fn open(
        &mut self,
        call: &Call,
    ) -> std::result::Result<(String, mpsc::Receiver<Call>), Failure> {
        // What is wrong with the fields is said before an id is taken.
        let params::Open { session_id, .. } = call.params()?;
        let id = session_id.unwrap_or_else(|| RandomIds.next_id());
        if self.sessions.get(&id).is_some_and(|session| !session.is_closed()) {
            return Err(Error::new(ErrorKind::Conflict, "this session is open already")
                .with("sessionId", &id)
                .hint("`close` it first, or take another sessionId")
                .into());
        }
        let (sender, calls) = mpsc::channel(WAITING);
        self.sessions.insert(id.clone(), sender);
        Ok((id, calls))
    }
}

fn initialize(call: &Call) -> std::result::Result<String, Failure> {
    let params::Initialize { .. } = call.params()?;
    message::json(&json!({
        "name": "ctx",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "methods": Method::ALL.map(Method::name),
        "formats": ["pi", "openai", "anthropic"],
        "maxLineBytes": MAX_LINE_BYTES,
    }))
}
