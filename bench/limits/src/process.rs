//! Whole processes: what they take, and what they answer.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wait4::Wait4;

use crate::figure::quantile;

/// What one run of a program took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// User and system time of all threads.
    pub(crate) cpu_ms: f64,
    pub(crate) wall_ms: f64,
    /// At least the peak of this process: a child begins as a copy of it.
    pub(crate) peak_mib: f64,
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Result<Taken> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The child begins with the peak of this process: on Linux this sets it to what is in use now.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let used = child.wait4()?;
    let wall_ms = started.elapsed().as_secs_f64() * 1e3;
    ensure!(used.status.success(), "{command:?} failed: {}", used.status);
    let cpu = used.rusage.utime + used.rusage.stime;
    let peak_mib = used.rusage.maxrss as f64 / f64::from(1 << 20);
    Ok(Taken { cpu_ms: cpu.as_secs_f64() * 1e3, wall_ms, peak_mib })
}

/// Returns a size of a process in MiB, by its name in `/proc/PID/status`; `None` if the system has none.
pub(crate) fn size_mib(process: impl Display, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1_024.0)
}

/// Returns the JSON on the last line of a program's output.
pub(crate) fn answer<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let done = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !done.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    let text = String::from_utf8(done.stdout)?;
    let line = text.lines().last().with_context(|| format!("{command:?} printed nothing"))?;
    serde_json::from_str(line).with_context(|| format!("{command:?} printed {line}"))
}

/// Returns the median CPU milliseconds of a job that a peer's script repeats, and its result. Two runs
/// more than these are made first, and not counted.
pub(crate) fn repeated(script: &mut Command, rounds: usize) -> Result<(f64, u64)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Rounds {
        cpu_ms: Vec<f64>,
        result: u64,
    }
    let mut all: Rounds = answer(script.arg((rounds + 2).to_string()))?;
    all.cpu_ms.drain(..2);
    Ok((quantile(&mut all.cpu_ms, 0.5), all.result))
}

/// Returns the `ctx` to measure.
pub(crate) fn ctx() -> Result<PathBuf> {
    let path = std::env::var_os("CTX_BIN").context("set CTX_BIN to the ctx that is measured")?;
    Ok(PathBuf::from(path))
}

/// Returns a command that runs pi's own code, if npm has installed it.
pub(crate) fn pi() -> Option<Command> {
    let folder = root().join("bench/peers");
    let node = folder.join("node_modules/.bin/node");
    let mut command = Command::new(&node);
    command.arg(folder.join("pi.mjs"));
    node.exists().then_some(command)
}

/// Returns a command that runs a program of the peers that pip has installed.
pub(crate) fn pip(program: &str) -> Option<Command> {
    let path = root().join("target/peers-venv/bin").join(program);
    path.exists().then(|| Command::new(path))
}

/// Returns the root of the workspace: the current folder, so that programs of two revisions find the same
/// peers and sessions.
pub(crate) fn root() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// Returns the folder of recorded sessions, if there is one.
pub(crate) fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("CTX_DATA").map(PathBuf::from);
    Some(folder.unwrap_or_else(|| root().join("../shared/data"))).filter(|path| path.is_dir())
}
