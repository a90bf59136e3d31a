//! `ctx serve --background` and `--stop`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use ctx_disk::io_error;
use ctx_server::proxy::{ServerConfig, Upstreams};
use ctx_server::running::{RunningServer, STOP_HEADER, STOP_PATH, running, wait_until_ended};
use ctx_session::Home;
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;
use ctx_terminal::shutdown;
use serde_json::json;

use super::service::upstream_urls;
use crate::args::{Global, Serve};
use crate::ask::ask;
use crate::setup;

/// A larger log is set aside when a server starts.
const MOST_LOG: u64 = 10 << 20;

/// How long `--stop` waits beyond the grace period of the server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts this program again as a server without a terminal.
pub(super) fn start(global: &Global, args: &Serve, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let found = running(&home)?;
    if let Some(server) = found.as_ref().filter(|_| !args.replace) {
        if server.version != env!("CARGO_PKG_VERSION") {
            let version = &server.version;
            out.note(format!("it is version {version}: `--background --replace` takes over"));
        }
        let others = other_upstreams(global, args, server)?;
        let port = args.listen.as_deref().and_then(|listen| listen.rsplit(':').next());
        let is_elsewhere = port.is_some_and(|port| port != "0" && server.port() != Some(port));
        let tokens = |text: &Option<String>| setup::parse_tokens(text.as_deref()?).ok();
        let has_other_window =
            args.window.is_some() && tokens(&args.window) != tokens(&server.window);
        if is_elsewhere || has_other_window || !args.upstreams.is_empty() && !others.is_empty() {
            let error = Error::new(ErrorKind::Conflict, "a server of this home runs already")
                .with("url", &server.url)
                .hint("`--background --replace` starts one with these flags in its place");
            return Err(error.into());
        }
        return report(&(&server.url, server.pid), "already listens on", args, out);
    }
    let kept = found.as_ref().map(|server| kept_flags(global, args, server)).transpose()?;
    let kept = kept.unwrap_or_default();
    let log = log_path(&home)?;
    let begin = std::fs::metadata(&log).map_or(0, |found| found.len());
    let mut child = spawn(&log, found.is_some(), &kept)?;
    let mut lines = child.stdout.take().map(|pipe| BufReader::new(pipe).lines());
    let mut line = || lines.as_mut().and_then(Iterator::next).transpose();
    if let Some(server) = &found {
        // Whatever is wrong with the flags or the configuration is found before.
        if line()?.as_deref() != Some(super::READY) {
            return Err(failed(child, &log, begin).into());
        }
        terminate(server)?;
    }
    let line = line()?.unwrap_or_default();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    let Some(url) = said["url"].as_str() else {
        return Err(failed(child, &log, begin).into());
    };
    report(&(url, child.id()), "listens on", args, out)?;
    if !kept.is_empty() {
        out.note(format!("flags of the server before it: {}", kept.join(" ")));
    }
    out.note(format!("its log is {}; `ctx serve --stop` ends it", log.display()));
    Ok(ExitCode::SUCCESS)
}

/// Returns the flags of the server that ends for what is not given again: clients have its port, and
/// a key must not go to another server.
fn kept_flags(
    global: &Global,
    args: &Serve,
    server: &RunningServer,
) -> anyhow::Result<Vec<String>> {
    let mut kept = Vec::new();
    let config: ServerConfig = setup::config(global)?.section()?;
    let listen = server.listen.map(|address| address.to_string());
    if let Some(listen) = listen.filter(|listen| args.listen.is_none() && *listen != config.listen)
    {
        kept.extend(["--listen".to_owned(), listen]);
    }
    if let Some(window) = server.window.as_ref().filter(|_| args.window.is_none()) {
        kept.extend(["--window".to_owned(), window.clone()]);
    }
    let is_given = |name: &str| {
        args.upstreams.iter().any(|given| match given.split_once('=') {
            Some((api, url)) if !api.contains(':') => api == name || url.is_empty(),
            _ => true,
        })
    };
    for name in other_upstreams(global, args, server)?.into_iter().filter(|name| !is_given(name)) {
        if let Some(url) = server.upstreams.get(name) {
            kept.extend(["--upstream".to_owned(), format!("{name}={url}")]);
        }
    }
    Ok(kept)
}

/// Returns the APIs whose upstream, by the flags and the configuration, is not that of a server.
fn other_upstreams(
    global: &Global,
    args: &Serve,
    server: &RunningServer,
) -> anyhow::Result<Vec<&'static str>> {
    let config: ServerConfig = setup::config(global)?.section()?;
    let asked = Upstreams::new(&args.upstreams, &config.upstreams).map_err(misuse)?;
    let others =
        upstream_urls(&asked).into_iter().filter(|(name, url)| !server.sends_to(name, url));
    Ok(others.map(|(name, _)| name).collect())
}

/// Ends the server of this home.
pub(super) fn stop(args: &Serve, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let Some(server) = running(&home)? else {
        if args.json {
            out.json(&json!({ "ended": null }))?;
        }
        out.note("no `ctx serve` of this home runs");
        return Ok(ExitCode::SUCCESS);
    };
    terminate(&server)?;
    let grace = Duration::from_secs(args.grace.unwrap_or(30).into());
    wait_until_ended(&home, grace + PATIENCE)?;
    if args.json {
        out.json(&json!({ "ended": { "url": server.url, "pid": server.pid } }))?;
        return Ok(ExitCode::SUCCESS);
    }
    out.line(format!("ended {} (process {})", server.url, server.pid))?;
    Ok(ExitCode::SUCCESS)
}

/// Says which server of this home runs.
pub(super) fn status(args: &Serve, out: &Out) -> anyhow::Result<ExitCode> {
    let server = running(&Home::from_env()?)?;
    if args.json {
        let known = server.as_ref().map(|server| {
            let RunningServer { url, pid, version, needs_token, upstreams, .. } = server;
            json!({ "url": url, "pid": pid, "version": version, "needsToken": needs_token,
                    "upstreams": upstreams })
        });
        out.json(&json!({ "server": known }))?;
    }
    let Some(server) = server else {
        out.note("no `ctx serve` of this home runs; `ctx serve --background` starts one");
        return Ok(ExitCode::FAILURE);
    };
    if !args.json {
        let RunningServer { url, pid, version, upstreams, .. } = server;
        out.line(format!("ctx {version} listens on {url} (process {pid})"))?;
        for (name, url) in upstreams {
            out.line(format!("{name} -> {url}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Leaves the terminal, if this process was started by [`start`].
pub(super) fn detach(args: &Serve) {
    #[cfg(unix)]
    if args.detached {
        // It fails only for a process that leads its group, which has no terminal to leave.
        let _ = rustix::process::setsid();
    }
    #[cfg(not(unix))]
    let _ = args.detached;
}

fn report(
    (url, pid): &(&str, u32),
    what: &str,
    args: &Serve,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    match args.json {
        true => out.line(json!({ "url": url, "pid": pid }).to_string())?,
        false => out.line(format!("ctx {what} {url} (process {pid})"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn spawn(log: &Path, takes_over: bool, kept: &[String]) -> anyhow::Result<Child> {
    let file = ctx_disk::private().append(true).create(true).open(log);
    let file = file.map_err(|e| io_error("cannot open the log", log, e))?;
    let given = std::env::args_os().skip(1);
    let given =
        given.filter(|flag| !["--background", "--replace", "--json"].iter().any(|own| flag == own));
    let mut command = Command::new(std::env::current_exe()?);
    command.args(given).args(["--json", "--detached"]).args(kept);
    if takes_over {
        command.arg("--takes-over");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
    #[cfg(windows)]
    {
        use std::os::windows::process::CommandExt;
        const DETACHED_PROCESS: u32 = 0x8;
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
        command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
    }
    Ok(command.spawn()?)
}

/// Returns the error of a server that ended at its start, with what it wrote.
fn failed(mut child: Child, log: &Path, begin: u64) -> Error {
    let status = child.wait().map(|status| status.to_string()).unwrap_or_default();
    let mut text = String::new();
    if let Ok(mut file) = File::open(log) {
        // Best effort: the path of the log is in the error.
        let _ = file.seek(SeekFrom::Start(begin)).and_then(|_| file.read_to_string(&mut text));
    }
    let text = anstream::adapter::strip_str(text.trim()).to_string();
    let line = |label| text.lines().rev().find_map(|line| line.strip_prefix(label));
    let said =
        line("error: ").map_or_else(|| format!("the server has ended ({status})"), str::to_owned);
    let error = Error::new(ErrorKind::Io, said).with("log", log.display());
    match line("hint: ") {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn log_path(home: &Home) -> ctx_core::Result<PathBuf> {
    let path = home.root.join("proxy").join("serve.log");
    ctx_disk::create_private_dir(ctx_disk::parent(&path))?;
    if std::fs::metadata(&path).is_ok_and(|found| found.len() > MOST_LOG) {
        let old = ctx_disk::beside(&path, ".1");
        std::fs::rename(&path, &old).map_err(|e| io_error("cannot set the log aside", &path, e))?;
    }
    Ok(path)
}

/// Asks a server to end: by a request, or by a signal if it does not take requests of this kind.
fn terminate(server: &RunningServer) -> ctx_core::Result<()> {
    let key = server.stop_key.as_deref().filter(|_| !server.needs_token);
    let answer = key.map(|key| ask(&server.url, "POST", STOP_PATH, &[(STOP_HEADER, key)], ""));
    if answer.is_some_and(|answer| answer.is_ok_and(|text| text.starts_with("HTTP/1.1 202"))) {
        return Ok(());
    }
    shutdown::terminate(server.pid).map_err(|cause| {
        Error::new(ErrorKind::Io, "cannot end the server")
            .with("process", server.pid)
            .with("cause", &cause)
            .hint("end the process yourself")
            .source(cause)
    })
}
