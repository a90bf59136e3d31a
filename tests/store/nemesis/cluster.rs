//! The hosts: their processes, and the requests to them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use crate::check::Outcome;
use crate::host::{Answer, Request};
use crate::relay::Relay;

/// A request whose outcome is not known yet.
struct Waiting {
    is_begun: bool,
    ended: oneshot::Sender<(Outcome, String)>,
}

/// The requests of a process by their ids; `None` once it has ended.
type Pending = Arc<Mutex<Option<HashMap<u64, Waiting>>>>;

/// A process of a host.
struct Process {
    child: Child,
    requests: mpsc::UnboundedSender<String>,
    pending: Pending,
}

/// A host: its home and its network stay, its process may be killed and started again.
pub(crate) struct Host {
    pub name: String,
    pub home: PathBuf,
    pub network: Relay,
    process: Mutex<Process>,
    starts: Mutex<u32>,
}

impl Host {
    pub(crate) fn start(name: String, home: PathBuf, network: Relay) -> Self {
        let process = Mutex::new(Process::start(&format!("{name}-0"), network.port, &home));
        Self { name, home, network, process, starts: Mutex::new(0) }
    }

    /// Sends a request, and waits for its outcome.
    pub(crate) async fn ask(&self, id: u64, request: &Request) -> (Outcome, String) {
        let (ended, end) = oneshot::channel();
        {
            let process = self.process.lock().unwrap();
            let mut pending = process.pending.lock().unwrap();
            let Some(pending) = pending.as_mut() else {
                return (Outcome::Refused, "the host has ended".to_owned());
            };
            pending.insert(id, Waiting { is_begun: false, ended });
            process.send(request);
        }
        end.await.unwrap_or_else(|_| (Outcome::Unknown, "the controller ended".to_owned()))
    }

    pub(crate) fn skew(&self, milliseconds: i64) {
        self.process.lock().unwrap().send(&Request::Skew(milliseconds));
    }

    /// Kills the process, and starts another one on the same home.
    pub(crate) async fn kill(&self) {
        let number = {
            let mut starts = self.starts.lock().unwrap();
            *starts += 1;
            *starts
        };
        self.process.lock().unwrap().child.start_kill().unwrap();
        let next =
            Process::start(&format!("{}-{number}", self.name), self.network.port, &self.home);
        let mut killed = std::mem::replace(&mut *self.process.lock().unwrap(), next);
        killed.child.wait().await.unwrap();
    }

    /// Sends a signal such as `STOP` to the process.
    pub(crate) async fn signal(&self, signal: &str) {
        let id = self.process.lock().unwrap().child.id();
        let command = format!("kill -{signal} {}", id.expect("it was not waited for"));
        let sent = Command::new("sh").args(["-c", &command]).status().await;
        assert!(sent.unwrap().success(), "{command}");
    }
}

impl Process {
    fn start(name: &str, port: u16, home: &std::path::Path) -> Self {
        let url = format!("postgres://ctx@127.0.0.1:{port}/postgres?sslmode=disable");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["host", name, &url])
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (requests, sent) = mpsc::unbounded_channel();
        let pending = Pending::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(write(child.stdin.take().expect("it is piped"), sent));
        tokio::spawn(read(child.stdout.take().expect("it is piped"), pending.clone()));
        Self { child, requests, pending }
    }

    fn send(&self, request: &Request) {
        // After the end of the process, its requests end as well.
        let _ = self.requests.send(serde_json::to_string(request).unwrap() + "\n");
    }
}

async fn write(mut stdin: ChildStdin, mut requests: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = requests.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Passes answers on until the process ends. What it had not begun by then was not done.
async fn read(stdout: ChildStdout, pending: Pending) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // A process that is killed may leave half a line.
        let Ok((id, answer)) = serde_json::from_str::<(u64, Answer)>(&line) else { continue };
        let mut pending = pending.lock().unwrap();
        let Some(pending) = pending.as_mut() else { return };
        let end = match answer {
            Answer::Begun => {
                if let Some(waiting) = pending.get_mut(&id) {
                    waiting.is_begun = true;
                }
                continue;
            }
            Answer::Acknowledged => (Outcome::Acknowledged, String::new()),
            Answer::Refused(error) => (Outcome::Refused, error),
            Answer::Failed(error) => (Outcome::Unknown, error),
        };
        if let Some(waiting) = pending.remove(&id) {
            let _ = waiting.ended.send(end);
        }
    }
    let left = pending.lock().unwrap().take().unwrap_or_default();
    for waiting in left.into_values() {
        let outcome = if waiting.is_begun { Outcome::Unknown } else { Outcome::Refused };
        let _ = waiting.ended.send((outcome, "the host was killed".to_owned()));
    }
}
