//! One message for a script: only the answer on stdout.

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Usage};
use ctx_runtime::{Notice, TurnOutcome};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::escaped_piece;
use ctx_terminal::out::Out;
use serde_json::{Value, json};

use super::Talk;
use super::input::{Mode, ParsedLine};
use super::show::{Detail, Show};

/// Maximum length of a message: no model reads more.
const LONGEST: u64 = 64 << 20;

/// How long the program waits at exit for the maintenance after a turn.
const MAINTENANCE: Duration = Duration::from_secs(2);

/// Sends `prompt` and prints the answer as soon as it is complete.
pub(crate) fn run(
    talk: &Talk<'_>,
    prompt: &str,
    json: bool,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    let message = message(prompt)?;
    let input = match ParsedLine::of(&message, Mode::Script).map_err(misuse)? {
        ParsedLine::Message { input, .. } => input,
        // Unreachable in a script: the parser rejects them.
        ParsedLine::Nothing | ParsedLine::Help | ParsedLine::Quit => {
            return Err(misuse(no_message()));
        }
    };
    talk.threads.block_on(async {
        let mut show = Show::new(out, Detail::Notices, talk.verbose, talk.spinner);
        let outcome = talk.runtime.turn(talk.key, *input, talk.tools, &mut show).await;
        show.end()?;
        // The answer is paid for and stored: later errors must not hide it.
        let printed = match &outcome {
            Ok(outcome) if json => out.json(&answered(talk, outcome)),
            Ok(outcome) => print(outcome.answer.as_deref()).map_err(Into::into),
            Err(_) => Ok(()),
        };
        if let Err(error) = talk.runtime.close(talk.key).await {
            out.warn(format!("the session was not closed: {error}"));
        }
        talk.runtime.end_maintenance(MAINTENANCE).await;
        outcome.map_err(|error| talk.turn_error(error))?;
        printed
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the message; a single dash reads it from standard input.
fn message(prompt: &str) -> anyhow::Result<String> {
    let mut text = prompt.to_owned();
    if prompt == "-" {
        text.clear();
        let read = io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
        let cannot = |e| {
            let error =
                Error::new(ErrorKind::InvalidInput, "standard input cannot be read as text");
            error.source(e).hint("give the message in UTF-8")
        };
        if read.map_err(cannot)? as u64 > LONGEST {
            let error = Error::new(ErrorKind::InvalidInput, "the message is longer than 64 MB");
            return Err(error
                .hint("put the text in a file and name the file in the message")
                .into());
        }
    }
    if text.trim().is_empty() { Err(misuse(no_message())) } else { Ok(text) }
}

fn no_message() -> Error {
    Error::new(ErrorKind::InvalidInput, "missing message")
        .hint("give one with --prompt TEXT, or with --prompt - on standard input")
}

/// Prints the answer unchanged; on a terminal, without control characters.
fn print(answer: Option<&str>) -> io::Result<()> {
    let Some(answer) = answer else { return Ok(()) };
    let mut out = io::stdout().lock();
    match out.is_terminal() {
        true => writeln!(out, "{}", escaped_piece(answer.trim_end()))?,
        false => writeln!(out, "{}", answer.trim_end())?,
    }
    out.flush()
}

/// Returns the output of `--json`.
fn answered(talk: &Talk<'_>, outcome: &TurnOutcome) -> Value {
    let Usage { input, output, cache_read, cache_write, .. } = outcome.usage;
    let notice = |it: &Notice| json!({ "kind": it.kind.name(), "words": it.text });
    json!({
        "session": talk.key.to_string(),
        "answer": outcome.answer,
        "model": outcome.model,
        "requests": outcome.requests,
        "compactions": outcome.compactions,
        "tokens": outcome.fill.map(|fill| fill.used.get()),
        "window": outcome.fill.map(|fill| fill.window.get()),
        "usage": {
            "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
        },
        "notices": outcome.notices.iter().map(notice).collect::<Vec<_>>(),
    })
}
