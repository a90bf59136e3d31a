//! The pipes of a process, each with its own thread. So a child that does not read, or that floods
//! its stderr, does not block the host.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::process::{ChildStderr, ChildStdin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::frame;

use crate::foreign::transport::fault::tidy;

/// Number of stderr lines kept.
const STDERR_LINES: usize = 20;

/// Number of bytes kept of a stderr line.
const STDERR_LINE: usize = 1_000;

/// How long to wait for the stderr of a dead process if another process holds the pipe open.
const STDERR_TIMEOUT: Duration = Duration::from_millis(250);

/// Starts a thread for an engine.
pub(in super::super) fn start(
    name: impl Into<String>,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let started = thread::Builder::new().name(name.into()).spawn(work);
    started.map_err(|error| {
        Error::new(ErrorKind::Io, "cannot start a thread for an engine").source(error)
    })
}

/// Requested capacity of a pipe: enough for a long session, so that neither side waits for the
/// other in the middle of it.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// Enlarges a pipe, if the system permits; engines also work without it.
#[cfg(target_os = "linux")]
pub(super) fn enlarge(pipe: &impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn enlarge<T>(_: &T) {}

/// The stdin of a process. Sending does not wait for the process to read.
pub(super) struct Input {
    messages: Mutex<Option<Sender<Vec<u8>>>>,
    unread: Arc<AtomicUsize>,
}

impl Input {
    /// Calls `closed` if the process closes its stdin before everything is written.
    pub(super) fn write(
        mut stdin: ChildStdin,
        closed: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        enlarge(&stdin);
        let (sender, messages) = channel::<Vec<u8>>();
        let unread = Arc::<AtomicUsize>::default();
        let written = unread.clone();
        // A blocked write ends when the child is killed, which closes the other end of the pipe.
        start("ctx-engine-stdin", move || {
            for message in messages {
                let length = message.len();
                if frame::write(&mut stdin, message).is_err() {
                    return closed();
                }
                written.fetch_sub(length, Ordering::Relaxed);
            }
        })?;
        Ok(Self { messages: Mutex::new(Some(sender)), unread })
    }

    /// Sends a message.
    pub(super) fn send(&self, message: Vec<u8>) {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(messages) = &*messages {
            self.unread.fetch_add(message.len(), Ordering::Relaxed);
            let _ = messages.send(message);
        }
    }

    /// Returns the number of bytes that were sent but not yet written to the pipe.
    pub(super) fn unread(&self) -> usize {
        self.unread.load(Ordering::Relaxed)
    }

    /// Closes stdin after everything sent before is written.
    pub(super) fn close(&self) {
        *self.messages.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The last lines of the stderr of a process.
pub(super) struct Stderr {
    lines: Arc<Mutex<VecDeque<String>>>,
    ended: Mutex<Receiver<()>>,
}

impl Stderr {
    pub(super) fn keep(stderr: ChildStderr) -> Result<Self> {
        let lines = Arc::<Mutex<VecDeque<String>>>::default();
        let kept = lines.clone();
        let (ends, ended) = channel::<()>();
        start("ctx-engine-stderr", move || {
            let _ends = ends;
            let mut stderr = BufReader::new(stderr);
            while let Ok(Some(line)) = next_line(&mut stderr) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == STDERR_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        })?;
        Ok(Self { lines, ended: Mutex::new(ended) })
    }

    pub(super) fn so_far(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| !line.trim().is_empty()).cloned().collect()
    }

    /// Returns the lines of a process that has ended, including those still in the pipe.
    pub(super) fn all(&self) -> Vec<String> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent: it returns when the reader is done, or at the timeout.
        let _ = ended.recv_timeout(STDERR_TIMEOUT);
        self.so_far()
    }
}

/// Reads the next line, truncated, so that output without line ends takes little memory.
fn next_line(stderr: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut read = 0;
    loop {
        let bytes = match stderr.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend(part.iter().take(STDERR_LINE - line.len()));
        let used = part.len() + usize::from(end.is_some());
        read += used;
        stderr.consume(used);
        if end.is_some() || used == 0 {
            let line = tidy(&String::from_utf8_lossy(&line), STDERR_LINE);
            return Ok((read > 0).then_some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_stderr_output_is_truncated() {
        let flood = [vec![b'x'; 3 * STDERR_LINE], b"\nend".to_vec()].concat();
        let mut stderr = BufReader::with_capacity(64, &flood[..]);
        let line = next_line(&mut stderr).expect("it is read").expect("a line");
        assert_eq!(line.len(), STDERR_LINE);
        assert_eq!(next_line(&mut stderr).expect("it is read").as_deref(), Some("end"));
        assert_eq!(next_line(&mut stderr).expect("it is read"), None);
    }
}
