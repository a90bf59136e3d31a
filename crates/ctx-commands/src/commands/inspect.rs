//! `ctx inspect`.

use std::net::SocketAddr;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use ctx_inspector::replay::{self, ReplaySettings, Replays};
use ctx_inspector::{Inspector, MemorySearch};
use ctx_server::http::{Server, Shutdown};
use ctx_session::{AgentHomes, Home};
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;
use ctx_terminal::shutdown;
use serde_json::json;

use crate::args::{Fit, Global, Inspect};
use crate::{selection, session_args, setup};

/// How long the program waits at exit for answers in progress.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn run(global: &Global, args: &Inspect, out: &Out) -> anyhow::Result<ExitCode> {
    selection::check(args.fit.engine.as_deref())?;
    let (config, home) = (setup::config(global)?, Home::from_env()?);
    let files = match args.sessions.as_slice() {
        [] => Vec::new(),
        named => session_args::all(named, out)?,
    };
    let alone = args.sessions.len() > 1 || args.sessions.iter().any(|named| named.is_dir());
    let agents = if alone { AgentHomes::default() } else { AgentHomes::from_env() };
    let fit = fit_of(&args.fit)?;
    let memory = MemorySearch::new(config.clone(), home.clone());
    let with = ReplaySettings { config, home, fit };
    let replays = Replays::new(with, files.clone(), !alone).with_agents(agents);
    let named = files.first().filter(|_| !alone).map(|path| path.to_string_lossy());
    let session = named.map(|named| replays.find(&named)).transpose()?;
    let token = setup::token(args.token.as_deref())?;
    let shutdown = Shutdown::default();
    let inspector = Inspector::new(replays, memory, shutdown.clone()).with_token(token.is_some());
    let stop = shutdown.clone();
    shutdown::on_interrupt(move || stop.stop());
    let listen = SocketAddr::new(args.listen.ip(), args.port.unwrap_or(args.listen.port()));
    let server = Server { token, grace: GRACE, ..Server::new(listen) };
    let served = setup::block_on_threads(async {
        let bound = server.bind().await?;
        let hash = session.as_ref().map(|id| format!("#/s/{id}")).unwrap_or_default();
        let url = format!("{}/{hash}", bound.url());
        let address = json!({ "url": url, "session": session });
        out.report(args.json, &address, |_, out| Ok(out.line(&url)?))?;
        if args.open
            && let Err(error) = open_browser(&url)
        {
            out.warn(format!("cannot open the browser: {error}"));
        }
        out.note("Ctrl-C ends it");
        bound.serve(inspector.router_alone(), shutdown).await;
        Ok(())
    });
    served.map(|()| ExitCode::SUCCESS)
}

/// Opens a page in `$BROWSER`, else in the system's browser.
fn open_browser(url: &str) -> std::io::Result<()> {
    let browser = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let (program, first): (_, &[&str]) = match (browser, std::env::consts::OS) {
        (Some(browser), _) => (browser, &[]),
        (None, "macos") => ("open".into(), &[]),
        (None, "windows") => ("cmd".into(), &["/C", "start", ""]),
        (None, _) => ("xdg-open".into(), &[]),
    };
    let mut command = Command::new(program);
    let command = command.args(first).arg(url).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // The process must be reaped, but not waited for here.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Returns the flags that override the setup of every session.
fn fit_of(fit: &Fit) -> anyhow::Result<replay::ReplayOverrides> {
    Ok(replay::ReplayOverrides {
        window: fit.window.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?,
        engine: fit.engine.clone(),
        agent: fit.agent.clone(),
        profile: fit.profile,
        counter: fit.counter,
        model: fit.model.clone(),
    })
}
