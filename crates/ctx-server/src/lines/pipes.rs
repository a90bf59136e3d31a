//! The two ends of a program that is spoken with in lines. Each has a thread of its own: both may
//! block for as long as the other side likes.

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};

use ctx_core::{Error, ErrorKind, Result};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::line::{Line, next_line};

/// How many lines may wait to be worked on, and how many answers to be read.
pub(crate) const QUEUE: usize = 16;

const LIMITS: &str =
    "see whether a limit is reached: `ulimit -n` for files, `ulimit -u` for threads";

/// The threads that work on what was read.
pub(crate) fn runtime() -> Result<Runtime> {
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.map_err(|error| failed("no threads can be started", LIMITS, error))
}

/// Hands each line of at most `most` bytes to `take`, until that or the input ends. An error is the
/// last that it gets.
pub(crate) fn read(
    name: &str,
    mut input: impl BufRead + Send + 'static,
    most: usize,
    mut take: impl FnMut(io::Result<Line>) -> ControlFlow<()> + Send + 'static,
) -> Result<()> {
    let reading = move || {
        while let Some(line) = next_line(&mut input, most).transpose() {
            let is_last = line.is_err();
            if take(line).is_break() || is_last {
                return;
            }
        }
    };
    started(name, reading).map(drop)
}

/// The error of an input that broke off.
pub(crate) fn unread(what: &'static str, error: io::Error) -> Error {
    failed(what, "see whether the program at the other end still runs", error)
}

/// Who writes the answers.
pub(crate) struct Writer(JoinHandle<io::Result<()>>);

impl Writer {
    /// Writes lines, their ends included, until there can be no more.
    pub(crate) fn start(
        name: &str,
        mut output: impl Write + Send + 'static,
        mut answers: mpsc::Receiver<String>,
    ) -> Result<Self> {
        let writing = move || {
            while let Some(line) = answers.blocking_recv() {
                output.write_all(line.as_bytes())?;
                // Who asked waits for each answer; what more is there goes out together.
                if answers.is_empty() {
                    output.flush()?;
                }
            }
            output.flush()
        };
        started(name, writing).map(Self)
    }

    /// Waits for the last one.
    pub(crate) fn end(self) -> Result<()> {
        let written = self.0.join().unwrap_or(Ok(()));
        written.map_err(|error| {
            failed("answers cannot be written", "see whether who asked still reads them", error)
        })
    }
}

fn started<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| failed("no thread can be started", LIMITS, error))
}

fn failed(what: &'static str, hint: &str, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, what).source(error).hint(hint)
}
