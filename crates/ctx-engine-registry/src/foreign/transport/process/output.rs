//! The stdout of a process, and its other events.

use std::io::BufReader;
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ctx_core::Result;
use ctx_engine_sdk::frame::{self, Received};

use super::pipes::{enlarge, start};

/// How long a process may take to end once its stdin has ended.
const ENDING: Duration = Duration::from_millis(500);

/// The end of stdout.
pub(super) const ENDED: OutputEvent = OutputEvent::Received(Received::End(Vec::new()));

/// An event of a process.
pub(super) enum OutputEvent {
    /// What its stdout contained. It also ends when the process was killed.
    Received(Received),
    /// The process closed its stdin while data was pending.
    StdinClosed,
    /// The process ended. Its last output may still be in the pipe, which another process may hold
    /// open.
    Exited,
    /// No event in the given time.
    Nothing,
}

/// The stdout of a process. A message is read only on request: the rest stays in the pipe.
pub(super) struct Output {
    wanted: Sender<()>,
    /// Whether a message was requested that has not arrived yet.
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
                if sender.send(OutputEvent::Received(frame::read(&mut stdout, limit))).is_err() {
                    return;
                }
            }
        })?;
        Ok((Self { wanted, is_wanted: false, received }, events))
    }

    /// Waits for a message or another event, until `until` at the latest.
    pub(super) fn next_event(&mut self, until: Option<Instant>) -> OutputEvent {
        if !self.is_wanted && self.wanted.send(()).is_err() {
            return ENDED;
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
            RecvTimeoutError::Disconnected => ENDED,
        });
        self.is_wanted =
            matches!(event, OutputEvent::StdinClosed | OutputEvent::Exited | OutputEvent::Nothing);
        event
    }

    /// Waits for the end of the process, for a limited time.
    pub(super) fn wait_for_end(&mut self) {
        let until = Some(Instant::now() + ENDING);
        while matches!(
            self.next_event(until),
            OutputEvent::Received(Received::Message(_)) | OutputEvent::StdinClosed
        ) {}
    }
}
