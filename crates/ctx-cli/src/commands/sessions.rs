//! `ctx sessions`.

use std::process::ExitCode;

use ctx_session::{Home, StoredSession};

use crate::args::Sessions;
use crate::out::{Out, table, thousands};
use crate::setup;

pub(crate) fn run(args: &Sessions, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::new(setup::home());
    let mut sessions = home.sessions(args.agent.as_deref())?;
    sessions.sort_by_key(|s| std::cmp::Reverse(s.entry.updated_at));
    if args.json {
        out.json(&sessions)?;
        return Ok(ExitCode::SUCCESS);
    }
    if sessions.is_empty() {
        out.note(format!("no sessions under {}", home.path().display()));
        return Ok(ExitCode::SUCCESS);
    }
    let rows = sessions.iter().map(row).collect();
    let header = ["session key", "context", "compactions", "last active", "session id"];
    out.line(table(&header, rows, 3))?;
    Ok(ExitCode::SUCCESS)
}

fn row(session: &StoredSession) -> Vec<String> {
    let entry = &session.entry;
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), thousands);
    let active = entry.updated_at.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    vec![
        session.session_key.clone(),
        number(entry.context_tokens),
        number(entry.compaction_count),
        active.map_or_else(|| "-".to_owned(), |t| t.strftime("%Y-%m-%d %H:%M UTC").to_string()),
        entry.session_id.clone(),
    ]
}
