//! `ctx` without a command: what is on this machine, and what to do next.

use std::process::ExitCode;

use ctx_clients::{Client, Environment, Proxy};
use ctx_server::running::running;
use ctx_session::{DiscoveredSession, Home};
use ctx_terminal::format::escaped;
use ctx_terminal::out::{BOLD, DIM, Out};

use super::sessions::age;
use crate::session_args::homes;

/// Enough of an id to be found by it.
const ID_CHARS: usize = 18;

pub(crate) fn run(out: &Out) -> anyhow::Result<ExitCode> {
    let environment = Environment::from_process();
    let is_installed =
        |client: &Client| *client != Client::Sdk && environment.find(client.id()).is_some();
    let clients: Vec<_> = Client::ALL.into_iter().filter(is_installed).collect();
    let sessions = homes()?.sessions().sessions;
    let server = running(&Home::from_env()?).unwrap_or_default();
    out.line(format!(
        "{BOLD}ctx{BOLD:#} {} keeps LLM agents inside their context window",
        env!("CARGO_PKG_VERSION")
    ))?;
    let names: Vec<_> = clients.iter().map(|client| client.name()).collect();
    match names.is_empty() {
        true => out.line("clients: none found")?,
        false => out.line(format!("clients: {}", names.join(", ")))?,
    }
    match sessions.first() {
        Some(newest) => out.line(format!(
            "sessions: {}, newest: {}, {}",
            sessions.len(),
            newest.agent.name(),
            age(newest.modified)
        ))?,
        None => out.line("sessions: none found")?,
    }
    if let Some(server) = &server {
        out.line(format!("proxy: {} (process {})", server.url, server.pid))?;
    }
    out.line("")?;
    let is_set_up = |client: &Client| {
        let addresses = client.addresses(&environment).unwrap_or_default();
        let proxy = server.as_ref().map(|server| Proxy::at(&server.url));
        proxy.is_some_and(|proxy| addresses.iter().any(|address| proxy.is_at(&address.url)))
    };
    let next_client = clients.iter().copied().find(|client| !is_set_up(client));
    let next = next(next_client.or(clients.first().copied()), sessions.first());
    let width = next.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
    for (command, what) in &next {
        out.line_indented(format!("  {command:width$}  {DIM}{what}{DIM:#}"), width + 4)?;
    }
    out.line("")?;
    out.line("`ctx --help` lists all commands.")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns three commands with names of this machine.
fn next(client: Option<Client>, newest: Option<&DiscoveredSession>) -> [(String, &'static str); 3] {
    let replay = match newest {
        Some(session) => {
            let id: String = session.session_id.chars().take(ID_CHARS).collect();
            (
                format!("ctx replay {}", escaped(&id)),
                "that session with ctx: tokens, cost, compactions",
            )
        }
        None => ("ctx doctor".to_owned(), "what ctx needs, and what is there"),
    };
    let id = client.map_or("PROGRAM", Client::id);
    let setup = client.map_or("sdk", Client::id);
    [
        replay,
        (format!("ctx run -- {id}"), "its requests go through ctx, for this run only"),
        (format!("ctx setup {setup}"), "from now on; --undo takes it back"),
    ]
}
