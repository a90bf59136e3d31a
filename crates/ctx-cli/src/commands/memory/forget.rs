//! `ctx memory forget`.

use std::process::ExitCode;

use ctx_runtime::forget::{Forget, Forgotten, Remembered, forget};
use ctx_session::erase::Erased;
use ctx_session::key::FileId;
use ctx_session::paths::Home;

use super::{OfAgent, now};
use crate::args::{ForgetArgs, Global};
use crate::commands::sessions::agents;
use crate::failure::misuse;
use crate::named::ID_CHARS;
use crate::out::{BOLD, Cell, Out, table};
use crate::words::{counted, shortened};

/// So many messages are shown before somebody is asked.
const SHOWN: usize = 20;

pub(super) fn run(global: &Global, args: &ForgetArgs, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let agents = match &args.agent {
        Some(agent) => vec![agent.parse::<FileId>().map_err(misuse)?],
        None => agents(&home)?,
    };
    let memories = agents.iter().map(|agent| {
        let of = OfAgent::open(global, agent.as_str(), out)?;
        Ok(Remembered { agent: of.agent, memory: of.memory, facts: of.facts })
    });
    let memories = memories.collect::<anyhow::Result<Vec<_>>>()?;
    let what = |dry_run| Forget {
        entries: args.entries.clone(),
        session: args.session.clone(),
        matching: args.matching.clone(),
        files: args.files.clone(),
        dry_run,
    };
    if args.dry_run || !args.yes {
        let found = forget(&home, &what(true), &memories, now())?;
        if args.dry_run {
            found.warnings.iter().for_each(|warning| out.warn(warning));
            match args.json {
                true => out.json(&found)?,
                false => print(&found, &found.would_go(), out)?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        // Where nothing is found, what a run that was killed left behind is still taken away.
        if !found.is_nothing() {
            out.note_table(&found.would_go());
            out.ask("erase all this for good?")?;
        }
    }
    let waiting = out.waiting("erasing");
    let gone = forget(&home, &what(false), &memories, now());
    waiting.finish_and_clear();
    let gone = gone?;
    gone.warnings.iter().for_each(|warning| out.warn(warning));
    for warning in memories.iter().flat_map(|memory| memory.memory.take_warnings()) {
        out.warn(warning);
    }
    match args.json {
        true => out.json(&gone)?,
        false => print(&gone, &places(&gone), out)?,
    }
    Ok(if gone.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A report, as people are shown it.
trait Shown {
    fn would_go(&self) -> String;
}

impl Shown for Forgotten {
    /// The messages, and the places they would go from.
    fn would_go(&self) -> String {
        let rows = self.messages.iter().take(SHOWN).map(|message| {
            let begins = message.begins.clone().unwrap_or_default();
            let id = shortened(&message.entry, ID_CHARS);
            vec![Cell::from(id), message.role.name().into(), begins.into()]
        });
        let mut text = table(&["entry", "role", "message"], rows.collect(), 0);
        if self.messages.len() > SHOWN {
            let more = counted(self.messages.len() - SHOWN, "more message");
            text.push_str(&format!("\nand {more}; --json lists them"));
        }
        format!("{text}\n\n{}", places(self))
    }
}

/// What went from where.
fn places(report: &Forgotten) -> String {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for file in report.files.iter().filter(|file| !file.is_nothing()) {
        let Erased { messages, hidden, summary_lines, forms, others, .. } = file;
        let parts = [
            (*messages, "message"),
            (*hidden, "message hidden"),
            (*summary_lines, "line of a summary"),
            (*forms, "form sent"),
            (*others, "other entry"),
        ];
        rows.push(vec![told(&parts).into(), file.path.display().to_string().into()]);
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
            rows.push(vec![told(&parts).into(), format!("memory of agent {}", agent.agent).into()]);
        }
    }
    table(&["erased", "from"], rows, 0)
}

/// `2 messages, 1 fact`.
fn told(parts: &[(usize, &str)]) -> String {
    let plural = |n: usize, what: &str| match what.split_once(' ') {
        // What is counted comes first.
        Some((first, rest)) if first != "other" => format!("{} {rest}", counted(n, first)),
        _ => counted(n, what),
    };
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| plural(*n, what));
    parts.collect::<Vec<_>>().join(", ")
}

fn print(report: &Forgotten, text: &str, out: &Out) -> anyhow::Result<()> {
    if report.is_nothing() {
        out.line("nothing to forget")?;
    } else {
        out.line(text)?;
    }
    let ended: usize = report.files.iter().map(|file| file.undo_ended.len()).sum();
    if ended > 0 {
        out.note(format!(
            "{} stood for what was erased: to undo brings back the rest, and that no more",
            counted(ended, "compaction"),
        ));
    }
    if !report.still_held.is_empty() {
        out.line(format!("\n{BOLD}still held{BOLD:#}"))?;
        let rows = report
            .still_held
            .iter()
            .map(|held| vec![Cell::from(held.path.display().to_string()), held.why.clone().into()]);
        out.line(table(&["by", "why"], rows.collect(), 0))?;
    }
    if report.dry_run {
        out.note("a dry run: nothing was erased");
    }
    Ok(())
}
