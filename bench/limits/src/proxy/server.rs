//! A server that is measured, as a process of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tempfile::TempDir;

use crate::process;

/// The clock ticks of a second in `/proc`, which Linux fixes for all programs.
const TICKS: f64 = 100.0;

/// The models' window: no history reaches it.
const WINDOW: &str = "200000";

/// A process that listens, until it is dropped.
pub(super) struct Server {
    process: Child,
    pub(super) address: SocketAddr,
    _home: Option<TempDir>,
}

impl Server {
    /// Starts `ctx serve` with a home of its own.
    pub(super) fn ctx(upstream: SocketAddr) -> Result<Self> {
        let home = tempfile::tempdir_in(process::root().join("target"))?;
        // Requests that wait must not be refused.
        fs::write(home.path().join("ctx.json5"), "{ server: { maxRequests: 4096 } }")?;
        let mut command = Command::new(process::ctx()?);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--window", WINDOW])
            .args(["--upstream", &format!("http://{upstream}")])
            .env("CTX_HOME", home.path())
            .env_remove("CTX_SERVER_TOKEN");
        Self::start(command, Some(home))
    }

    /// Starts the relay.
    pub(super) fn relay(upstream: SocketAddr) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--relay", &upstream.to_string()]);
        Self::start(command, None)
    }

    fn start(mut command: Command, home: Option<TempDir>) -> Result<Self> {
        #[derive(Deserialize)]
        struct Listening {
            url: String,
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        // From here on, it is killed if anything fails.
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { process, address, _home: home };
        let mut line = String::new();
        let output = server.process.stdout.as_mut().context("it has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let Listening { url } = serde_json::from_str(&line)
            .with_context(|| format!("{command:?} does not listen: {line}"))?;
        server.address = url.trim_start_matches("http://").parse()?;
        Ok(server)
    }

    /// Returns the milliseconds of CPU that it has used.
    pub(super) fn cpu_ms(&self) -> Result<f64> {
        let text = self.file("stat")?;
        // The name of the program, in parentheses, may contain blanks.
        let fields: Vec<_> = text.rsplit(')').next().unwrap_or_default().split(' ').collect();
        let ticks = |at: usize| -> Result<f64> {
            Ok(fields.get(at).context("a field of /proc/PID/stat is missing")?.parse()?)
        };
        // `utime` and `stime`, the fields 14 and 15.
        Ok((ticks(12)? + ticks(13)?) * 1e3 / TICKS)
    }

    /// Returns its resident memory.
    pub(super) fn memory_mib(&self) -> Result<f64> {
        process::size_mib(self.process.id(), "VmRSS").context("its memory is not known")
    }

    /// Checks that so many clients are connected.
    pub(super) fn check_connections(&self, clients: usize) -> Result<()> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.process.id()))?.count();
        ensure!(open >= clients, "only {open} of {clients} connections are open");
        Ok(())
    }

    fn file(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.process.id());
        fs::read_to_string(&path).with_context(|| path)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
