//! Sessions by their keys, where paths of transcripts are taken.

use std::path::PathBuf;

use ctx_core::{Error, ErrorKind};
use ctx_session::key::SessionKey;
use ctx_session::paths::Home;
use ctx_session::store::SessionStore;

use crate::args::Command;
use crate::failure::misuse;
use crate::words::shortened;

/// How much of a key is quoted.
const KEY_CHARS: usize = 80;

/// Puts the path of its transcript in the place of each session's key, `agent:main:main` for example.
/// A file of that name comes first.
pub(crate) fn found(mut command: Command) -> anyhow::Result<Command> {
    for session in sessions_of(&mut command) {
        let is_key = |text: &&str| text.starts_with("agent:");
        let Some(key) = session.to_str().filter(is_key) else { continue };
        if session.symlink_metadata().is_err() {
            *session = path_of(&Home::from_env()?, key)?;
        }
    }
    Ok(command)
}

/// The transcripts that a command is about.
fn sessions_of(command: &mut Command) -> Vec<&mut PathBuf> {
    match command {
        Command::Replay(args) => vec![&mut args.session],
        Command::Eval(args) => args.sessions.iter_mut().collect(),
        Command::Status(args) => vec![&mut args.session],
        Command::Assemble(args) => vec![&mut args.session],
        Command::Compact(args) => vec![&mut args.session],
        Command::Compactions(args) => vec![&mut args.session],
        Command::Diff(args) => vec![&mut args.session],
        Command::Expand(args) => vec![&mut args.session],
        Command::Convert(args) => vec![&mut args.session],
        Command::Check(args) => vec![&mut args.session],
        _ => Vec::new(),
    }
}

/// Where the transcript of a session is.
fn path_of(home: &Home, text: &str) -> anyhow::Result<PathBuf> {
    let key: SessionKey = text.parse().map_err(misuse)?;
    let unknown = || {
        let named = shortened(text, KEY_CHARS);
        let error = Error::new(ErrorKind::NotFound, format!("there is no session '{named}'"));
        error.hint("`ctx sessions` lists the sessions with their keys")
    };
    let Some(agent) = key.agent() else { return Err(unknown().into()) };
    let stored = SessionStore::at(home.sessions_file(agent)).load()?;
    let entry = stored.get(&key).ok_or_else(unknown)?;
    Ok(home.transcript(&key, entry)?)
}
