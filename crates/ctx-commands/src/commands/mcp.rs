//! `ctx mcp`.

use std::io::{self, BufReader};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_mcp::{OtherAgents, PATH, Server, SessionRef, Setup, Writes, routes, serve_stdio};
use ctx_memory::archive::ArchivedSessions;
use ctx_runtime::lookup::{Archiver, Lookup, OtherSessions};
use ctx_server::{Host, http};
use ctx_session::key::FileId;
use ctx_session::{AgentHomes, Home, find_session};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::escaped;
use ctx_terminal::out::Out;
use ctx_terminal::shutdown;

use crate::args::{Global, Mcp};
use crate::setup;

pub(crate) fn run(global: &Global, args: &Mcp, out: &Out) -> anyhow::Result<ExitCode> {
    let agent: FileId = args.agent.parse().map_err(misuse)?;
    let host = Host { config: setup::config(global)?, home: Home::from_env()? };
    let session = args.session.as_deref().map(session_ref);
    if let Some(SessionRef::Named(named)) = &session
        && find_session(&host.home, &agent, named)?.is_none()
    {
        // The session may be created later.
        out.warn(format!("agent {agent} has no session '{}' yet", escaped(named)));
    }
    // Only clients over HTTP send a token.
    let token = match args.http {
        Some(_) => setup::token(args.token.as_deref())?,
        None => None,
    };
    let writes = match (args.read_only, &token) {
        (true, _) => Writes::Nobody,
        (false, Some(_)) => Writes::WithToken,
        (false, None) => Writes::All,
    };
    let server = || {
        let others = Some(others(&host, &agent, args.read_only, out)?);
        let (host, agent, session) = (host.clone(), agent.clone(), session.clone());
        anyhow::Ok(Server::new(Setup { host, agent, session, writes, others }))
    };
    match args.http {
        None => serve_stdio(server()?, BufReader::new(io::stdin()), io::stdout())?,
        Some(listen) => {
            over_http(http::Server { token, ..http::Server::new(listen) }, server, out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the sessions of other agents, and starts to archive them if configured.
fn others(host: &Host, agent: &FileId, reads_only: bool, out: &Out) -> anyhow::Result<OtherAgents> {
    let (homes, folder) = (AgentHomes::from_env(), std::env::current_dir().unwrap_or_default());
    let lookup = Lookup::open(&host.config, host.home.clone(), agent.clone())?;
    let sessions = Arc::new(OtherSessions::new(&lookup, homes, folder)?);
    if reads_only || !lookup.config.archive_sessions {
        return Ok(OtherAgents { sessions, archiver: None });
    }
    if !ArchivedSessions::of(&lookup.folder).exists() {
        out.note(format!(
            "the sessions of Claude Code, Codex, pi and other agents on this machine are archived in {}, \
             with secrets redacted, and are not sent anywhere; \
             agents.defaults.memoryContext.archiveSessions: false in {} disables this",
            lookup.folder.display(),
            host.home.config_file().display(),
        ));
    }
    let archiver = Archiver::start(Arc::new(lookup), sessions.clone())?;
    Ok(OtherAgents { sessions, archiver: Some(archiver) })
}

fn over_http(
    listening: http::Server,
    server: impl FnOnce() -> anyhow::Result<Server>,
    out: &Out,
) -> anyhow::Result<()> {
    setup::block_on_threads(async {
        let bound = listening.bind().await?;
        let server = server()?;
        out.line(format!("{}{PATH}", bound.url()))?;
        let shutdown = http::Shutdown::default();
        let (interrupted, terminated) = (shutdown.clone(), shutdown.clone());
        shutdown::on_interrupt(move || interrupted.stop());
        shutdown::on_term(move || terminated.stop());
        bound.serve(routes(server), shutdown).await;
        anyhow::Ok(())
    })
}

fn session_ref(named: &str) -> SessionRef {
    let path = Path::new(named);
    match path.is_file() {
        true => SessionRef::File(path.to_owned()),
        false => SessionRef::Named(named.to_owned()),
    }
}
