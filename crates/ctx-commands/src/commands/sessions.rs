//! `ctx sessions`.

mod branch;
mod maintain;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ctx_compaction::Config as Compaction;
use ctx_core::{Counter, Error, ErrorKind, Timestamp, TokenLedger, Tokens};
use ctx_model::Catalogue;
use ctx_session::{Agent, DiscoveredSession, Home, LastUsage, SessionEntry, SessionStore, clock};
use ctx_terminal::format::{bytes, thousands};
use ctx_terminal::out::{Out, Table, terminal_columns};
use serde::Serialize;

use crate::args::{Global, Sessions, SessionsCommand};
use crate::session_args::homes;
use crate::{selection, setup};

/// Columns dropped on a narrow terminal, in this order.
const SPARED: [&str; 5] = ["size", "project", "context", "age", "agent"];

/// Columns up to this one, except the first, are aligned to the right.
const NUMBERS: usize = 4;

/// Narrower terminals show shortened ids.
const WIDE: usize = 120;

/// Minimum length of a shortened id.
const LEAST_ID: usize = 7;

/// Maximum length of a project's path.
const PROJECT_CHARS: usize = 32;

/// A session of any agent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionRow {
    agent: Agent,
    /// The path; null if it would be outside of the agent's folder.
    path: Option<String>,
    project: Option<String>,
    bytes: Option<u64>,
    /// The model's window, if known.
    window: Option<u32>,
    /// The size of the last prompt as reported by the provider.
    #[serde(skip)]
    used: Option<u64>,
    /// The part of the window available to the prompt.
    #[serde(skip)]
    limit: Option<u64>,
    #[serde(flatten)]
    entry: SessionEntry,
    #[serde(flatten)]
    stored: Option<Stored>,
    /// The file that was found.
    #[serde(skip)]
    found: Option<DiscoveredSession>,
}

/// Additional data from the store of ctx.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    session_key: String,
    agent_id: String,
    transcript: Option<String>,
}

pub(crate) fn run(global: &Global, args: &Sessions, out: &Out) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(SessionsCommand::Maintain(args)) => return maintain::run(global, args, out),
        Some(SessionsCommand::Branch(args)) => return branch::run(global, args, out),
        None => {}
    }
    let found = homes()?.sessions();
    found.problems.iter().for_each(|problem| out.warn(problem.to_string()));
    let (ours, others): (Vec<_>, Vec<_>) =
        found.sessions.into_iter().partition(|session| session.agent == Agent::CTX);
    let agent = args.agent.as_deref().and_then(Agent::find);
    if let Some(name) = args.agent.as_deref().filter(|_| agent.is_none()) {
        check_agent(name)?;
    }
    let mut rows: Vec<SessionRow> = others.into_iter().map(SessionRow::found).collect();
    if agent.is_none_or(|agent| agent == Agent::CTX) {
        let id = args.agent.as_deref().filter(|_| agent.is_none());
        rows.extend(stored(id, &ours, out)?);
    }
    rows.retain(|row| args.agent.is_none() || row.agent == agent.unwrap_or(Agent::CTX));
    if let Some(folder) = &args.project {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = real(folder);
        let of = |row: &SessionRow| row.project.as_ref().map(|project| real(Path::new(project)));
        rows.retain(|row| of(row).is_some_and(|project| project.starts_with(&folder)));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.entry.updated_at));
    rows.truncate(args.limit.unwrap_or(usize::MAX));
    let compaction = setup::config(global).and_then(|config| Ok(Compaction::resolve(&config)?));
    let compaction = compaction.unwrap_or_default();
    for row in &mut rows {
        if let Some(usage) = row.found.as_ref().and_then(DiscoveredSession::last_usage) {
            row.used = Some(usage.prompt_tokens);
            if row.stored.is_none() {
                row.entry.context_tokens = row.used;
                row.window = window(row.agent, &usage);
            }
        }
        row.limit = row.window.map(|window| {
            let reserve = compaction.reserve(Tokens(window));
            TokenLedger::new(Counter::default(), Tokens(window), reserve).limit().get()
        });
    }
    if args.json {
        out.json(&rows)?;
    } else if rows.is_empty() {
        out.note(
            "no sessions found: those of `ctx run -- claude` and other agents will be listed here",
        );
    } else {
        print(&rows, args.paths, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the sessions of ctx's own store.
fn stored(
    agent: Option<&str>,
    files: &[DiscoveredSession],
    out: &Out,
) -> anyhow::Result<Vec<SessionRow>> {
    let home = Home::from_env()?;
    let mut rows = Vec::new();
    for id in selection::agents(&home, agent)? {
        let stored = match SessionStore::at(home.sessions_file(&id)).load() {
            Ok(stored) => stored,
            Err(error) if agent.is_none() => {
                out.warn(format!("agent {id} skipped: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for (key, error) in stored.unreadable() {
            out.warn(format!("session {key} of agent {id} skipped: {error}"));
        }
        rows.extend(stored.all().map(|(key, entry)| {
            let path = key.parse().ok().and_then(|key| home.transcript(&key, entry).ok());
            let file = files.iter().find(|file| Some(&file.path) == path.as_ref());
            SessionRow {
                agent: Agent::CTX,
                project: file.and_then(|file| shown(file.project.as_ref())),
                bytes: file.map(|file| file.bytes),
                // In the store, `contextTokens` is the window.
                window: entry.context_tokens.and_then(|window| u32::try_from(window).ok()),
                used: None,
                limit: None,
                entry: entry.clone(),
                stored: Some(Stored {
                    session_key: key.to_owned(),
                    agent_id: id.to_string(),
                    transcript: shown(path.as_ref()),
                }),
                path: shown(path.as_ref()),
                found: file.cloned(),
            }
        }));
    }
    Ok(rows)
}

/// Returns a path as text, even if it is not UTF-8.
fn shown(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

/// Shortens a project's path for a table: its end, with `~` for the home folder.
pub(super) fn short_project(project: &str) -> String {
    let home = std::env::home_dir().unwrap_or_default().display().to_string();
    let below = project.strip_prefix(&home).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let text = below.map_or(project.to_owned(), |rest| format!("~{rest}"));
    match text.chars().count().checked_sub(PROJECT_CHARS) {
        None | Some(0) => text,
        Some(more) => format!("…{}", text.chars().skip(more + 1).collect::<String>()),
    }
}

impl SessionRow {
    fn found(session: DiscoveredSession) -> Self {
        Self {
            agent: session.agent,
            path: shown(Some(&session.path)),
            project: shown(session.project.as_ref()),
            bytes: Some(session.bytes),
            window: None,
            used: None,
            limit: None,
            entry: SessionEntry {
                session_id: session.session_id.clone(),
                updated_at: session.modified,
                ..SessionEntry::default()
            },
            stored: None,
            found: Some(session),
        }
    }

    fn context(&self) -> String {
        let Some(tokens) = self.used else { return "-".to_owned() };
        let share = self.limit.map(|limit| tokens * 100 / limit.max(1));
        let share = share.map(|share| format!(" ({share} %)")).unwrap_or_default();
        format!("{}{share}", thousands(tokens))
    }

    fn project(&self) -> String {
        self.project.as_deref().map_or_else(|| "-".to_owned(), short_project)
    }

    fn id(&self) -> String {
        let key = self.stored.as_ref().map(|stored| &stored.session_key);
        key.unwrap_or(&self.entry.session_id).clone()
    }
}

/// Returns the model's window. `None` if it is larger than the agent's usual window and the prompt
/// fits into the usual one: agents use the larger window only for prompts that need it, and do not
/// record which they used.
fn window(agent: Agent, usage: &LastUsage) -> Option<u32> {
    let model = || Catalogue::embedded().find(usage.model.as_deref()?);
    let window =
        usage.window.or_else(|| Some(model()?.window.get().try_into().unwrap_or(u32::MAX)))?;
    let usual = agent.usual_window().filter(|usual| window > *usual);
    usual.is_none_or(|usual| usage.prompt_tokens > u64::from(usual)).then_some(window)
}

/// Formats how long ago something was.
pub(super) fn age(at: Timestamp) -> String {
    let minutes = clock::now().0.saturating_sub(at.0).max(0) / 60_000;
    match minutes {
        _ if at == Timestamp::default() => "-".to_owned(),
        0 => "now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..2_880 => format!("{} h ago", minutes / 60),
        2_880..129_600 => format!("{} d ago", minutes / 1_440),
        _ => format!("{} mo ago", minutes / 43_200),
    }
}

/// Rejects the name of an unknown agent.
fn check_agent(name: &str) -> anyhow::Result<()> {
    let mut own: Vec<_> = Home::from_env()?.agents()?.iter().map(ToString::to_string).collect();
    own.push("main".to_owned());
    if own.iter().any(|id| id == name) {
        return Ok(());
    }
    own.dedup();
    let known = Agent::names().map(str::to_owned).chain(own);
    let error = Error::new(ErrorKind::NotFound, "unknown agent").with("agent", name);
    Err(error.hint(format!("known agents: {}", known.collect::<Vec<_>>().join(", "))).into())
}

/// Returns a function that shortens ids to the shortest common length at which they differ. Keys of
/// ctx are not shortened.
fn short_ids(rows: &[SessionRow]) -> impl Fn(&SessionRow) -> String {
    let mut ids: Vec<String> = rows.iter().map(SessionRow::id).collect();
    ids.sort_unstable();
    ids.dedup();
    let common = |pair: &[String]| match pair {
        [a, b] => a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let least = ids.windows(2).map(common).max().unwrap_or(0).max(LEAST_ID) + 1;
    move |row| match row.stored {
        Some(_) => row.id(),
        None => row.id().chars().take(least).collect(),
    }
}

fn print(rows: &[SessionRow], paths: bool, out: &Out) -> anyhow::Result<()> {
    let short = short_ids(rows);
    let is_narrow = terminal_columns().is_some_and(|columns| columns < WIDE);
    let cells = |row: &SessionRow| {
        vec![
            row.agent.name().into(),
            age(row.entry.updated_at).into(),
            row.bytes.map_or_else(|| "-".to_owned(), bytes).into(),
            row.context().into(),
            row.project().into(),
            match paths {
                true => row.path.as_deref().unwrap_or("-").into(),
                false if is_narrow => short(row).into(),
                false => row.id().into(),
            },
        ]
    };
    let last = if paths { "transcript" } else { "id" };
    let header = ["agent", "age", "size", "context", "project", last];
    let table = Table::new(&header, rows.iter().map(cells).collect(), NUMBERS);
    out.line(table.without(&SPARED).fitted())?;
    Ok(())
}
