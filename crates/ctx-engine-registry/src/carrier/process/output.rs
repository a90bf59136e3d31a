//! The stdout of a process, and every other sign that it gives.

use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ctx_core::Result;

use super::pipes::{enlarge, start};

/// How long a process may take to end when its stdin has.
const ENDING: Duration = Duration::from_millis(500);

/// What came from a process.
pub(super) enum Heard {
    Line(Vec<u8>),
    TooLarge,
    /// Its stdout has ended, with this after the last line; or the process was killed.
    End(Vec<u8>),
    /// It has closed its stdin, with something for it in there.
    Deaf,
    /// The process itself has ended. Its last words may be in the pipe still, and another process
    /// may hold that open.
    Exited,
    /// Nothing, in the time there was.
    Nothing,
}

/// The stdout of a process. One line at a time is read ahead of nobody: what is not asked for stays
/// in the pipe.
pub(super) struct Output {
    wanted: Sender<()>,
    /// Whether a line was asked for that did not come yet.
    is_wanted: bool,
    heard: Receiver<Heard>,
}

/// Tells who listens to a process what is not heard from its stdout.
#[derive(Clone)]
pub(super) struct Signs(Sender<Heard>);

impl Signs {
    pub(super) fn say(&self, heard: Heard) {
        // Nobody listens any more if it has ended.
        let _ = self.0.send(heard);
    }
}

impl Output {
    pub(super) fn listen(stdout: ChildStdout, limit: usize) -> Result<(Self, Signs)> {
        enlarge(&stdout);
        let (wanted, wanting) = channel();
        let (sender, heard) = channel();
        let signs = Signs(sender.clone());
        start("stdout", move || {
            let mut stdout = BufReader::with_capacity(1 << 16, stdout);
            while wanting.recv().is_ok() {
                if sender.send(read_line(&mut stdout, limit)).is_err() {
                    return;
                }
            }
        })?;
        Ok((Self { wanted, is_wanted: false, heard }, signs))
    }

    /// Waits for a line or a sign, at most until `until`.
    pub(super) fn hear(&mut self, until: Option<Instant>) -> Heard {
        if !self.is_wanted && self.wanted.send(()).is_err() {
            return Heard::End(Vec::new());
        }
        self.is_wanted = true;
        let heard = match until {
            None => self.heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => self.heard.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        let heard = heard.unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Heard::Nothing,
            RecvTimeoutError::Disconnected => Heard::End(Vec::new()),
        });
        self.is_wanted = matches!(heard, Heard::Deaf | Heard::Exited | Heard::Nothing);
        heard
    }

    /// Waits a while for the end.
    pub(super) fn wait_for_end(&mut self) {
        let until = Some(Instant::now() + ENDING);
        while matches!(self.hear(until), Heard::Line(_) | Heard::Deaf) {}
    }
}

fn read_line(stdout: &mut impl BufRead, limit: usize) -> Heard {
    let mut line = Vec::new();
    // One more than may be tells a line that is too long from one that just fits.
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match stdout.take(most).read_until(b'\n', &mut line) {
        Ok(_) if line.last() == Some(&b'\n') => Heard::Line(line),
        Ok(_) if line.len() > limit => Heard::TooLarge,
        Ok(_) | Err(_) => Heard::End(line),
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
        assert!(matches!(read_line(&mut half, 5), Heard::End(line) if line == b"1234"));
        assert!(matches!(read_line(&mut half, 5), Heard::End(line) if line.is_empty()));
    }
}
