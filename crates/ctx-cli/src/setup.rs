//! From flags, configuration and transcript to what a command runs with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{
    ContextEngine, Entry, Error, ErrorKind, MemoryStore, Profile, Services, TokenLedger, Tokens,
};
use ctx_engine_registry::{BuildContext, Config, Registry};
use ctx_model::Prices;
use ctx_runtime::lifecycle::SessionConfig;
use ctx_runtime::{Memories, Resolved, Stores, Wanted, memory_session};
use ctx_server::http::Token;
use ctx_session::Transcript;
use ctx_session::key::FileId;
use ctx_session::paths::{Home, of_home};

use crate::args::{Fit, Global, Summaries};
use crate::failure::misuse;
use crate::keeping::Keeping;
use crate::models;
use crate::named;
use crate::out::Out;
use crate::selection;
use crate::words::counted;

/// A resolved setup with its engine and its budget.
pub(crate) struct Fitted {
    pub(crate) ledger: TokenLedger,
    pub(crate) engine: Arc<dyn ContextEngine>,
    pub(crate) profile: Profile,
    pub(crate) model: Option<String>,
    pub(crate) prices: Option<Prices>,
    /// The model that is to write summaries.
    pub(crate) writer: Option<String>,
    /// The session's long-term memory, where it has one.
    pub(crate) memory: Option<Arc<dyn MemoryStore>>,
}

/// The configuration named by `--config`, or the one in the home folder, or the defaults.
pub(crate) fn config(global: &Global) -> anyhow::Result<Config> {
    let config = match (config_file(global)?, &global.config) {
        (Some(path), Some(_)) => Config::read(&path)?,
        (Some(path), None) => Config::read(&path).map_err(of_home)?,
        (None, _) => Config::default(),
    };
    // Who needs the rest of the section says what is wrong with it.
    if let Ok(session) = config.section::<SessionConfig>() {
        ctx_disk::set_patience(Duration::from_millis(session.lock_wait_ms.into()));
    }
    Ok(config)
}

/// The file that [`config`] reads, if there is one.
pub(crate) fn config_file(global: &Global) -> anyhow::Result<Option<PathBuf>> {
    if let Some(path) = &global.config {
        return Ok(Some(path.clone()));
    }
    let path = Home::from_env()?.config_file();
    // Where even that cannot be told, reading says why.
    Ok(path.try_exists().unwrap_or(true).then_some(path))
}

/// The token that clients show: the one given, else `$CTX_SERVER_TOKEN`.
pub(crate) fn token(given: Option<&str>) -> anyhow::Result<Option<Token>> {
    let token = given.map(str::to_owned).or_else(|| std::env::var("CTX_SERVER_TOKEN").ok());
    token.filter(|token| !token.is_empty()).map(Token::new).transpose().map_err(misuse)
}

/// Opens a transcript together with what ctx keeps beside it, and says on stderr what was wrong.
pub(crate) fn open(path: &Path, out: &Out) -> anyhow::Result<Transcript> {
    const SHOWN: usize = 5;
    let transcript = match is_stdin(path) {
        true => read(path)?,
        false => ctx_session::open(&Home::from_env()?, path)?,
    };
    let problems = transcript.problems().iter().filter(|problem| !problem.kind.is_harmless());
    let problems: Vec<_> = problems.collect();
    for problem in problems.iter().take(SHOWN) {
        out.warn(problem.to_string());
    }
    if problems.len() > SHOWN {
        let (more, path) = (counted(problems.len() - SHOWN, "more problem"), path.display());
        out.warn(format!("{more}; `ctx check {path}` lists them"));
    }
    Ok(transcript)
}

/// Whether a transcript comes from standard input, and so has no place of its own.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a transcript as it stands, from a file, or from standard input where the file is `-`.
pub(crate) fn read(path: &Path) -> anyhow::Result<Transcript> {
    if is_stdin(path) {
        return Ok(Transcript::from_reader(std::io::stdin().lock()).map_err(|e| of_stdin(&e))?);
    }
    Ok(Transcript::open(path)?)
}

/// An error of a transcript without a name, which is standard input here.
fn of_stdin(error: &Error) -> Error {
    let said = error.to_string().replace("path: (memory)", "path: standard input");
    let hint = error.hint_text().map(str::to_owned);
    let named = Error::new(error.kind(), said);
    match hint {
        Some(hint) => named.hint(hint),
        None => named,
    }
}

/// The messages a request after `at` would carry, before any layer.
pub(crate) fn entries(
    transcript: &Transcript,
    at: Option<&str>,
    ignore_compactions: bool,
) -> anyhow::Result<Vec<Arc<Entry>>> {
    let leaf = match at {
        Some(id) => Some(named::find_entry(transcript, id)?),
        None => None,
    };
    if ignore_compactions {
        let line = transcript.line_to(leaf.as_ref())?;
        return Ok(line.into_iter().map(|item| item.entry).collect());
    }
    Ok(transcript.context(leaf.as_ref())?.entries)
}

/// Settles profile, counter, model, window and reserve.
pub(crate) fn resolve(
    global: &Global,
    fit: &Fit,
    session: &Path,
    transcript: &Transcript,
) -> anyhow::Result<Resolved> {
    let mut wanted = Wanted {
        profile: fit.profile,
        counter: fit.counter,
        engine: fit.engine.clone(),
        agent: selection::agent(fit, session),
        window: fit.window.as_deref().map(parse_tokens).transpose().map_err(misuse)?,
        ..Wanted::of(transcript)?
    };
    if let Some(name) = &fit.model {
        wanted = wanted.with_model(name);
    }
    let resolved = wanted.resolve(&config(global)?);
    let resolved = resolved.map_err(|error| match fit.model {
        Some(_) if error.kind() == ErrorKind::NotFound => misuse(error),
        _ => error.into(),
    })?;
    selection::check(fit)?;
    Ok(resolved)
}

/// Settles everything and builds the engine, which leaves what it may where `keeping` says. A window
/// that is too small is refused here.
pub(crate) fn fit(
    global: &Global,
    (fit, summaries): (&Fit, &Summaries),
    session: &Path,
    transcript: &Transcript,
    keeping: Keeping,
    out: &Out,
) -> anyhow::Result<Fitted> {
    let resolved = resolve(global, fit, session, transcript)?;
    check_window(&resolved, fit)?;
    warn(&resolved, out);
    let summary_models = models::summary_models(&resolved.config, fit, summaries, out)?;
    let chain = summary_models.as_ref().map(|models| models.chain.as_slice());
    let writer = chain.and_then(|chain| Some(chain.first()?.name().to_owned()));
    let Keeping { blobs, store: values, memory, workspaces } = keeping;
    let stores = Stores { values, blobs, memory, workspaces };
    let agent = selection::agent(fit, session).unwrap_or_else(|| FileId::main().to_string());
    let name = memory_session(transcript.header().id.as_deref(), session);
    let (memories, warn) = (Memories::default(), |warning| out.warn(warning));
    let services = resolved.services(&memories, stores, (&agent, &name), summary_models, warn)?;
    Ok(Fitted {
        ledger: resolved.ledger(),
        engine: resolved.engine(&services)?,
        profile: resolved.profile,
        model: resolved.model,
        prices: resolved.prices,
        writer,
        memory: services.memory,
    })
}

/// Refuses a window under the guard's minimum, in the guard's words.
pub(crate) fn check_window(resolved: &Resolved, fit: &Fit) -> anyhow::Result<()> {
    let by_flag: fn(Tokens) -> String = |minimum| format!("give --window {minimum} or more");
    match fit.window {
        Some(_) => resolved.check_window(Some(by_flag)).map_err(misuse),
        None => Ok(resolved.check_window(None)?),
    }
}

/// Says that the window is small, if it is.
pub(crate) fn warn(resolved: &Resolved, out: &Out) {
    if let Some(warning) = resolved.warning() {
        out.warn(warning);
    }
}

/// Builds the engine that the configuration names, and drops it: what only its layers know to be
/// wrong is found as well.
pub(crate) fn check_engine(config: &Config) -> anyhow::Result<()> {
    let window = ctx_window_guard::Config::resolve(config)?.default_tokens;
    let services = Services::default();
    let registry = Registry::collect()?;
    let context =
        BuildContext { config, services: &services, window: window.into(), registry: &registry };
    registry.check(config)?;
    registry.build_engine(None, &context)?;
    Ok(())
}

/// `32000`, `32_000`, `32k`, `1M`.
pub(crate) fn parse_tokens(text: &str) -> Result<Tokens, Error> {
    let wrong = || {
        Error::new(ErrorKind::InvalidInput, format!("'{text}' is no number of tokens"))
            .hint("give a number of tokens, such as 32000, 128k or 1M")
    };
    let plain: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (digits, unit) = match plain.char_indices().last() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1_000),
        Some((at, 'm' | 'M')) => (&plain[..at], 1_000_000),
        _ => (plain.as_str(), 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let tokens = number.checked_mul(unit).and_then(|n| u32::try_from(n).ok()).ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, format!("{text} tokens are beyond any model"))
            .with("largest", u32::MAX)
            .hint("give a number of tokens, such as 32000, 128k or 1M")
    })?;
    Ok(Tokens(tokens))
}

/// Runs a future to its end on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = ctx_core::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(no_waiting)?.block_on(future)?)
}

/// Why there is nothing to wait with.
pub(crate) fn no_waiting(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "the program cannot be set up to wait for answers")
        .hint("see whether the limit of open files is reached: `ulimit -n`")
        .source(error)
}

/// Runs a server to its end, with threads for those that it answers.
pub(crate) fn block_on_threads<T>(
    future: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.map_err(no_waiting)?.block_on(future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_numbers_with_a_unit() {
        let sizes = ["32000", "32_000", "32k", "128K", "1M"].map(|t| parse_tokens(t).unwrap().0);
        assert_eq!(sizes, [32_000, 32_000, 32_000, 128_000, 1_000_000]);
        for text in ["", "k", "-1", "1.5k", "9223372036854775808", "many", "18446744073709551615M"]
        {
            assert_eq!(parse_tokens(text).unwrap_err().kind(), ErrorKind::InvalidInput, "{text}");
        }
    }
}
