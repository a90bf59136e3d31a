//! A conversation at a terminal, or with lines from a pipe.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use ctx_runtime::{COMMANDS, Input, TurnOutcome};
use ctx_session::Home;
use ctx_terminal::failure;
use ctx_terminal::format::{escaped, escaped_piece};
use ctx_terminal::out::{BOLD, Cell, DIM, Out, table};
use ctx_terminal::shutdown;

use super::bar::bar;
use super::edit::{Entered, LineEditor};
use super::input::{Mode, ParsedLine, TERMINAL_COMMANDS};
use super::show::{Detail, Show};
use super::{Interrupt, Talk};

/// Runs the conversation to its end. If messages come from a pipe, Ctrl-C ends the program, and the
/// first failed message sets the exit code.
pub(crate) fn run(
    talk: &Talk<'_>,
    home: &Home,
    interrupt: &Interrupt,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let is_watched = io::stdin().is_terminal();
    let mut lines = LineEditor::open(&home.root.join("chat-history"))?;
    if is_watched {
        // Registered after the editor was created, because the editor replaces the Ctrl-C handler.
        let stop = interrupt.clone();
        shutdown::on_interrupt(move || stop.trigger());
    }
    let (model, key) = (escaped(talk.model), escaped(&talk.key.to_string()));
    out.aside(format!("{model}, session {key}; /help lists the commands, Ctrl-D ends"));
    let mut failed = None;
    loop {
        if let Some(warning) = lines.warning.take() {
            out.warn(warning);
        }
        let said = match lines.next("> ")? {
            Entered::Text(said) => said,
            Entered::Interrupted => {
                out.aside("Ctrl-D ends the conversation");
                continue;
            }
            Entered::End => break,
        };
        // From here on, Ctrl-C applies to this message.
        let stopped = interrupt.wait();
        let meant = ParsedLine::of(&said, Mode::Terminal);
        if !matches!(meant, Ok(ParsedLine::Nothing)) {
            lines.remember(&said);
        }
        let turned = match meant {
            Ok(ParsedLine::Nothing) => continue,
            Ok(ParsedLine::Quit) => break,
            Ok(ParsedLine::Help) => {
                help(out)?;
                continue;
            }
            Ok(ParsedLine::Message { input, asks_model }) => {
                talk.threads.block_on(turn(talk, *input, asks_model, stopped, out))
            }
            Err(error) => Err(error.into()),
        };
        match turned {
            Ok(Some(outcome)) => outcome.fill.iter().for_each(|fill| out.aside(bar(fill))),
            Ok(None) => out.note("stopped; what was stored so far is kept"),
            Err(error) => {
                out.error(&error);
                failed.get_or_insert(failure::code(&error));
            }
        }
    }
    talk.threads.block_on(close(talk, out));
    Ok(failed.filter(|_| !is_watched).unwrap_or(ExitCode::SUCCESS))
}

async fn close(talk: &Talk<'_>, out: &Out) {
    if let Err(error) = talk.runtime.close(talk.key).await {
        out.warn(format!("the session was not closed: {error}"));
    }
    // Maintenance could run during the whole conversation, so it gets no extra time.
    talk.runtime.end_maintenance(Duration::ZERO).await;
}

/// Runs one message. Returns `None` if Ctrl-C dropped the turn: stored messages remain, and open
/// calls are answered when the session is next used.
async fn turn(
    talk: &Talk<'_>,
    input: Input,
    asks_model: bool,
    stopped: impl Future<Output = ()>,
    out: &Out,
) -> anyhow::Result<Option<TurnOutcome>> {
    let show = Show::new(out, Detail::Everything, talk.verbose, talk.spinner);
    let mut show = show.waiting_if(asks_model);
    let outcome = tokio::select! {
        // Ctrl-C takes precedence over the result.
        biased;
        () = stopped => None,
        outcome = talk.runtime.turn(talk.key, input, talk.tools, &mut show) => Some(outcome),
    };
    let was_shown = show.end()?;
    let Some(outcome) = outcome else { return Ok(None) };
    let outcome = outcome.map_err(|error| talk.turn_error(error))?;
    if let Some(answer) = outcome.answer.as_deref().filter(|_| !was_shown) {
        out.line(escaped_piece(answer.trim_end()))?;
    }
    Ok(Some(outcome))
}

fn help(out: &Out) -> std::io::Result<()> {
    let rows = COMMANDS
        .iter()
        .chain(&TERMINAL_COMMANDS)
        .map(|(usage, about)| vec![Cell::styled(*usage, BOLD), Cell::styled(*about, DIM)]);
    out.line(table(&[], rows.collect(), 0))?;
    let more = "//x sends /x to the model; Ctrl-C stops an answer or a tool; Alt-Enter begins \
                another line";
    out.line(format!("{DIM}{more}{DIM:#}"))
}
