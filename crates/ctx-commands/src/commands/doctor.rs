//! `ctx doctor`: each check is in a file of its own.

mod clients;
mod proxy;
mod storage;

use std::process::ExitCode;

use ctx_clients::Environment;
use ctx_server::running::running;
use ctx_session::Home;
use ctx_terminal::format::{counted, escaped};
use ctx_terminal::out::{DIM, GREEN, Out, RED, YELLOW};
use serde::Serialize;

use crate::args::{Doctor, Global};
use crate::setup;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Ok,
    /// Nothing is broken; something could be better.
    Warning,
    /// Something does not work.
    Error,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    /// What was checked: `home`, `config`, `client`, `proxy`, `key`, `engine`, `memory`, `store`.
    check: &'static str,
    state: State,
    text: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, state: State::Ok, text: text.into(), hint: None }
    }

    fn warning(check: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, state: State::Warning, text: text.into(), hint: Some(hint.into()) }
    }

    fn error(check: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { check, state: State::Error, text: text.into(), hint: Some(hint.into()) }
    }

    fn of_error(check: &'static str, error: &ctx_core::Error) -> Self {
        let hint = error.hint_text().map(str::to_owned);
        Self { check, state: State::Error, text: error.to_string(), hint }
    }
}

#[derive(Serialize)]
struct DoctorReport {
    version: &'static str,
    findings: Vec<Finding>,
}

/// What the checks look at.
struct Examined {
    home: Home,
    environment: Environment,
    live: bool,
}

pub(crate) fn run(global: &Global, args: &Doctor, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let examined = Examined { home, environment: Environment::from_process(), live: args.live };
    let waiting = out.waiting("checking");
    let mut findings = storage::home(&examined.home);
    findings.push(config(global));
    let server = match running(&examined.home) {
        Ok(server) => server,
        Err(error) => {
            findings.push(Finding::of_error("proxy", &error));
            None
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ctx_terminal::failure::runtime_error)?;
    findings.extend(runtime.block_on(clients::check(&examined, server.as_ref())));
    findings.extend(proxy::check(&examined, server.as_ref()));
    findings.extend(clients::keys(&examined.environment));
    findings.extend(storage::engines(global));
    findings.extend(storage::memory(global, &examined.home));
    findings.extend(storage::store(global, &examined.home));
    waiting.finish_and_clear();
    let worst = findings.iter().map(|finding| finding.state).max().unwrap_or(State::Ok);
    let report = DoctorReport { version: env!("CARGO_PKG_VERSION"), findings };
    out.report(args.json, &report, print)?;
    Ok(ExitCode::from(u8::from(worst == State::Error)))
}

/// Whether the configuration is valid.
fn config(global: &Global) -> Finding {
    let found = setup::config_file(global).and_then(|path| Ok((path, setup::config(global)?)));
    match found {
        Ok((Some(path), _)) => Finding::ok("config", path.display().to_string()),
        Ok((None, _)) => Finding::ok("config", "no file: the defaults apply"),
        Err(error) => match error.downcast_ref() {
            Some(error) => Finding::of_error("config", error),
            None => Finding::error("config", error.to_string(), "correct the file"),
        },
    }
}

/// The column of a finding's text.
const TEXT_COLUMN: usize = 18;

fn print(report: &DoctorReport, out: &Out) -> anyhow::Result<()> {
    out.line(format!("ctx {}", report.version))?;
    for Finding { check, state, text, hint } in &report.findings {
        let (mark, style) = match state {
            State::Ok => ("ok", GREEN),
            State::Warning => ("warning", YELLOW),
            State::Error => ("error", RED),
        };
        let text = escaped(text);
        let line = format!("{style}{mark:7}{style:#}  {DIM}{check:7}{DIM:#}  {text}");
        out.line_indented(line, TEXT_COLUMN)?;
        if let Some(hint) = hint {
            let line = format!("{:TEXT_COLUMN$}{DIM}hint:{DIM:#} {}", "", escaped(hint));
            out.line_indented(line, TEXT_COLUMN)?;
        }
    }
    let count = |state| report.findings.iter().filter(|finding| finding.state == state).count();
    let (errors, warnings) = (count(State::Error), count(State::Warning));
    out.line(format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")))?;
    Ok(())
}
