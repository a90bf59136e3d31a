//! A conversation: at a terminal, or of lines that come from elsewhere.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use ctx_runtime::{COMMANDS, Input, TurnOutcome};
use ctx_session::paths::Home;

use super::bar::bar;
use super::edit::{Line, Lines};
use super::said::{HERE, Place, Said};
use super::show::{Show, Shown};
use super::{Interrupt, Talk};
use crate::ending;
use crate::failure;
use crate::out::{BOLD, Cell, DIM, Out, table};
use crate::words::{harmless, harmless_piece};

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
    let is_watched = io::stdin().is_terminal();
    let mut lines = Lines::open(&home.root().join("chat-history"))?;
    if is_watched {
        // After the editor is there, which takes Ctrl-C for itself otherwise.
        let stop = interrupt.clone();
        ending::on_interrupt(move || stop.trigger());
    }
    let (model, key) = (harmless(talk.model), harmless(&talk.key.to_string()));
    out.aside(format!("{model}, session {key}; /help lists the commands, Ctrl-D ends"));
    let waiting = super::waiting_runtime()?;
    let mut failed = None;
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
        // From here on, Ctrl-C is meant for what was said.
        let stopped = interrupt.wait();
        let meant = Said::of(&said, Place::Terminal);
        if !matches!(meant, Ok(Said::Nothing)) {
            lines.remember(&said);
        }
        let turned = match meant {
            Ok(Said::Nothing) => continue,
            Ok(Said::Quit) => break,
            Ok(Said::Help) => {
                help(out)?;
                continue;
            }
            Ok(Said::Message { input, asks_model }) => {
                let show = Show::new(out, Shown::Everything, talk.verbose, talk.sign);
                let show = show.waiting_if(asks_model);
                waiting.block_on(turn(talk, *input, show, stopped, out))
            }
            Err(error) => Err(error.into()),
        };
        match turned {
            Ok(Turned::Answered(outcome)) => end_of_turn(&outcome, out),
            Ok(Turned::Stopped) => out.note("stopped; what was stored so far stays"),
            Err(error) => {
                out.error(&error);
                failed.get_or_insert(failure::code(&error));
            }
        }
    }
    waiting.block_on(async {
        if let Err(error) = talk.runtime.close(talk.key).await {
            out.warn(format!("the session was not closed: {error}"));
        }
        // It had all the time there was.
        talk.runtime.end_maintenance(Duration::ZERO).await;
    });
    Ok(failed.filter(|_| !is_watched).unwrap_or(ExitCode::SUCCESS))
}

/// One message. Where Ctrl-C comes first, the turn is dropped: what it had stored stays, and what it
/// left open is mended when the session is next used.
async fn turn(
    talk: &Talk<'_>,
    input: Input,
    mut show: Show<'_>,
    stopped: impl Future<Output = ()>,
    out: &Out,
) -> anyhow::Result<Turned> {
    let outcome = tokio::select! {
        // Who wants it to stop wants nothing more of it.
        biased;
        () = stopped => None,
        outcome = talk.runtime.turn(talk.key, input, talk.tools, &mut show) => Some(outcome),
    };
    let was_shown = show.end()?;
    let Some(outcome) = outcome else { return Ok(Turned::Stopped) };
    let outcome = outcome.map_err(|error| talk.told(error))?;
    if let Some(answer) = outcome.answer.as_deref().filter(|_| !was_shown) {
        out.line(harmless_piece(answer.trim_end()))?;
    }
    Ok(Turned::Answered(Box::new(outcome)))
}

fn end_of_turn(outcome: &TurnOutcome, out: &Out) {
    if let Some(fill) = &outcome.fill {
        out.aside(bar(fill));
    }
}

fn help(out: &Out) -> std::io::Result<()> {
    let rows = COMMANDS
        .iter()
        .chain(&HERE)
        .map(|(usage, about)| vec![Cell::styled(*usage, BOLD), Cell::styled(*about, DIM)]);
    out.line(table(&[], rows.collect(), 0))?;
    let more = "//x says /x to the model; Ctrl-C stops an answer or a tool; Alt-Enter begins \
                another line";
    out.line(format!("{DIM}{more}{DIM:#}"))
}
