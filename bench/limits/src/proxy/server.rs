//! A server that is measured, as a process of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::json;
use tempfile::{TempDir, tempdir_in};

use crate::process;

/// The clock ticks of a second in `/proc`, which Linux fixes for all programs.
const TICKS: f64 = 100.0;

/// The models' window: no history reaches it.
const WINDOW: &str = "200000";

/// The time in which a peer must listen.
const START: Duration = Duration::from_secs(120);

/// A process that listens, until it is dropped.
pub(super) struct Server {
    process: Child,
    pub(super) address: SocketAddr,
    _home: Option<TempDir>,
}

impl Server {
    /// Starts `ctx serve` with a home of its own.
    pub(super) fn ctx(upstream: SocketAddr) -> Result<Self> {
        let home = tempdir_in(process::root().join("target"))?;
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

    /// Starts LiteLLM's proxy with one worker, if it is installed.
    pub(super) fn litellm(upstream: SocketAddr) -> Result<Option<Self>> {
        let Some(mut command) = process::pip("litellm") else { return Ok(None) };
        let home = tempdir_in(process::root().join("target"))?;
        let config = home.path().join("config.yaml");
        let base = format!("http://{upstream}/v1");
        let model = json!({ "model": "openai/m", "api_base": base, "api_key": "k" });
        let models = json!({ "model_list": [{ "model_name": "m", "litellm_params": model }] });
        // JSON is YAML.
        fs::write(&config, models.to_string())?;
        // A connection that is idle for a few slices stays open.
        command
            .args(["--host", "127.0.0.1", "--num_workers", "1", "--keepalive_timeout", "600"])
            .arg("--config")
            .arg(&config);
        let env = [
            // The prices of models are not fetched.
            ("LITELLM_LOCAL_MODEL_COST_MAP", "true"),
            ("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true"),
        ];
        command.env_clear().envs(env);
        Self::peer(command, home).map(Some)
    }

    /// Starts lean-ctx's proxy, which forwards what it gets, if it is installed.
    pub(super) fn lean_ctx(upstream: SocketAddr) -> Result<Option<Self>> {
        let Some(mut command) = process::pip("lean-ctx") else { return Ok(None) };
        let upstream = format!("http://{upstream}");
        let env = [
            ("LEAN_CTX_OPENAI_UPSTREAM", upstream.as_str()),
            ("LEAN_CTX_PROXY_LIVE_COMPRESS", "off"),
            ("LEAN_CTX_PROXY_HISTORY_MODE", "off"),
            ("DO_NOT_TRACK", "1"),
        ];
        command.env_clear().envs(env).args(["proxy", "start"]);
        Self::peer(command, tempdir_in(process::root().join("target"))?).map(Some)
    }

    /// Starts a peer with its port as an argument, and waits until it listens.
    fn peer(mut command: Command, home: TempDir) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        command.arg(format!("--port={}", address.port())).env("HOME", home.path());
        let mut server = Self::spawn(&mut command, Stdio::null(), Some(home))?;
        server.address = address;
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(server.process.try_wait()?.is_none(), "{command:?} ended");
            ensure!(started.elapsed() < START, "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// Starts a program that prints its URL.
    fn start(mut command: Command, home: Option<TempDir>) -> Result<Self> {
        #[derive(Deserialize)]
        struct Listening {
            url: String,
        }
        let mut server = Self::spawn(&mut command, Stdio::piped(), home)?;
        let mut line = String::new();
        let output = server.process.stdout.as_mut().context("it has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let Listening { url } = serde_json::from_str(&line)
            .with_context(|| format!("{command:?} does not listen: {line}"))?;
        server.address = url.trim_start_matches("http://").parse()?;
        Ok(server)
    }

    /// Starts a program, which is killed if anything fails from here on.
    fn spawn(command: &mut Command, output: Stdio, home: Option<TempDir>) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
        let process = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Ok(Self { process, address, _home: home })
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

    /// Checks that this many clients are connected.
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
