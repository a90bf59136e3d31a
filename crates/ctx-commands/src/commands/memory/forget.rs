//! `ctx memory forget`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_core::ErrorKind;
use ctx_model::TokioTimer;
use ctx_runtime::forget::{
    ForgetPlan, ForgetReport, ForgetRequest, ForgottenProject, MemoryToErase,
};
use ctx_runtime::lookup::Lookup;
use ctx_session::key::FileId;
use ctx_session::{AgentHomes, Erased, Home, Transcript, clock};
use ctx_shared::{HeldAgents, HostMemory, SharedSessions};
use ctx_store::AnyStore;
use ctx_store_postgres::StoreConfig;
use ctx_terminal::format::{counted, shortened};
use ctx_terminal::out::{BOLD, Cell, Out, table};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::args::{ForgetArgs, Global};
use crate::entry_ids::ID_CHARS;
use crate::{selection, setup};

/// Maximum number of messages shown before the confirmation.
const SHOWN: usize = 20;

pub(super) fn run(global: &Global, args: &ForgetArgs, out: &Out) -> anyhow::Result<ExitCode> {
    let (home, section) = (Home::from_env()?, StoreConfig::of(&setup::config(global)?)?);
    if section.url.is_none() {
        let lookups = open(global, args, selection::agents(&home, args.agent.as_deref())?, out)?;
        return erase(args, &home, lookups, &Files::OfHost, out);
    }
    setup::block_on_threads(async {
        let store: AnyStore = Arc::new(section.open().await?);
        let mut agents = selection::agents(&home, args.agent.as_deref())?;
        if args.agent.is_none() {
            let stored = store.agents().await?.into_iter().map(FileId::new);
            agents.extend(stored.collect::<ctx_core::Result<Vec<_>>>()?);
            agents.sort();
            agents.dedup();
        }
        let lookups = open(global, args, agents, out)?;
        let memory = |of: &Lookup| {
            let (folder, memory, facts) = (of.folder.clone(), of.memory.clone(), of.facts.clone());
            (of.agent.clone(), HostMemory { folder, memory, facts })
        };
        let memories = lookups.iter().map(memory).collect();
        let timer = Arc::new(TokioTimer::default());
        let sessions = Arc::new(SharedSessions::new(store, &section.host(), home.clone(), timer));
        let waiting = out.waiting("fetching the sessions of the shared store");
        let held = sessions.hold_agents(memories).await;
        waiting.finish_and_clear();
        let files = Files::Shared(held?);
        let done = block_in_place(|| erase(args, &home, lookups, &files, out));
        if let Files::Shared(held) = files {
            held.release().await;
        }
        done
    })
}

/// The files that are erased from.
enum Files {
    /// They belong to this host alone.
    OfHost,
    /// They were fetched from a shared store.
    Shared(HeldAgents),
}

impl Files {
    /// Runs the erasing, and erases the same from the shared store.
    fn erasing<T>(
        &self,
        out: &Out,
        erase: impl FnOnce() -> ctx_core::Result<T>,
    ) -> ctx_core::Result<T> {
        out.while_waiting("erasing", || {
            let Self::Shared(held) = self else { return erase() };
            let runtime = Handle::current();
            runtime.block_on(held.begin())?;
            let done = erase()?;
            runtime.block_on(held.publish()).map_err(|error| {
                error.hint("other hosts still have it: run the same command again")
            })?;
            Ok(done)
        })
    }
}

/// Opens the memories of the agents. Without `--agent`, a project is archived by `main`.
fn open(
    global: &Global,
    args: &ForgetArgs,
    agents: Vec<FileId>,
    out: &Out,
) -> anyhow::Result<Vec<Lookup>> {
    let agents = match (&args.project, &args.agent) {
        (Some(_), None) => vec![FileId::main()],
        _ => agents,
    };
    agents.iter().map(|agent| super::open(global, agent.as_str(), out)).collect()
}

fn erase(
    args: &ForgetArgs,
    home: &Home,
    lookups: Vec<Lookup>,
    files: &Files,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    if let (Some(project), [of]) = (&args.project, &*lookups) {
        return of_project(of, args, project, files, out);
    }
    let memories = lookups.into_iter().map(|of| {
        let Lookup { agent, memory, facts, .. } = of;
        MemoryToErase { agent, memory, facts }
    });
    let memories: Vec<MemoryToErase> = memories.collect();
    let what = what(args);
    let planned = ForgetPlan::plan(home, what.clone(), &memories).or_else(|error| {
        // Memory also accepts a prefix of a session's id.
        let named = what.session.as_deref().filter(|_| error.kind() == ErrorKind::NotFound);
        let known = |of: &MemoryToErase| of.memory.session_named(named?).ok()?;
        let session = memories.iter().find_map(known).ok_or(error)?;
        ForgetPlan::plan(home, ForgetRequest { session: Some(session), ..what.clone() }, &memories)
    })?;
    if args.dry_run || !args.yes {
        let found = planned.report()?;
        if args.dry_run {
            found.warnings.iter().for_each(|warning| out.warn(warning));
            return out.report(args.json, &found, |found, out| print(found, &would_go(found), out));
        }
        // Continue even if nothing is found: a killed run may have left data to remove.
        if !found.is_nothing() {
            out.note_table(&would_go(&found));
            out.ask("permanently erase all of this?")?;
        }
    }
    let gone = files.erasing(out, || planned.execute(clock::now()))?;
    gone.warnings.iter().for_each(|warning| out.warn(warning));
    index(&memories, out);
    out.report(args.json, &gone, |gone, out| print(gone, &places(gone), out))?;
    Ok(if gone.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Erases the archived sessions of a project.
fn of_project(
    of: &Lookup,
    args: &ForgetArgs,
    project: &Path,
    files: &Files,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let forget = |dry_run| of.forget_project(&AgentHomes::from_env(), project, dry_run);
    let mut report = forget(true)?;
    let describe = |report: &ForgottenProject| {
        let (sessions, segments) = (report.sessions.len(), counted(report.segments, "segment"));
        format!("{}: {segments}, {}", counted(sessions, "session"), counted(report.facts, "fact"))
    };
    if !args.dry_run {
        if !args.yes {
            out.note_table(&describe(&report));
            out.ask("permanently erase all of this?")?;
        }
        report = files.erasing(out, || forget(false))?;
        super::warn(of, out);
    }
    out.report(args.json, &report, |report, out| Ok(out.line(describe(report))?))?;
    if args.dry_run {
        out.note("a dry run: nothing was erased");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the request to forget. A session named by its file is searched in that file.
fn what(args: &ForgetArgs) -> ForgetRequest {
    let mut files = args.files.clone();
    let mut session = args.session.clone();
    let path = session.as_ref().map(Path::new).filter(|path| path.is_file());
    // A word may be a session id and, by chance, the name of a file that is not a transcript.
    let is_word =
        path.is_some_and(|path| path.extension().is_none() && path.parent() == Some("".as_ref()));
    if let Some(full) = path.and_then(|path| path.canonicalize().ok())
        && (!is_word || Transcript::open(&full).is_ok())
    {
        session = Some(full.to_string_lossy().into_owned());
        files.push(full);
    }
    ForgetRequest {
        entries: args.entries.clone(),
        session,
        matching: args.matching.clone(),
        files,
        dry_run: args.dry_run,
    }
}

/// Rebuilds the index from the remaining messages, because erasing removed it as a whole.
fn index(memories: &[MemoryToErase], out: &Out) {
    let waiting = out.waiting("writing the index");
    for MemoryToErase { memory, .. } in memories {
        if let Err(error) = memory.settle() {
            out.warn(format!("the index was not written; the next search rebuilds it: {error}"));
        }
    }
    waiting.finish_and_clear();
    for warning in memories.iter().flat_map(|memory| memory.memory.take_warnings()) {
        out.warn(warning);
    }
}

/// Lists the messages, and the places they would be erased from.
fn would_go(report: &ForgetReport) -> String {
    let rows = report.messages.iter().take(SHOWN).map(|message| {
        let begins = message.begins.clone().unwrap_or_default();
        let id = shortened(&message.entry, ID_CHARS);
        vec![Cell::from(id), message.role.name().into(), begins.into()]
    });
    if report.messages.is_empty() {
        return places(report);
    }
    let mut text = table(&["entry", "role", "message"], rows.collect(), 0);
    if report.messages.len() > SHOWN {
        let more = counted(report.messages.len() - SHOWN, "more message");
        text.push_str(&format!("\nand {more}; --json lists them"));
    }
    format!("{text}\n\n{}", places(report))
}

/// Lists the erased data by place.
fn places(report: &ForgetReport) -> String {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for file in report.files.iter().filter(|file| !file.is_nothing()) {
        let Erased { messages, hidden, summary_lines, forms, others, .. } = file;
        let parts = [
            (*messages, "message"),
            (*hidden, "message hidden"),
            (*summary_lines, "line of a summary"),
            (*forms, "projection"),
            (*others, "other entry"),
        ];
        rows.push(vec![list_counts(&parts).into(), file.path.display().to_string().into()]);
    }
    for agent in &report.agents {
        let parts = [
            (agent.segments, "segment with its words in the index"),
            (agent.vectors, "vector"),
            (agent.facts, "fact"),
            (agent.tool_results, "file of a tool result"),
            (agent.engine_values, "value of an engine"),
        ];
        if parts.iter().any(|(n, _)| *n > 0) {
            let memory = format!("memory of agent {}", agent.agent);
            rows.push(vec![list_counts(&parts).into(), memory.into()]);
        }
    }
    table(&["erased", "from"], rows, 0)
}

/// Formats counts: `2 messages, 1 fact`.
fn list_counts(parts: &[(usize, &str)]) -> String {
    let plural = |n: usize, what: &str| match what.split_once(' ') {
        // The noun is the first word, except after "other".
        Some((first, rest)) if first != "other" => format!("{} {rest}", counted(n, first)),
        _ => counted(n, what),
    };
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| plural(*n, what));
    parts.collect::<Vec<_>>().join(", ")
}

fn print(report: &ForgetReport, text: &str, out: &Out) -> anyhow::Result<()> {
    if report.is_nothing() {
        out.line("nothing to forget")?;
    } else {
        out.line(text)?;
    }
    let ended: usize = report.files.iter().map(|file| file.undo_ended.len()).sum();
    if ended > 0 {
        out.note(format!(
            "{} covered erased messages: an undo restores only the other messages",
            counted(ended, "compaction"),
        ));
    }
    if !report.still_held.is_empty() {
        out.line(format!("\n{BOLD}not erased{BOLD:#}"))?;
        let rows = report
            .still_held
            .iter()
            .map(|held| vec![Cell::from(held.path.display().to_string()), held.why.clone().into()]);
        out.line(table(&["file", "why"], rows.collect(), 0))?;
    }
    if let Some(hint) = &report.hint {
        out.note(hint);
    }
    if report.dry_run {
        out.note("a dry run: nothing was erased");
    }
    Ok(())
}
