//! The three pipes of a process, each with a thread of its own: neither a child that does not read
//! nor one that floods its stderr holds the host up.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};

use crate::carrier::fault::tidy;

/// How many lines of stderr are kept.
const STDERR_LINES: usize = 20;

/// How many bytes of a line of stderr are kept.
const STDERR_LINE: usize = 1_000;

/// How long a process may take to end when its stdin has.
const ENDING: Duration = Duration::from_millis(500);

/// How long what a dead process wrote to stderr is waited for, if another holds the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(250);

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = thread::Builder::new().name(format!("ctx-engine-{name}")).spawn(work);
    started.map(drop).map_err(|error| {
        Error::new(ErrorKind::Io, "the system gives no thread for an engine").source(error)
    })
}

/// How much a pipe should hold: a long session in one piece, so that neither side waits for the other
/// in the middle of it.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// Makes a pipe larger, if the system lets us: it works as well without.
#[cfg(target_os = "linux")]
fn enlarge(pipe: &impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

#[cfg(not(target_os = "linux"))]
fn enlarge<T>(_: &T) {}

/// The stdin of a process. Sending does not wait for it to read.
pub(super) struct Input {
    lines: Mutex<Option<Sender<Vec<u8>>>>,
    unread: Arc<AtomicUsize>,
}

impl Input {
    pub(super) fn write(mut stdin: ChildStdin) -> Result<Self> {
        enlarge(&stdin);
        let (sender, lines) = channel::<Vec<u8>>();
        let unread = Arc::<AtomicUsize>::default();
        let written = unread.clone();
        // A write that blocks ends when the child is killed, and the pipe's other end with it.
        start("stdin", move || {
            for line in lines {
                if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
                written.fetch_sub(line.len(), Ordering::Relaxed);
            }
        })?;
        Ok(Self { lines: Mutex::new(Some(sender)), unread })
    }

    /// Sends a line. That a process does not listen any more shows in its silence.
    pub(super) fn send(&self, line: Vec<u8>) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = &*lines {
            self.unread.fetch_add(line.len(), Ordering::Relaxed);
            let _ = lines.send(line);
        }
    }

    /// How many bytes were sent and are not in the pipe yet.
    pub(super) fn unread(&self) -> usize {
        self.unread.load(Ordering::Relaxed)
    }

    /// Ends the stdin, after what was sent.
    pub(super) fn close(&self) {
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What came from the stdout of a process.
pub(super) enum Heard {
    Line(Vec<u8>),
    TooLarge,
    /// The process closed it, or was killed.
    End,
}

/// The stdout of a process. One line at a time is read ahead of nobody: what is not asked for stays
/// in the pipe.
pub(super) struct Output {
    wanted: Sender<()>,
    heard: Receiver<Heard>,
}

/// Ends the hearing of a process that was killed, whoever holds its pipe open.
pub(super) struct Killed(Mutex<Sender<Heard>>);

impl Killed {
    pub(super) fn say(&self) {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody listens any more if it has ended.
        let _ = heard.send(Heard::End);
    }
}

impl Output {
    pub(super) fn listen(stdout: ChildStdout, limit: usize) -> Result<(Self, Killed)> {
        enlarge(&stdout);
        let (wanted, wanting) = channel();
        let (sender, heard) = channel();
        let killed = Killed(Mutex::new(sender.clone()));
        start("stdout", move || {
            let mut stdout = BufReader::with_capacity(1 << 16, stdout);
            while wanting.recv().is_ok() {
                if sender.send(read_line(&mut stdout, limit)).is_err() {
                    return;
                }
            }
        })?;
        Ok((Self { wanted, heard }, killed))
    }

    /// Waits for a line.
    pub(super) fn hear(&self) -> Heard {
        let asked = self.wanted.send(()).map_err(|_| ());
        asked.and_then(|()| self.heard.recv().map_err(|_| ())).unwrap_or(Heard::End)
    }

    /// Waits a while for the end.
    pub(super) fn wait_for_end(&self) {
        let until = Instant::now() + ENDING;
        while self.wanted.send(()).is_ok() {
            let left = until.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok(Heard::Line(_)) => {}
                Ok(Heard::TooLarge | Heard::End) | Err(_) => return,
            }
        }
    }
}

fn read_line(stdout: &mut impl BufRead, limit: usize) -> Heard {
    let mut line = Vec::new();
    // One more than may be tells a line that is too long from one that just fits.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match stdout.take(most).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => Heard::End,
        Ok(_) if line.last() == Some(&b'\n') => Heard::Line(line),
        Ok(_) if line.len() > limit => Heard::TooLarge,
        // It ended in the middle of a line.
        Ok(_) => Heard::End,
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
        start("stderr", move || {
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

    /// Of a process that has ended: also what is in the pipe still.
    pub(super) fn all(&self) -> Vec<String> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent: it returns when the reader is done, or a while later.
        let _ = ended.recv_timeout(LAST_WORDS);
        self.so_far()
    }
}

/// The next line, cut where it is long: a flood without a line end takes no memory.
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
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let mut lines: &[u8] = b"12345\n123456\n";
        assert!(matches!(read_line(&mut lines, 5), Heard::Line(line) if line == b"12345\n"));
        assert!(matches!(read_line(&mut lines, 5), Heard::TooLarge));
        let mut half: &[u8] = b"1234";
        assert!(matches!(read_line(&mut half, 5), Heard::End));
    }

    #[test]
    fn a_flood_on_stderr_is_cut_to_lines_of_bounded_length() {
        let flood = [vec![b'x'; 3 * STDERR_LINE], b"\nend".to_vec()].concat();
        let mut stderr = BufReader::with_capacity(64, &flood[..]);
        let line = next_line(&mut stderr).expect("it is read").expect("a line");
        assert_eq!(line.len(), STDERR_LINE);
        assert_eq!(next_line(&mut stderr).expect("it is read").as_deref(), Some("end"));
        assert_eq!(next_line(&mut stderr).expect("it is read"), None);
    }
}
