//! An engine as a process, on stdin and stdout.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::Engine;
use crate::driver::Driver;
use crate::frame::{self, Received};
use crate::host::HostTransport;
use crate::protocol::{Error, Head, Result};

/// The default capacity of a pipe.
const READ_AHEAD: usize = 1 << 16;

/// Serves an engine on stdin and stdout until stdin ends. Call it from `main`. Print nothing else
/// to stdout. Stderr may be used: the host keeps its last lines.
///
/// # Errors
///
/// If a pipe breaks.
pub fn serve<E: Engine>() -> io::Result<()> {
    serve_on::<E>(BufReader::with_capacity(READ_AHEAD, io::stdin()), io::stdout())
}

/// As [`serve`], on any pair of pipes.
///
/// # Errors
///
/// If writing fails.
pub fn serve_on<E: Engine>(
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> io::Result<()> {
    let state = Arc::new(CallState::default());
    let (sender, messages) = channel();
    let reader = Reader { input, messages: sender, state: state.clone() };
    // The thread ends with its pipe. It is not joined: while stdin is open, it may block in a read.
    thread::Builder::new().name("ctx-engine-input".into()).spawn(move || reader.run())?;
    let mut driver = Driver::<E>::default();
    let mut pipe = Pipe { messages, waiting: VecDeque::new(), output: &mut output };
    while let Some((head, call)) = pipe.next_call() {
        state.working_on.store(head.id, Ordering::SeqCst);
        let answer = driver.answer_to(head, &call, &mut pipe, &state.cancelled);
        state.working_on.store(0, Ordering::SeqCst);
        frame::write(pipe.output, answer)?;
    }
    Ok(())
}

/// State shared by the reading and the working thread.
#[derive(Default)]
struct CallState {
    /// The id of the running call.
    working_on: AtomicU64,
    cancelled: AtomicBool,
}

enum Incoming {
    Call(Head, Vec<u8>),
    Reply(Vec<u8>),
}

struct Reader<R> {
    input: R,
    messages: Sender<Incoming>,
    state: Arc<CallState>,
}

impl<R: BufRead> Reader<R> {
    fn run(mut self) {
        loop {
            // The engine trusts its host, so no message is too large.
            let Received::Message(message) = frame::read(&mut self.input, usize::MAX) else {
                return;
            };
            let sent = match Head::read(&message) {
                Ok(Head { cancel: Some(call), .. }) => {
                    if self.state.working_on.load(Ordering::SeqCst) == call {
                        self.state.cancelled.store(true, Ordering::Relaxed);
                    }
                    Ok(())
                }
                Ok(head @ Head { verb: Some(_), .. }) => {
                    self.messages.send(Incoming::Call(head, message))
                }
                Ok(_) => self.messages.send(Incoming::Reply(message)),
                // The driver answers this call, which has no verb, with an error.
                Err(_) => self.messages.send(Incoming::Call(Head::default(), message)),
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

struct Pipe<'a, W> {
    messages: Receiver<Incoming>,
    /// Calls that arrived while another was running.
    waiting: VecDeque<(Head, Vec<u8>)>,
    output: &'a mut W,
}

impl<W: Write> Pipe<'_, W> {
    /// Waits for a call. Skips replies that no host call waits for.
    fn next_call(&mut self) -> Option<(Head, Vec<u8>)> {
        if let Some(call) = self.waiting.pop_front() {
            return Some(call);
        }
        loop {
            match self.messages.recv() {
                Ok(Incoming::Call(head, call)) => return Some((head, call)),
                Ok(Incoming::Reply(_)) => {}
                Err(_) => return None,
            }
        }
    }
}

impl<W: Write> HostTransport for Pipe<'_, W> {
    fn call(&mut self, host_call: &[u8]) -> Result<Vec<u8>> {
        let lost = |_| Error::failed("the host closed the pipe");
        frame::write(self.output, host_call.to_vec()).map_err(lost)?;
        loop {
            match self.messages.recv() {
                Ok(Incoming::Reply(reply)) => return Ok(reply),
                Ok(Incoming::Call(head, call)) => self.waiting.push_back((head, call)),
                Err(_) => return Err(Error::failed("the host closed the pipe")),
            }
        }
    }
}
