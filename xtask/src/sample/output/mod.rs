//! What the commands of a session print.

mod bench;
mod cargo;
mod ci;
mod git;
mod runs;

use anyhow::{Context, Result, bail};

use super::random::Random;
use super::script::Script;
use super::workspace::Workspace;

/// What a command printed, and its exit code.
#[derive(Default)]
pub(super) struct Shell {
    pub(super) text: String,
    pub(super) code: i32,
}

/// The output that the next instructions of a script stand for: `@out` with its text or with what
/// makes it, `@exit CODE` with the text of a command that failed. Several are one output.
pub(super) fn read(script: &mut Script<'_>, ws: &Workspace, random: &mut Random) -> Result<Shell> {
    let mut shell = Shell::default();
    while let Some(out) = script.next_of(&["out", "exit"]) {
        let next = match out.verb {
            "exit" => Shell { text: out.body.to_owned(), code: out.arguments.parse()? },
            _ => make(out.arguments, out.body, ws, random)?,
        };
        shell = Shell { text: shell.text + &next.text, code: next.code };
    }
    Ok(shell)
}

/// What `call`, a name and its arguments, makes of `text`; without a name, the text itself.
pub(super) fn make(call: &str, text: &str, ws: &Workspace, random: &mut Random) -> Result<Shell> {
    let (name, arguments) = call.split_once(' ').unwrap_or((call, ""));
    let mut words = arguments.split(' ');
    let first = words.next().unwrap_or("");
    // A folder, where `.` is all of them.
    let under = first.trim_start_matches('.');
    let text = match name {
        "" => text.to_owned(),
        "bench" => bench::criterion(first.parse()?, random),
        "ci-log" => ci::log(ws, random),
        "clippy" => cargo::clippy_clean(random),
        "diff" => git::diff(ws, under),
        "grep" => ws.grep(arguments.split_once(' ').context("grep: for what?")?.1, under),
        "runs" => {
            let failing: Result<Vec<u32>, _> = words.map(str::parse).collect();
            runs::repeated(first.parse()?, &failing?, random)
        }
        "test" => {
            let failure = words.next().map(|test| (test, text));
            return Ok(cargo::test(ws, under, failure, random));
        }
        "trace" => runs::trace(first.parse()?, random),
        _ => bail!("unknown output '{name}'"),
    };
    Ok(Shell { text, code: 0 })
}
