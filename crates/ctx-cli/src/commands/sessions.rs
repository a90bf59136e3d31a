//! `ctx sessions`.

mod maintain;

use std::process::ExitCode;

use ctx_session::paths::Home;
use ctx_session::store::{SessionEntry, SessionStore};
use serde::Serialize;

use crate::args::{Global, Sessions, SessionsCommand};
use crate::failure::misuse;
use crate::out::{Cell, Out, table};
use crate::words::{shortened, thousands};

/// How much of a key is shown.
const KEY_CHARS: usize = 48;

/// A row of the store, with its key in it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    session_key: String,
    agent_id: String,
    /// The path; none where it would lead out of the folder.
    transcript: Option<String>,
    #[serde(flatten)]
    entry: SessionEntry,
}

pub(crate) fn run(global: &Global, args: &Sessions, out: &Out) -> anyhow::Result<ExitCode> {
    if let Some(SessionsCommand::Maintain(args)) = &args.command {
        return maintain::run(global, args, out);
    }
    let home = Home::from_env()?;
    let agents = match &args.agent {
        Some(agent) => vec![agent.parse().map_err(misuse)?],
        None => home.agents()?,
    };
    let mut sessions = Vec::new();
    for agent in agents {
        let stored = match SessionStore::at(home.sessions_file(&agent)).load() {
            Ok(stored) => stored,
            Err(error) if args.agent.is_none() => {
                out.warn(format!("agent {agent} is left out: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for (key, error) in stored.unreadable() {
            out.warn(format!("session {key} of agent {agent} is left out: {error}"));
        }
        sessions.extend(stored.all().map(|(key, entry)| Stored {
            transcript: transcript(&home, key, entry),
            session_key: key.to_string(),
            agent_id: agent.to_string(),
            entry: entry.clone(),
        }));
    }
    sessions.sort_by_key(|s| std::cmp::Reverse(s.entry.updated_at));
    if args.json {
        out.json(&sessions)?;
        return Ok(ExitCode::SUCCESS);
    }
    if sessions.is_empty() {
        out.note(format!("no sessions under {}", home.root().display()));
        return Ok(ExitCode::SUCCESS);
    }
    let rows = sessions.iter().map(|session| row(session, args.paths)).collect();
    let last = if args.paths { "transcript" } else { "session id" };
    let header = ["session key", "context", "compactions", "last active", last];
    out.line(table(&header, rows, 3))?;
    Ok(ExitCode::SUCCESS)
}

fn transcript(home: &Home, key: &str, entry: &SessionEntry) -> Option<String> {
    let path = home.transcript(&key.parse().ok()?, entry).ok()?;
    Some(path.display().to_string())
}

fn row(session: &Stored, paths: bool) -> Vec<Cell> {
    let entry = &session.entry;
    let active = jiff::Timestamp::from_millisecond(entry.updated_at.0).ok();
    vec![
        shortened(&session.session_key, KEY_CHARS).into(),
        entry.context_tokens.map_or_else(|| "-".to_owned(), thousands).into(),
        thousands(entry.compaction_count.unwrap_or(0)).into(),
        active
            .map_or_else(|| "-".to_owned(), |t| t.strftime("%Y-%m-%d %H:%M UTC").to_string())
            .into(),
        match &session.transcript {
            Some(path) if paths => path.clone().into(),
            _ if paths => "-".into(),
            _ => entry.session_id.clone().into(),
        },
    ]
}
