//! The stdout of a process, and its other events.

use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ctx_core::Result;

use super::pipes::{enlarge, start};

/// How long a process may take to end once its stdin has ended.
const ENDING: Duration = Duration::from_millis(500);

/// An event of a process.
pub(super) enum OutputEvent {
    Line(Vec<u8>),
    TooLarge,
    /// Stdout ended, with these bytes after the last line; or the process was killed.
    End(Vec<u8>),
    /// The process closed its stdin while data was pending.
    StdinClosed,
    /// The process ended. Its last output may still be in the pipe, which another process may hold
    /// open.
    Exited,
    /// No event in the given time.
    Nothing,
}

/// The stdout of a process. A line is read only on request: the rest stays in the pipe.
pub(super) struct Output {
    wanted: Sender<()>,
    /// Whether a line was requested that has not arrived yet.
    is_wanted: bool,
    received: Receiver<OutputEvent>,
}

/// Sends events other than output to the reader of the process.
#[derive(Clone)]
pub(super) struct EventSender(Sender<OutputEvent>);

impl EventSender {
    pub(super) fn send(&self, event: OutputEvent) {
        // The reader may be gone.
        let _ = self.0.send(event);
    }
}

impl Output {
    pub(super) fn listen(stdout: ChildStdout, limit: usize) -> Result<(Self, EventSender)> {
        enlarge(&stdout);
        let (wanted, wanting) = channel();
        let (sender, received) = channel();
        let events = EventSender(sender.clone());
        start("ctx-engine-stdout", move || {
            let mut stdout = BufReader::with_capacity(1 << 16, stdout);
            while wanting.recv().is_ok() {
                if sender.send(read_line(&mut stdout, limit)).is_err() {
                    return;
                }
            }
        })?;
        Ok((Self { wanted, is_wanted: false, received }, events))
    }

    /// Waits for a line or another event, until `until` at the latest.
    pub(super) fn next_event(&mut self, until: Option<Instant>) -> OutputEvent {
        if !self.is_wanted && self.wanted.send(()).is_err() {
            return OutputEvent::End(Vec::new());
        }
        self.is_wanted = true;
        let event = match until {
            None => self.received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => {
                self.received.recv_timeout(until.saturating_duration_since(Instant::now()))
            }
        };
        let event = event.unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => OutputEvent::Nothing,
            RecvTimeoutError::Disconnected => OutputEvent::End(Vec::new()),
        });
        self.is_wanted =
            matches!(event, OutputEvent::StdinClosed | OutputEvent::Exited | OutputEvent::Nothing);
        event
    }

    /// Waits for the end of the process, for a limited time.
    pub(super) fn wait_for_end(&mut self) {
        let until = Some(Instant::now() + ENDING);
        while matches!(self.next_event(until), OutputEvent::Line(_) | OutputEvent::StdinClosed) {}
    }
}

fn read_line(stdout: &mut impl BufRead, limit: usize) -> OutputEvent {
    let mut line = Vec::new();
    // One byte more than allowed distinguishes a line that is too long from one that just fits.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match stdout.take(most).read_until(b'\n', &mut line) {
        Ok(_) if line.last() == Some(&b'\n') => OutputEvent::Line(line),
        Ok(_) if line.len() > limit => OutputEvent::TooLarge,
        Ok(_) | Err(_) => OutputEvent::End(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_longer_than_the_limit_is_refused() {
        let mut lines: &[u8] = b"12345\n123456\n";
        assert!(matches!(read_line(&mut lines, 5), OutputEvent::Line(line) if line == b"12345\n"));
        assert!(matches!(read_line(&mut lines, 5), OutputEvent::TooLarge));
        let mut half: &[u8] = b"1234";
        assert!(matches!(read_line(&mut half, 5), OutputEvent::End(line) if line == b"1234"));
        assert!(matches!(read_line(&mut half, 5), OutputEvent::End(line) if line.is_empty()));
    }
}
