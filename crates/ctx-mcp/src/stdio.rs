//! One JSON object per line, on standard input and output.

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;

use ctx_core::{Error, ErrorKind, Result};
use ctx_server::lines::{self, InputLine, QUEUE, Writer};
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, JsonRpcError, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::Server;

/// Maximum message size; a longer message is refused and skipped.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Serves a client over lines until its input ends; then waits at most five seconds for pending
/// calls.
///
/// # Errors
///
/// [`ErrorKind::Io`] if reading or writing fails. A failed call is an answer, not an error.
pub fn serve_stdio(
    server: Server,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<()> {
    let runtime = lines::runtime()?;
    let (messages_in, messages) = mpsc::channel(QUEUE);
    let (answers, answers_out) = mpsc::channel(QUEUE);
    // The reader must not keep `answers` open: it may block on input after the server has ended.
    let refused = answers.downgrade();
    lines::read("ctx-mcp-in", input, MAX_MESSAGE_BYTES, move |line| {
        match pass_on(line, &messages_in, &refused) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    let writer = Writer::start("ctx-mcp-out", output, answers_out)?;
    let ended = runtime.block_on(async {
        let (lines, ended) = LineTransport::new(messages, answers);
        match serve_server(server, lines).await {
            Ok(running) => {
                let _ = running.waiting().await;
            }
            // A client may disconnect before it sends anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => {}
            Err(error) => {
                let hint =
                    "start with `initialize`, or with a request that states its protocol version";
                return Err(Error::new(ErrorKind::InvalidInput, "the client does not speak MCP")
                    .source(error)
                    .hint(hint));
            }
        }
        ended.await.unwrap_or(Ok(())).map_err(|error| lines::unread("cannot read messages", error))
    });
    // Abandoned work must not delay the exit.
    runtime.shutdown_background();
    writer.end()?;
    ended
}

/// Passes a line on. Returns whether to continue.
fn pass_on(
    line: io::Result<InputLine>,
    messages: &mpsc::Sender<io::Result<ClientJsonRpcMessage>>,
    answers: &mpsc::WeakSender<String>,
) -> bool {
    let read = match line {
        Ok(line) => message(line),
        Err(error) => return messages.blocking_send(Err(error)).is_ok(),
    };
    match read {
        Ok(None) => true,
        Ok(Some(message)) => messages.blocking_send(Ok(message)).is_ok(),
        Err(refused) => answers
            .upgrade()
            .zip(line_of(&refused).ok())
            .is_some_and(|(answers, refused)| answers.blocking_send(refused).is_ok()),
    }
}

/// Returns a message as a line, including the line break.
fn line_of<T: Serialize>(message: &T) -> serde_json::Result<String> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    Ok(line)
}

/// Parses the message of a line; `None` if the line is empty.
fn message(
    line: InputLine,
) -> std::result::Result<Option<ClientJsonRpcMessage>, Box<JsonRpcError>> {
    let text = match line {
        InputLine::Text(text) if text.iter().all(u8::is_ascii_whitespace) => return Ok(None),
        InputLine::Text(text) => text,
        InputLine::TooLong => {
            let message = format!("line longer than {MAX_MESSAGE_BYTES} bytes");
            return Err(refused(None, ErrorData::invalid_request(message, None)));
        }
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            let message = format!("invalid MCP message: {error}");
            refused(id_of(&text), ErrorData::invalid_request(message, None))
        }
        _ => {
            let message = format!("invalid JSON: {error}");
            refused(None, ErrorData::parse_error(message, None))
        }
    })
}

fn refused(id: Option<RequestId>, error: ErrorData) -> Box<JsonRpcError> {
    Box::new(JsonRpcError::new(id, error))
}

/// Returns the id of an invalid message, so that the error reaches its sender.
fn id_of(text: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Call {
        id: Option<RequestId>,
    }
    serde_json::from_slice::<Call>(text).ok()?.id
}

/// The transport for rmcp.
struct LineTransport {
    messages: mpsc::Receiver<io::Result<ClientJsonRpcMessage>>,
    answers: Option<mpsc::Sender<String>>,
    /// Reports how reading ended.
    ended: Option<tokio::sync::oneshot::Sender<io::Result<()>>>,
}

impl LineTransport {
    fn new(
        messages: mpsc::Receiver<io::Result<ClientJsonRpcMessage>>,
        answers: mpsc::Sender<String>,
    ) -> (Self, tokio::sync::oneshot::Receiver<io::Result<()>>) {
        let (ended, end) = tokio::sync::oneshot::channel();
        (Self { messages, answers: Some(answers), ended: Some(ended) }, end)
    }
}

impl Transport<RoleServer> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answers = self.answers.clone();
        async move {
            let line = line_of::<ServerJsonRpcMessage>(&message)?;
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            answers.ok_or_else(gone)?.send(line).await.map_err(|_| gone())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let answers = self.answers.as_ref()?;
        let message = tokio::select! {
            message = self.messages.recv() => message,
            // The other side closed the output.
            () = answers.closed() => None,
        };
        match message? {
            Ok(message) => Some(message),
            Err(error) => {
                let _ = self.ended.take().map(|ended| ended.send(Err(error)));
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.answers = None;
        Ok(())
    }
}
