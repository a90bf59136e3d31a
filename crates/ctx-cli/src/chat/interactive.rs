//! A conversation at a terminal.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use ctx_runtime::{COMMANDS, TurnOutcome};
use ctx_session::paths::Home;

use super::bar::bar;
use super::edit::{Line, Lines};
use super::show::{Show, Shown, harmless_text};
use super::{Interrupt, Talk};
use crate::ending;
use crate::failure;
use crate::out::{BOLD, DIM, Out};
use crate::words::harmless;

/// Commands that are for the terminal, not for the runtime.
const HERE: [(&str, &str); 2] =
    [("/help", "list the commands"), ("/quit", "end the conversation; so does Ctrl-D")];

/// What came of a message.
enum Turned {
    Answered(Box<TurnOutcome>),
    /// Ctrl-C.
    Stopped,
}

/// Talks until there is nothing more to say. Where nobody is at a terminal but messages come from a pipe,
/// Ctrl-C ends the program, and its exit code is that of the first message that failed.
pub(crate) fn run(
    talk: &Talk<'_>,
    home: &Home,
    interrupt: &Interrupt,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let is_terminal = io::stdin().is_terminal();
    if is_terminal {
        let stop = interrupt.clone();
        ending::on_interrupt(move || stop.trigger());
    }
    let mut failed = None;
    let mut lines = Lines::open(&home.root().join("chat-history"))?;
    let (model, key) = (harmless(talk.model), harmless(&talk.key.to_string()));
    out.aside(format!("{model}, session {key}; /help lists the commands, Ctrl-D ends"));
    let waiting = super::waiting_runtime()?;
    loop {
        if let Some(trouble) = lines.take_trouble() {
            out.warn(trouble);
        }
        let said = match lines.next("> ")? {
            Line::Said(said) => said,
            Line::Interrupted => {
                out.aside("Ctrl-D ends the conversation");
                continue;
            }
            Line::Over => break,
        };
        match said.trim() {
            "" => continue,
            "/quit" | "/exit" => break,
            "/help" => help(out)?,
            _ => {
                lines.remember(&said);
                match waiting.block_on(turn(talk, said, interrupt, out)) {
                    Ok(Turned::Answered(outcome)) => end_of_turn(&outcome, out),
                    Ok(Turned::Stopped) => out.note("stopped; what was stored so far stays"),
                    Err(error) => {
                        out.error(&error);
                        failed.get_or_insert(failure::code(&error));
                    }
                }
            }
        }
    }
    waiting.block_on(async {
        let closed = talk.runtime.close(talk.key).await;
        // It had all the time there was.
        talk.runtime.end_maintenance(Duration::ZERO).await;
        closed
    })?;
    Ok(failed.filter(|_| !is_terminal).unwrap_or(ExitCode::SUCCESS))
}

/// One message. Where Ctrl-C comes first, the turn is dropped: what it had stored stays, and what it
/// left open is mended when the session is next used.
async fn turn(
    talk: &Talk<'_>,
    said: String,
    interrupt: &Interrupt,
    out: &Out,
) -> anyhow::Result<Turned> {
    let mut show = Show::new(out, Shown::Everything, talk.verbose);
    let stopped = interrupt.wait();
    let outcome = tokio::select! {
        outcome = talk.runtime.turn(talk.key, said, talk.tools, &mut show) => Some(outcome),
        () = stopped => None,
    };
    let was_shown = show.end()?;
    let Some(outcome) = outcome else { return Ok(Turned::Stopped) };
    let outcome = outcome.map_err(|error| talk.told(error))?;
    if let Some(answer) = outcome.answer.as_deref().filter(|_| !was_shown) {
        out.line(harmless_text(answer.trim_end()))?;
    }
    Ok(Turned::Answered(Box::new(outcome)))
}

fn end_of_turn(outcome: &TurnOutcome, out: &Out) {
    if let Some(fill) = &outcome.fill {
        out.aside(bar(fill));
    }
}

fn help(out: &Out) -> std::io::Result<()> {
    for (usage, about) in COMMANDS.iter().chain(&HERE) {
        out.line(format!("{BOLD}{usage:<18}{BOLD:#}{DIM}{about}{DIM:#}"))?;
    }
    out.line(format!("{DIM}Ctrl-C stops an answer; Alt-Enter begins another line{DIM:#}"))
}
