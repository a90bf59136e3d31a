//! Line-based messages on standard input and output, shared by `rpc` and `mcp`. Each end has its
//! own thread, because both may block indefinitely.

mod data;

use std::io::{self, BufRead, Read, Write};
use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};

use ctx_core::{Error, ErrorKind, Result};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

pub use data::Data;

/// The capacity of the queues of requests and of answers.
pub const QUEUE: usize = 16;

const LIMITS: &str = "check the limits: `ulimit -n` for files, `ulimit -u` for threads";

/// Starts the threads that process requests.
pub fn runtime() -> Result<Runtime> {
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.map_err(|error| failed("cannot start threads", LIMITS, error))
}

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub enum InputLine {
    /// A line without its line break.
    Text(Vec<u8>),
    /// A line over the limit; its content is discarded.
    TooLong,
}

/// Reads the next line of at most `most` bytes; `None` at the end.
fn next_line(input: &mut impl BufRead, most: usize) -> io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    // The line break is beside the limit.
    input.by_ref().take(most as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|byte| *byte == b'\n').is_none() && line.len() > most {
        input.skip_until(b'\n')?;
        return Ok(Some(InputLine::TooLong));
    }
    Ok(Some(InputLine::Text(line)))
}

/// Passes each line of at most `most` bytes to `take`, until `take` breaks or the input ends. An
/// error is the last item.
pub fn read(
    name: &str,
    mut input: impl BufRead + Send + 'static,
    most: usize,
    mut take: impl FnMut(io::Result<InputLine>) -> ControlFlow<()> + Send + 'static,
) -> Result<()> {
    let reading = move || {
        while let Some(line) = next_line(&mut input, most).transpose() {
            let is_last = line.is_err();
            if take(line).is_break() || is_last {
                return;
            }
        }
    };
    spawn_thread(name, reading).map(drop)
}

/// Returns the error of a broken input.
pub fn unread(what: &'static str, error: io::Error) -> Error {
    failed(what, "check that the program at the other end still runs", error)
}

/// The thread that writes answers.
pub struct Writer(JoinHandle<io::Result<()>>);

impl Writer {
    /// Writes complete lines until the channel closes.
    pub fn start(
        name: &str,
        mut output: impl Write + Send + 'static,
        mut answers: mpsc::Receiver<String>,
    ) -> Result<Self> {
        let writing = move || {
            while let Some(line) = answers.blocking_recv() {
                output.write_all(line.as_bytes())?;
                // Flush once the queue is empty; queued answers go out together.
                if answers.is_empty() {
                    output.flush()?;
                }
            }
            output.flush()
        };
        spawn_thread(name, writing).map(Self)
    }

    /// Waits until the last line is written.
    pub fn end(self) -> Result<()> {
        let written = self.0.join().unwrap_or(Ok(()));
        written.map_err(|error| {
            failed(
                "cannot write answers",
                "check that the program at the other end still reads them",
                error,
            )
        })
    }
}

fn spawn_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| failed("cannot start a thread", LIMITS, error))
}

fn failed(what: &'static str, hint: &str, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, what).source(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn lines(text: &str, most: usize) -> Vec<InputLine> {
        // The buffer is smaller than the lines, so that they are read in chunks.
        let mut input = BufReader::with_capacity(3, text.as_bytes());
        std::iter::from_fn(|| next_line(&mut input, most).unwrap()).collect()
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_the_next_is_read() {
        let text = |line: &str| InputLine::Text(line.as_bytes().to_vec());
        assert_eq!(
            lines("one\n123456789\nthree", 5),
            [text("one"), InputLine::TooLong, text("three")]
        );
        assert_eq!(lines("12345\n123456\n", 5), [text("12345"), InputLine::TooLong]);
        assert_eq!(lines("", 5), []);
        assert_eq!(lines("\n\n", 5), [text(""), text("")]);
    }
}
