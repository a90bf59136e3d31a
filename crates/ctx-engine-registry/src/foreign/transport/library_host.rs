//! A library in its own process, served on stdin and stdout: implements `ctx engine-host`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use ctx_core::{Error as Refused, Result};
use ctx_engine_sdk::frame::{self, Received};
use ctx_engine_sdk::protocol::{Answer, Done, Error, ErrorKind, Head};

use super::{Canceller, Dylib, Fault, Request, Transport, envelope};

/// How long the running call may take once stdin has ended: its answer is not read.
const ENDING: Duration = Duration::from_millis(250);

/// Whether this program hosts libraries when it is started with `engine-host`.
static HOSTS: AtomicBool = AtomicBool::new(false);

/// Declares that this program calls [`host_library`] when it is run with `engine-host PATH`:
/// libraries then run in such processes. Call it from `main`.
pub fn hosts_libraries() {
    HOSTS.store(true, Ordering::Relaxed);
}

/// Returns the path of this program, if it hosts libraries.
pub(crate) fn own_engine_host() -> Option<PathBuf> {
    HOSTS.load(Ordering::Relaxed).then(|| std::env::current_exe().ok()).flatten()
}

/// Loads a library and serves its engine on stdin and stdout until stdin ends: one message of output
/// per message of input, with host calls and their replies in between. Call it from `main`, which
/// should return soon after: an engine that hangs ends only with the process.
///
/// On Unix, output of the library to stdout is redirected to stderr.
///
/// # Errors
///
/// If the library cannot be loaded (see [`Dylib::open`]), a pipe breaks, or the engine can no
/// longer be used.
pub fn host_library(path: &Path) -> Result<()> {
    let ended = |error: io::Error| {
        Refused::new(ctx_core::ErrorKind::Io, "the library is no longer served")
            .with("library", path.display())
            .with("reason", &error)
            .source(error)
            .hint("see the messages of the host that runs this program")
    };
    let output = own_stdout().map_err(ended)?;
    serve(Dylib::open(path)?, output).map_err(ended)
}

fn serve(library: Dylib, output: File) -> io::Result<()> {
    let working_on = Arc::<AtomicU64>::default();
    let (ended, end) = channel();
    let (calls, calling) = channel();
    let (replies, replying) = channel();

    let canceller = library.canceller();
    let listener = Listener { calls, replies, canceller, working_on: working_on.clone() };
    let input_ended = ended.clone();
    thread::Builder::new().name("ctx-engine-input".into()).spawn(move || {
        listener.listen(BufReader::with_capacity(1 << 16, io::stdin()));
        let _ = input_ended.send(HostEnd::Input);
    })?;
    let mut served = HostedLibrary { library, output, replies: replying, working_on };
    thread::Builder::new().name("ctx-engine-hosted".into()).spawn(move || {
        let _ = ended.send(HostEnd::Work(served.work(&calling)));
    })?;
    match end.recv() {
        Ok(HostEnd::Work(result)) => result,
        // The running call either returns in time, or ends with the process.
        _ => match end.recv_timeout(ENDING) {
            Ok(HostEnd::Work(result)) => result,
            _ => Ok(()),
        },
    }
}

enum HostEnd {
    Input,
    Work(io::Result<()>),
}

/// Dispatches the input.
struct Listener {
    calls: Sender<(u64, Vec<u8>)>,
    replies: Sender<Vec<u8>>,
    canceller: Arc<dyn Canceller>,
    working_on: Arc<AtomicU64>,
}

impl Listener {
    fn listen(self, mut input: impl BufRead) {
        loop {
            // The host is trusted, so no message is too large.
            let Received::Message(message) = frame::read(&mut input, usize::MAX) else { return };
            let sent = match Head::read(&message) {
                Ok(Head { cancel: Some(id), .. }) => {
                    if self.working_on.load(Ordering::SeqCst) == id {
                        self.canceller.cancel(id);
                    }
                    true
                }
                Ok(Head { verb: None, content: Some("reply" | "error"), .. }) => {
                    self.replies.send(message).is_ok()
                }
                Ok(Head { id, .. }) => self.calls.send((id, message)).is_ok(),
                // The engine reports what is wrong with it.
                Err(_) => self.calls.send((0, message)).is_ok(),
            };
            if !sent {
                return;
            }
        }
    }
}

/// The engine and its output.
struct HostedLibrary {
    library: Dylib,
    output: File,
    replies: Receiver<Vec<u8>>,
    working_on: Arc<AtomicU64>,
}

impl HostedLibrary {
    fn work(&mut self, calls: &Receiver<(u64, Vec<u8>)>) -> io::Result<()> {
        while let Ok((id, call)) = calls.recv() {
            self.working_on.store(id, Ordering::SeqCst);
            let (output, replies) = (&mut self.output, &self.replies);
            let mut services = |host_call: &[u8]| {
                let written = frame::write(output, host_call.to_vec());
                let reply = written.ok().and_then(|()| replies.recv().ok());
                reply.unwrap_or_else(|| {
                    let error = Error::failed("the host closed the pipe");
                    envelope::reply(0, Err::<Done, _>(error))
                })
            };
            let answered = self.library.answer(&Request { id, bytes: call }, &mut services);
            self.working_on.store(0, Ordering::SeqCst);
            match answered {
                Ok(answer) => frame::write(&mut self.output, answer)?,
                Err(fault) => {
                    let message = fault.to_string();
                    frame::write(&mut self.output, refusal(id, fault))?;
                    if !self.library.is_usable() {
                        return Err(io::Error::other(message));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the error answer to a call that the library did not answer.
fn refusal(id: u64, fault: Fault) -> Vec<u8> {
    let error = match fault {
        Fault::Panicked { message } => Error::new(ErrorKind::Panic, message),
        Fault::Refused(error) => error,
        fault => Error::failed(fault.to_string()),
    };
    let answer = Answer::<Done> { id, ok: None, error: Some(error) };
    serde_json::to_vec(&answer).unwrap_or_default()
}

/// Returns the original stdout, for answers only. Output of the library goes to stderr from now on.
#[cfg(unix)]
fn own_stdout() -> io::Result<File> {
    let own = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(own))
}

#[cfg(not(unix))]
fn own_stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}
