//! An engine as a process: messages on its stdin and stdout.

mod child;
mod guard;
mod output;
mod pipes;
mod program;
mod spawn_error;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::frame::Received;
use ctx_engine_sdk::protocol::Cancel;

use super::{Canceller, Fault, HostCallHandler, RawAnswer, Request, Transport, envelope};
use child::ProcessGroup;
pub use guard::end_processes;
use output::{ENDED, EventSender, Output, OutputEvent};
pub(super) use pipes::start;
use pipes::{Input, Stderr};
pub use program::Program;

/// Maximum size of replies that a program has not read, in multiples of the largest answer.
const MAX_UNREAD: usize = 2;

/// How long an answer may take to arrive once the process has ended or closed its stdin.
const LAST_ANSWER: Duration = Duration::from_millis(250);

/// How long a process that has closed a pipe may take to end: the end of a large process takes
/// time.
const CLOSING: Duration = Duration::from_millis(500);

/// An engine that runs as a program. It is killed at the latest when this is dropped, with all
/// descendants that did not leave its process group.
pub struct Process {
    child: Arc<Child>,
    output: Output,
    max_answer_bytes: usize,
    is_usable: bool,
    /// Set at the first sign of its end: all remaining output is then in the pipe.
    last_answer_by: Option<Instant>,
}

/// State shared by the thread of the engine and its canceller.
struct Child {
    group: ProcessGroup,
    input: Input,
    stderr: Stderr,
    events: EventSender,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    ///
    /// If the system cannot start it.
    pub fn open(program: &Program) -> Result<Self> {
        let spawned = program.command().spawn();
        let mut child = spawned.map_err(|error| spawn_error::why(program, error))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on the child is killed if anything fails.
        let group = ProcessGroup::of(child);
        group.limit(program.memory_limit)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(Error::new(ErrorKind::Io, "the engine's program has no pipes"));
        };
        let limit = program.max_answer_bytes;
        let (output, events) = Output::listen(stdout, limit)?;
        let (closed, exited) = (events.clone(), events.clone());
        group.watch(move || exited.send(OutputEvent::Exited))?;
        let input = Input::write(stdin, move || closed.send(OutputEvent::StdinClosed))?;
        let stderr = Stderr::keep(stderr)?;
        let child = Child { group, input, stderr, events };
        Ok(Self {
            child: Arc::new(child),
            output,
            max_answer_bytes: limit,
            is_usable: true,
            last_answer_by: None,
        })
    }

    /// Reads until the call is answered.
    fn listen(&mut self, id: u64, services: &mut HostCallHandler<'_>) -> Result<RawAnswer, Fault> {
        loop {
            let message = match self.output.next_event(self.last_answer_by) {
                OutputEvent::Received(Received::Message(message)) => message,
                OutputEvent::Received(Received::TooLarge) => {
                    self.end();
                    return Err(Fault::TooLarge { limit: self.max_answer_bytes });
                }
                OutputEvent::StdinClosed | OutputEvent::Exited => {
                    self.last_answer_by.get_or_insert(Instant::now() + LAST_ANSWER);
                    continue;
                }
                OutputEvent::Nothing => return Err(self.gone("input", &[])),
                OutputEvent::Received(Received::End(unfinished)) => {
                    return Err(self.gone("output", &unfinished));
                }
            };
            let head = envelope::head(&message)?;
            if head.host.is_some() {
                let reply = services(&message);
                if self.child.input.unread() > MAX_UNREAD.saturating_mul(self.max_answer_bytes) {
                    self.end();
                    let why = "it makes host calls without reading the replies";
                    return Err(Fault::garbage(why, &[]));
                }
                self.child.input.send(reply);
            } else if head.id == 0 || head.id >= id {
                return RawAnswer::to(id, message);
            }
            // Otherwise it belongs to an earlier call that failed because of an invalid message.
        }
    }

    /// The fault of a process that no longer answers: it has ended, or closed one of its pipes.
    fn gone(&mut self, closed: &'static str, unfinished: &[u8]) -> Fault {
        // Get its own exit status, before the rest of its group is killed.
        let has_exited = self.child.group.exits_within(CLOSING);
        while guard::is_ending() {
            // It ended together with the host, which must not count this as a failure of the
            // engine.
            thread::park();
        }
        let status = self.end();
        let stderr = self.child.stderr.all();
        match has_exited {
            true => Fault::crashed(status, unfinished, stderr),
            false => Fault::Closed { what: closed, stderr },
        }
    }

    /// Kills the group, and returns how the child ended.
    fn end(&mut self) -> String {
        self.is_usable = false;
        self.child.input.close();
        self.child.group.end()
    }
}

impl Transport for Process {
    fn call(
        &mut self,
        request: Request,
        services: &mut HostCallHandler<'_>,
    ) -> Result<RawAnswer, Fault> {
        if !self.is_usable {
            return Err(Fault::Lost { why: "its process has ended".into() });
        }
        self.child.input.send(request.bytes);
        self.listen(request.id, services)
    }

    fn is_usable(&self) -> bool {
        self.is_usable
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        self.child.clone()
    }
}

impl Canceller for Child {
    fn cancel(&self, id: u64) {
        if let Ok(cancel) = serde_json::to_vec(&Cancel { cancel: id }) {
            self.input.send(cancel);
        }
    }

    fn kill(&self) -> Option<Vec<String>> {
        self.group.kill();
        // A process that left the group may hold the pipe open: do not wait for its end.
        self.events.send(ENDED);
        Some(self.stderr.so_far())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_usable {
            // A well-behaved engine ends with its stdin; it may still have data to save.
            self.child.input.close();
            self.output.wait_for_end();
        }
        self.end();
    }
}

ctx_core::partial_debug!(Process, it, is_usable = it.is_usable);
