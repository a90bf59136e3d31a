//! A turn of the runtime, in ever longer sessions and in ever more of them.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use ctx_config::Config;
use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Deltas, Message, ModelCard, NoTools, Reply, Role,
    Tokens,
};
use ctx_runtime::{NoListener, Runtime};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionEntry, SessionStore, clock};
use serde_json::json;

use crate::Effort;
use crate::figure::{Figure, cpu_s, quantile};
use crate::process;

/// A compaction is due after a few hundred turns.
const WINDOW: u32 = 64_000;

/// The messages after the compaction that a long session ends with.
const KEPT: usize = 100;

/// The messages of each of many sessions.
const SHORT: usize = 20;

/// The number of turns that are measured in a long session.
const TURNS: usize = 1_000;

/// The least and the greatest number of turns that are measured in short ones.
const FEW: usize = 100;
const MANY: usize = 1_000;

const BARE: &str = "`write` and `fdatasync` of its two lines";

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let turns = if effort.is_quick { 300 } else { TURNS };
    let few = if effort.is_quick { 2 } else { usize::MAX };
    let limit = bare_us(turns)?;
    for length in [1_000, 10_000, 100_000, 1_000_000].into_iter().take(few) {
        tokio.block_on(by_length(length, turns, limit, print))?;
    }
    // Opening ten thousand sessions takes minutes.
    let most = if effort.is_large() { few } else { few.min(3) };
    for sessions in [1, 100, 1_000, 10_000].into_iter().take(most) {
        tokio.block_on(by_sessions(sessions, limit, print))?;
    }
    Ok(())
}

/// Measures turns at the end of a session with this number of messages.
async fn by_length(
    length: usize,
    turns: usize,
    limit: f64,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    let folder = tempfile::tempdir_in(process::root().join("target"))?;
    write_sessions(folder.path(), 1, length)?;
    let runtime = runtime(folder.path())?;
    // It opens the session.
    turn(&runtime, 0).await?;
    let (mut usual, mut compacting) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        let (us, compactions) = turn(&runtime, 0).await?;
        if compactions == 0 { usual.push(us) } else { compacting.push(us) }
    }
    let what = format!("a turn in a session of {length} messages: CPU, without the model");
    let figure =
        Figure::new(format!("turn-by-length-{length}"), what, "µs", quantile(&mut usual, 0.5));
    print(figure.beside_limit(BARE, limit));
    let Some((first, later)) = compacting.split_first_mut() else { return Ok(()) };
    // The facts of the whole session are read, and then kept in memory.
    let what = "the same, if the turn ends with the first compaction of the process";
    print(Figure::new(format!("first-compaction-by-length-{length}"), what, "µs", *first));
    if !later.is_empty() {
        let what =
            format!("the same, if the turn ends with a later compaction ({} did)", later.len());
        let id = format!("later-compaction-by-length-{length}");
        print(Figure::new(id, what, "µs", quantile(later, 0.5)));
    }
    Ok(())
}

/// Measures turns in this number of sessions, one after the other.
async fn by_sessions(sessions: usize, limit: f64, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let folder = tempfile::tempdir_in(process::root().join("target"))?;
    write_sessions(folder.path(), sessions, SHORT)?;
    let runtime = runtime(folder.path())?;
    // The first turn of each session opens it.
    let mut opening = Vec::with_capacity(sessions);
    for n in 0..sessions {
        opening.push(turn(&runtime, n).await?.0);
    }
    let what = format!("the first turn in each of {sessions} sessions, which opens it: CPU");
    let opened = quantile(&mut opening, 0.5);
    print(Figure::new(format!("first-turn-by-sessions-{sessions}"), what, "µs", opened));
    // Few turns each, so that all contexts are equally short.
    let turns = sessions.clamp(FEW, MANY);
    let mut total = 0.0;
    for n in 0..turns {
        total += turn(&runtime, n % sessions).await?.0;
    }
    let what =
        format!("a turn in each of {sessions} sessions in one process: CPU, without the model");
    let figure =
        Figure::new(format!("turn-by-sessions-{sessions}"), what, "µs", total / turns as f64);
    print(figure.beside_limit(BARE, limit));
    Ok(())
}

/// Returns the CPU microseconds of a turn, and the number of compactions in it.
async fn turn(runtime: &Runtime, session: usize) -> Result<(f64, u32)> {
    let started = cpu_time::ProcessTime::now();
    let outcome = runtime.turn(&nth(session)?, prose(1, 30), &NoTools, &mut NoListener).await?;
    let us = started.elapsed().as_secs_f64() * 1e6;
    ensure!(outcome.answer.is_some(), "there was no answer");
    Ok((us, outcome.compactions))
}

/// Returns the CPU microseconds of writing what a turn must write.
fn bare_us(turns: usize) -> Result<f64> {
    let mut file = tempfile::tempfile_in(process::root().join("target"))?;
    let line = entry(1, Some(0), "user");
    let mut turn = || {
        file.write_all(line.as_bytes())?;
        file.write_all(line.as_bytes())?;
        Ok(file.sync_data()?)
    };
    let mut taken = Vec::with_capacity(turns);
    for _ in 0..turns {
        taken.push(cpu_s(&mut turn)?.0 * 1e6);
    }
    Ok(quantile(&mut taken, 0.5))
}

fn nth(session: usize) -> Result<SessionKey> {
    Ok(format!("agent:main:chat-{session}").parse()?)
}

/// Returns the text of the `n`th message, of about this number of tokens.
fn prose(n: usize, tokens: usize) -> String {
    const WORDS: &str = "the window is measured and the ledger compacts a request of the budget; ";
    let mut text = format!("{n}: src/part_{}.rs, ", n % 1_000);
    text.extend(WORDS.chars().cycle().take(4 * tokens));
    text
}

/// Answers immediately.
struct AtOnce(ModelCard);

#[async_trait]
impl ChatModel for AtOnce {
    fn card(&self) -> &ModelCard {
        &self.0
    }

    async fn answer(&self, request: ChatRequest, _: Deltas<'_>) -> ctx_core::Result<Reply> {
        let message =
            Message::new(Role::Assistant, vec![Block::text(prose(request.messages.len(), 60))]);
        Ok(Reply { message, stop: ChatStop::End })
    }
}

fn runtime(home: &Path) -> Result<Runtime> {
    let model = AtOnce(ModelCard {
        name: "bench/at-once".into(),
        provider: "bench".into(),
        id: "at-once".into(),
        api: "openai-completions".into(),
        window: Some(Tokens(WINDOW)),
        max_output: Some(Tokens(8_192)),
    });
    // By default, no more than 500 sessions are kept.
    let config = Config::parse("{ session: { maintenance: { maxEntries: 100000 } } }")?;
    Ok(Runtime::builder(Home::at(home), config).model(Arc::new(model)).build()?)
}

/// Writes sessions with this number of messages, as if the runtime had made them.
fn write_sessions(home: &Path, sessions: usize, messages: usize) -> Result<()> {
    let home = Home::at(home);
    let now = clock::now();
    let store = SessionStore::at(home.sessions_file(&FileId::main()));
    let keys = (0..sessions).map(nth).collect::<Result<Vec<_>>>()?;
    let entry = |n: usize| SessionEntry::new(format!("session-{n}"), now);
    store.update(|all| {
        keys.iter().enumerate().try_for_each(|(n, key)| all.insert(key, entry(n)).map(drop))
    })?;
    for (n, key) in keys.iter().enumerate() {
        let file = home.transcript(key, &entry(n))?;
        fs::create_dir_all(file.parent().context("a session is in a folder")?)?;
        write_session(&file, &format!("session-{n}"), messages)?;
    }
    Ok(())
}

/// The time of all entries.
const TIME: &str = "2026-01-05T12:00:00.000Z";

fn write_session(file: &Path, id: &str, messages: usize) -> Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let header = json!({
        "type": "session", "version": 3, "ctx": 1, "id": id, "timestamp": TIME, "cwd": "/",
    });
    writeln!(out, "{header}")?;
    for n in 0..messages {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        out.write_all(entry(n, n.checked_sub(1), role).as_bytes())?;
    }
    if messages > KEPT {
        // A session of this length was compacted before.
        let compaction = json!({
            "type": "compaction", "id": hex(messages), "parentId": hex(messages - 1), "timestamp": TIME,
            "summary": prose(0, 500), "firstKeptEntryId": hex(messages - KEPT), "tokensBefore": WINDOW,
        });
        writeln!(out, "{compaction}")?;
    }
    Ok(out.flush()?)
}

fn hex(n: usize) -> String {
    format!("{n:08x}")
}

/// Returns the line of a message.
fn entry(n: usize, parent: Option<usize>, role: &str) -> String {
    let message = json!({ "role": role, "content": [{ "type": "text", "text": prose(n, 50) }] });
    let parent = parent.map(hex);
    let entry = json!({
        "type": "message", "id": hex(n), "parentId": parent, "timestamp": TIME, "message": message,
    });
    format!("{entry}\n")
}
