//! Resolves the setup of a command from flags, configuration and transcript.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctx_config::{Config, Profile};
use ctx_core::{ContextEngine, Error, ErrorKind, MemoryStore, Services, TokenLedger, Tokens};
use ctx_engine_registry::{BuildContext, Registry};
use ctx_model::Prices;
use ctx_runtime::lifecycle::SessionConfig;
use ctx_runtime::{Resolved, SessionSpec, SharedMemories, Stores, memory_session};
use ctx_server::http::Token;
use ctx_session::key::FileId;
use ctx_session::{Home, Transcript, with_home_hint};
use ctx_terminal::failure::{misuse, runtime_error};
use ctx_terminal::format::counted;
use ctx_terminal::out::Out;
use serde_json::json;

use crate::args::{Fit, Global, Summaries};
use crate::{models, selection};

/// A resolved setup with its engine and its budget.
pub(crate) struct Fitted {
    pub(crate) ledger: TokenLedger,
    pub(crate) engine: Arc<dyn ContextEngine>,
    pub(crate) profile: Profile,
    pub(crate) model: Option<String>,
    pub(crate) prices: Option<Prices>,
    /// The model that writes summaries.
    pub(crate) writer: Option<String>,
    /// The session's long-term memory, if any.
    pub(crate) memory: Option<Arc<dyn MemoryStore>>,
}

/// Reads the configuration from `--config`, or from the home folder, or returns the defaults.
pub(crate) fn config(global: &Global) -> anyhow::Result<Config> {
    let config = match (config_file(global)?, &global.config) {
        (Some(path), Some(_)) => Config::read(&path)?,
        (Some(path), None) => Config::read(&path).map_err(with_home_hint)?,
        (None, _) => Config::default(),
    };
    // Errors in the section are reported by the commands that need it.
    if let Ok(session) = config.section::<SessionConfig>() {
        ctx_disk::set_default_timeout(Duration::from_millis(session.lock_wait_ms.into()));
    }
    Ok(config)
}

/// Returns the file that [`config`] reads, if there is one.
pub(crate) fn config_file(global: &Global) -> anyhow::Result<Option<PathBuf>> {
    if let Some(path) = &global.config {
        return Ok(Some(path.clone()));
    }
    let path = Home::from_env()?.config_file();
    // If this check fails, reading the file reports why.
    Ok(path.try_exists().unwrap_or(true).then_some(path))
}

/// Returns the token that clients must send: the given one, else `$CTX_SERVER_TOKEN`.
pub(crate) fn token(given: Option<&str>) -> anyhow::Result<Option<Token>> {
    let token = given.map(str::to_owned).or_else(|| std::env::var("CTX_SERVER_TOKEN").ok());
    token.filter(|token| !token.is_empty()).map(Token::new).transpose().map_err(misuse)
}

/// Opens a transcript with its side files, and reports problems on stderr.
pub(crate) fn open(path: &Path, out: &Out) -> anyhow::Result<Transcript> {
    const SHOWN: usize = 5;
    let transcript = match is_stdin(path) {
        true => read(path)?,
        false => ctx_session::open(&Home::from_env()?, path)?,
    };
    let problems = transcript.problems.iter().filter(|problem| !problem.kind.is_harmless());
    let problems: Vec<_> = problems.collect();
    let file = path.file_name().filter(|_| !is_stdin(path));
    let file = file.map_or("standard input".into(), |name| name.to_string_lossy());
    for problem in problems.iter().take(SHOWN) {
        out.warn(format!("{file}: {problem}"));
    }
    if problems.len() > SHOWN {
        let (more, path) = (counted(problems.len() - SHOWN, "more problem"), path.display());
        out.warn(format!("{more}; `ctx check {path}` lists them"));
    }
    Ok(transcript)
}

/// Whether a transcript comes from standard input, and so has no path.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a transcript without side files, from a file, or from standard input for `-`.
pub(crate) fn read(path: &Path) -> anyhow::Result<Transcript> {
    if is_stdin(path) {
        return Ok(Transcript::from_reader(std::io::stdin().lock()).map_err(|e| stdin_error(&e))?);
    }
    Ok(Transcript::open(path)?)
}

/// Names standard input in an error of a transcript without a path.
fn stdin_error(error: &Error) -> Error {
    let text = error.to_string().replace("path: (memory)", "path: standard input");
    let hint = error.hint_text().map(str::to_owned);
    let named = Error::new(error.kind(), text);
    match hint {
        Some(hint) => named.hint(hint),
        None => named,
    }
}

/// Resolves profile, counter, model, window and reserve.
pub(crate) fn resolve(
    global: &Global,
    fit: &Fit,
    session: &Path,
    transcript: &Transcript,
) -> anyhow::Result<Resolved> {
    let mut wanted = SessionSpec {
        profile: fit.profile,
        counter: fit.counter,
        engine: fit.engine.clone(),
        agent: fit.agent.clone(),
        window: fit.window.as_deref().map(parse_tokens).transpose().map_err(misuse)?,
        ..SessionSpec::of(transcript)?
    };
    if let Some(name) = &fit.model {
        wanted = wanted.with_model(name);
    }
    let wanted = wanted.in_home(&Home::from_env()?, session);
    let mut config = config(global)?;
    if fit.memory {
        let memory = json!({ "enabled": true, "recall": { "placement": "before-newest" } });
        config =
            config.overlaid(json!({ "agents": { "defaults": { "memoryContext": memory } } }))?;
    }
    let resolved = wanted.resolve(&config);
    let resolved = resolved.map_err(|error| match fit.model {
        Some(_) if error.kind() == ErrorKind::NotFound => misuse(error),
        _ => error.into(),
    })?;
    selection::check(fit.engine.as_deref())?;
    Ok(resolved)
}

/// Resolves the setup and builds the engine, which stores its data in `stores`. Fails if
/// the window is too small.
pub(crate) fn fit(
    global: &Global,
    (fit, summaries): (&Fit, &Summaries),
    session: &Path,
    transcript: &Transcript,
    stores: Stores,
    out: &Out,
) -> anyhow::Result<Fitted> {
    let resolved = resolve(global, fit, session, transcript)?;
    check_window(&resolved, fit)?;
    warn(&resolved, out);
    let summary_models = models::summary_models(&resolved.config, fit, summaries, out)?;
    let chain = summary_models.as_ref().map(|models| models.chain.as_slice());
    let writer = chain.and_then(|chain| Some(chain.first()?.name().to_owned()));
    let agent = selection::agent(fit, session).unwrap_or_else(|| FileId::main().to_string());
    let name = memory_session(transcript.header.id.as_deref(), session);
    let (memories, warn) = (SharedMemories::default(), |warning| out.warn(warning));
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

/// Fails for a window under the guard's minimum, with the guard's message.
pub(crate) fn check_window(resolved: &Resolved, fit: &Fit) -> anyhow::Result<()> {
    let by_flag: fn(Tokens) -> String = |minimum| format!("give --window {minimum} or more");
    match fit.window {
        Some(_) => resolved.check_window(Some(by_flag)).map_err(misuse),
        None => Ok(resolved.check_window(None)?),
    }
}

/// Warns if the window is small.
pub(crate) fn warn(resolved: &Resolved, out: &Out) {
    if let Some(warning) = resolved.warning() {
        out.warn(warning);
    }
}

/// Builds the configured engine and drops it. This finds errors that only its layers detect.
pub(crate) fn check_engine(config: &Config) -> anyhow::Result<()> {
    let window = config.section::<ctx_window_guard::Config>()?.default_tokens;
    let services = Services::default();
    let registry = Registry::collect()?;
    let context =
        BuildContext { config, services: &services, window: window.into(), registry: &registry };
    registry.check(config)?;
    registry.build_engine(None, &context)?;
    Ok(())
}

/// Parses `32000`, `32_000`, `32k`, `1M`.
pub(crate) fn parse_tokens(text: &str) -> Result<Tokens, Error> {
    let wrong = || {
        Error::new(ErrorKind::InvalidInput, format!("invalid number of tokens '{text}'"))
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
        Error::new(ErrorKind::InvalidInput, format!("{text} tokens exceed every model"))
            .with("largest", u32::MAX)
            .hint("give a number of tokens, such as 32000, 128k or 1M")
    })?;
    Ok(Tokens(tokens))
}

/// Runs a future to completion on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = ctx_core::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(runtime_error)?.block_on(future)?)
}

/// Runs a server to completion, with threads for its requests.
pub(crate) fn block_on_threads<T>(
    future: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.map_err(runtime_error)?.block_on(future)
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
