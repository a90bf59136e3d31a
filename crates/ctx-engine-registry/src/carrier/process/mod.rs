//! An engine as a process: one JSON object a line, on its stdin and stdout.

mod child;
mod guard;
mod output;
mod pipes;
mod program;
mod refused;

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::protocol::Cancel;

use super::{Answered, Answering, Canceller, Carrier, Fault, Request, envelope};
use child::Group;
pub use guard::end_processes;
use output::{Heard, Output, Signs};
use pipes::{Input, Stderr};
pub use program::Program;

/// How many bytes of replies may wait for a program that does not read them, in largest answers.
const MAX_UNREAD: usize = 2;

/// How long an answer may take to come through the pipe when its process has ended, or listens no
/// more.
const LAST_ANSWER: Duration = Duration::from_millis(250);

/// How long a process that has closed a pipe may take to end: a large one takes a moment.
const CLOSING: Duration = Duration::from_millis(500);

/// An engine that runs as a program. It is killed, with all that it started and that did not leave
/// its process group, when it is dropped at the latest.
pub struct Process {
    child: Arc<Child>,
    output: Output,
    max_answer_bytes: usize,
    is_usable: bool,
}

/// What the thread of the engine and its canceller share.
struct Child {
    group: Group,
    input: Input,
    stderr: Stderr,
    signs: Signs,
}

impl Process {
    /// Runs a program.
    ///
    /// # Errors
    ///
    /// If the system does not run it.
    pub fn open(program: &Program) -> Result<Self> {
        let spawned = program.command().spawn();
        let mut child = spawned.map_err(|error| refused::why(program, error))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on it is killed if anything fails.
        let group = Group::of(child);
        group.limit(program.memory_limit)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(Error::new(ErrorKind::Io, "the engine's program has no pipes"));
        };
        let limit = program.max_answer_bytes;
        let (output, signs) = Output::listen(stdout, limit)?;
        let (deaf, exited) = (signs.clone(), signs.clone());
        group.watch(move || exited.say(Heard::Exited))?;
        let input = Input::write(stdin, move || deaf.say(Heard::Deaf))?;
        let child = Child { group, input, stderr: Stderr::keep(stderr)?, signs };
        Ok(Self { child: Arc::new(child), output, max_answer_bytes: limit, is_usable: true })
    }

    /// Listens until the call is answered.
    fn listen(&mut self, id: u64, services: &mut Answering<'_>) -> Result<Answered, Fault> {
        // Once it gives a sign of its end, all that can come is in the pipe.
        let mut until = None;
        loop {
            let line = match self.output.hear(until) {
                Heard::Line(line) if line.trim_ascii().is_empty() => continue,
                Heard::Line(line) => line,
                Heard::TooLarge => {
                    self.end();
                    return Err(Fault::TooLarge { limit: self.max_answer_bytes });
                }
                Heard::Deaf | Heard::Exited => {
                    until.get_or_insert(Instant::now() + LAST_ANSWER);
                    continue;
                }
                Heard::Nothing => return Err(self.gone("input", &[])),
                Heard::End(unfinished) => return Err(self.gone("output", &unfinished)),
            };
            let head = envelope::head(&line)?;
            if head.host.is_some() {
                let reply = envelope::line(services(&line));
                if self.child.input.unread() > MAX_UNREAD.saturating_mul(self.max_answer_bytes) {
                    self.end();
                    let why = "it asks its host for more and more, and reads no replies";
                    return Err(Fault::garbage(why, &[]));
                }
                self.child.input.send(reply);
            } else if head.id == 0 || head.id >= id {
                return Answered::to(id, line);
            }
            // Else it is of a call before, that went wrong by a line that was none.
        }
    }

    /// What became of a process that answers no more: it has ended, or closed one of its pipes.
    fn gone(&mut self, closed: &'static str, unfinished: &[u8]) -> Fault {
        // Its own status, before what is left of its group is killed.
        let has_exited = self.child.group.exits_within(CLOSING);
        while guard::is_ending() {
            // Ended with its host, which is not to take it for a failure of the engine.
            thread::park();
        }
        let status = self.end();
        let stderr = self.child.stderr.all();
        match has_exited {
            true => Fault::crashed(status, unfinished, stderr),
            false => Fault::Closed { what: closed, stderr },
        }
    }

    /// Kills what is left, and says how it ended.
    fn end(&mut self) -> String {
        self.is_usable = false;
        self.child.input.close();
        self.child.group.end()
    }
}

impl Carrier for Process {
    fn call(&mut self, request: Request, services: &mut Answering<'_>) -> Result<Answered, Fault> {
        if !self.is_usable {
            return Err(Fault::Lost { why: "its process has ended".into() });
        }
        self.child.input.send(envelope::line(request.json));
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
            self.input.send(envelope::line(cancel));
        }
    }

    fn kill(&self) -> Option<Vec<String>> {
        self.group.kill();
        // Who left the group may hold the pipe open: its end is not waited for.
        self.signs.say(Heard::End(Vec::new()));
        Some(self.stderr.so_far())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_usable {
            // It ends with its stdin, if it is well-behaved: it may have something to put away.
            self.child.input.close();
            self.output.wait_for_end();
        }
        self.end();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("is_usable", &self.is_usable).finish_non_exhaustive()
    }
}
