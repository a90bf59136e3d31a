//! Resolves the sessions named by a command's arguments: files, folders, ids, keys, or none.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_eval::recall::DatasetFormat;
use ctx_session::key::SessionKey;
use ctx_session::{Agent, AgentHomes, Discovery, Home, SessionStore};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, shortened};
use ctx_terminal::out::Out;
use serde::Serialize;

use crate::args::{Command, EvalCommand, MemoryCommand};
use crate::setup::is_stdin;

/// Maximum length of a quoted name.
const NAME_CHARS: usize = 80;

/// Replaces session names by the paths of their transcripts.
pub(crate) fn resolved(mut command: Command, out: &Out) -> anyhow::Result<Command> {
    match &mut command {
        Command::Replay(args) => args.sessions = all(&args.sessions, out)?,
        Command::Eval(args) => match &mut args.command {
            Some(EvalCommand::Compact(args)) => args.sessions = all(&args.sessions, out)?,
            Some(EvalCommand::Recall(args)) if args.dataset == DatasetFormat::Sessions => {
                args.paths = all(&args.paths, out)?;
            }
            Some(EvalCommand::Recall(_)) => {}
            None => args.sessions = all(&args.sessions, out)?,
        },
        Command::Status(args) => args.sessions = all(&args.sessions, out)?,
        Command::Memory(MemoryCommand::Ingest(args)) => {
            args.sessions = all(&args.sessions, out)?;
        }
        Command::Assemble(args) => args.session = one(&args.session)?,
        Command::Compact(args) => args.session = one(&args.session)?,
        Command::Compactions(args) => {
            args.session = args.session.as_deref().map(one).transpose()?;
        }
        Command::Diff(args) => args.session = one(&args.session)?,
        Command::Expand(args) => {
            args.session = args.session.as_deref().map(one).transpose()?;
        }
        Command::Why(args) => {
            args.session = args.session.as_deref().map(one).transpose()?;
        }
        Command::Convert(args) => args.session = one(&args.session)?,
        Command::Check(args) => args.session = one(&args.session)?,
        _ => {}
    }
    Ok(command)
}

/// Returns the folders with sessions of agents and of ctx.
pub(crate) fn homes() -> anyhow::Result<AgentHomes> {
    Ok(AgentHomes::from_env().with(Agent::CTX, Home::from_env()?.root.join("agents")))
}

/// Returns the named transcripts: all sessions of a folder, and without a name the newest session
/// of the current folder.
pub(crate) fn all(named: &[PathBuf], out: &Out) -> anyhow::Result<Vec<PathBuf>> {
    if named.is_empty() {
        return Ok(vec![newest(out)?]);
    }
    let mut paths = Vec::with_capacity(named.len());
    for name in named {
        if !name.is_dir() {
            paths.push(one(name)?);
            continue;
        }
        let found = Discovery::in_folder(name)?;
        found.problems.iter().for_each(|problem| out.warn(problem.to_string()));
        if found.sessions.is_empty() {
            let error = Error::new(ErrorKind::NotFound, "no session of an agent in the folder");
            let error = error.with("path", name.display());
            return Err(error.hint("`ctx sessions` lists those of all agents").into());
        }
        out.note(format!("{} in {}", counted(found.sessions.len(), "session"), name.display()));
        paths.extend(found.sessions.into_iter().map(|session| session.path));
    }
    Ok(paths)
}

/// Returns the newest session of the current folder, and names it.
pub(crate) fn newest(out: &Out) -> anyhow::Result<PathBuf> {
    let missing = || {
        Error::new(ErrorKind::NotFound, "no session of the current folder")
            .hint("name a transcript, a folder or an id; `ctx sessions` lists those of all folders")
    };
    let folder = std::env::current_dir().map_err(|error| missing().source(error))?;
    let newest = homes()?.newest_in(&folder);
    let found = newest.ok_or_else(|| missing().with("folder", folder.display()))?;
    let (agent, id) = (found.agent.name(), shortened(&found.session_id, NAME_CHARS));
    let project = found.project.as_deref().unwrap_or(&folder).display();
    out.note(format!("the newest session of {project}: {id} of {agent}"));
    Ok(found.path)
}

/// Returns the transcript named by its path, by its key, `agent:main:main` for example, or by its
/// id or a prefix of it. A file of that name takes precedence. A text like a path is a path.
pub(crate) fn one(name: &Path) -> anyhow::Result<PathBuf> {
    let text = name.to_str().filter(|_| !is_stdin(name) && name.symlink_metadata().is_err());
    let Some(text) = text else { return Ok(name.to_owned()) };
    if text.starts_with("agent:") {
        return of_key(text);
    }
    if name.components().count() != 1 || name.extension().is_some() {
        return Ok(name.to_owned());
    }
    match homes()?.named(text) {
        Ok(found) => Ok(found.path),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            of_key(&format!("agent:main:{text}")).map_err(|_| error.into())
        }
        Err(error) => Err(misuse(error)),
    }
}

/// Returns the path of a stored session's transcript.
fn of_key(text: &str) -> anyhow::Result<PathBuf> {
    let home = Home::from_env()?;
    let key: SessionKey = text.parse().map_err(misuse)?;
    let unknown = || {
        let named = shortened(text, NAME_CHARS);
        let error = Error::new(ErrorKind::NotFound, format!("session '{named}' not found"));
        error.hint("`ctx sessions` lists the sessions with their keys")
    };
    let Some(agent) = key.agent() else { return Err(unknown().into()) };
    let stored = SessionStore::at(home.sessions_file(agent)).load()?;
    let entry = stored.get(&key).ok_or_else(unknown)?;
    Ok(home.transcript(&key, entry)?)
}

/// Reports on each session: prints an object for one, an array for several. If one of several
/// cannot be read, there is a warning, and the others are reported.
pub(crate) fn each<R: Serialize>(
    sessions: &[PathBuf],
    json: bool,
    out: &Out,
    report: impl Fn(&Path) -> anyhow::Result<R>,
    print: impl Fn(&R) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    if let [session] = sessions {
        return out.report(json, &report(session)?, |report, _| print(report));
    }
    let mut reports = Vec::with_capacity(sessions.len());
    for session in sessions {
        match report(session) {
            Ok(report) if json => reports.push(report),
            Ok(report) => {
                if !reports.is_empty() {
                    out.line("")?;
                }
                print(&report)?;
                reports.push(report);
            }
            Err(error) => out.warn(format!("{}: {error}", session.display())),
        }
    }
    if json {
        out.json(&reports)?;
    }
    Ok(if reports.len() == sessions.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
