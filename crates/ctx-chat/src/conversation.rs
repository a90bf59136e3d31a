//! Starts a conversation: models, tools and runtime from the options.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ctx_config::Config;
use ctx_core::{Error, ErrorKind, Tokens};
use ctx_runtime::{Builder, Runtime};
use ctx_session::Home;
use ctx_session::key::{FileId, SessionKey};
use ctx_store_postgres::StoreConfig;
use ctx_terminal::out::Out;

use super::confirm::TerminalUser;
use super::demo::Demo;
use super::interrupt::Interrupt;
use super::models::{Models, connect};
use super::spinner::Spinner;
use super::tools::{Approver, NoUser, Tool, Tools};
use super::{Talk, interactive, once, waiting_runtime};

/// The system prompt. It is the same in every request, as a change would break the provider's
/// cache.
const SYSTEM_PROMPT: &str = "You talk with a person at a terminal. Answer briefly, in plain text.";

/// The addition if there are tools.
const ON_TOOLS: &str = " Your tools work in the folder that the person is in; paths are relative to it. \
    Look before you guess, and say what you did.";

/// Time per word of the built-in model at a terminal.
const PACE: Duration = Duration::from_millis(4);

/// What the user chose for a conversation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The session that it continues or begins.
    pub key: SessionKey,
    /// The models as `provider/model`, the primary one first. Default: the configured ones, else
    /// one whose API key is set.
    pub models: Vec<String>,
    /// Whether the built-in model of a few rules answers, which needs no key and no server.
    pub demo: bool,
    /// The window. Default: the model's.
    pub window: Option<Tokens>,
    /// The id of the engine. Default: the configured one.
    pub engine: Option<String>,
    /// The only message of a script, or `-` to read it from standard input. Default: the user types
    /// messages.
    pub prompt: Option<String>,
    /// The tools that the model may use. Default: all; without a user to ask, only those that read.
    pub tools: Option<Vec<Tool>>,
    /// Whether tool calls and compactions are shown.
    pub verbose: bool,
    /// Whether the answer to `prompt` is printed as JSON.
    pub json: bool,
}

/// Talks with a model in a session until the user ends it, or answers the message of a script.
/// Returns the exit code.
///
/// # Errors
///
/// If models, folder or runtime cannot be used. In a script also if the turn fails.
pub fn run(home: &Home, config: Config, options: &Options, out: &Out) -> anyhow::Result<ExitCode> {
    let models = match options.demo {
        true => demo(options),
        false => {
            let agent = options.key.agent().map(|agent| agent.as_str());
            connect(options, &config.for_agent(agent), out)?
        }
    };
    let folder = std::env::current_dir().map_err(|error| {
        Error::new(ErrorKind::Io, "cannot determine the working folder")
            .source(error)
            .hint("change to a folder that exists and that you may read")
    })?;
    let (interrupt, spinner) = (Interrupt::new(), Spinner::default());
    let asks = options.prompt.is_none() && io::stdin().is_terminal();
    let approver: Box<dyn Approver> = match asks {
        true => Box::new(TerminalUser::new(interrupt.clone(), spinner.clone())),
        false => Box::new(NoUser),
    };
    let named = options.tools.as_deref().unwrap_or(match asks {
        true => &[Tool::Read, Tool::Write, Tool::Bash],
        // A script must name tools that write or run.
        false => &[Tool::Read],
    });
    let main = FileId::main();
    let results = home.tool_results_dir(options.key.agent().unwrap_or(&main));
    let tools = Tools::new(named, &folder, approver)?.with_results(&results);
    let prompt = match tools.is_empty() {
        true => SYSTEM_PROMPT.to_owned(),
        false => format!("{SYSTEM_PROMPT}{ON_TOOLS}"),
    };
    let model = models.first().map(|model| model.card().name.clone()).unwrap_or_default();
    let threads = waiting_runtime()?;
    let store = threads.block_on(StoreConfig::open_configured(&config))?;
    let mut builder = Runtime::builder(home.clone(), config).system_prompt(prompt);
    if let Some((store, host)) = store {
        builder = builder.shared(store, host);
    }
    // With a user, maintenance runs in the background; a script waits for it.
    let runtime = with_options(builder.background(asks), models, options).build()?;
    let talk = Talk {
        runtime: &runtime,
        key: &options.key,
        tools: &tools,
        model: &model,
        threads: &threads,
        spinner: &spinner,
        verbose: options.verbose,
        has_window: options.window.is_some(),
    };
    match &options.prompt {
        Some(prompt) => once::run(&talk, prompt, options.json, out),
        None => interactive::run(&talk, home, &interrupt, out),
    }
}

fn demo(options: &Options) -> Models {
    let watched = options.prompt.is_none() && io::stdout().is_terminal();
    let pace = if watched { PACE } else { Duration::ZERO };
    vec![Arc::new(Demo::new(options.window, pace))]
}

fn with_options(mut builder: Builder, models: Models, options: &Options) -> Builder {
    for model in models {
        builder = builder.fallback(model);
    }
    if let Some(window) = options.window {
        builder = builder.window(window);
    }
    match &options.engine {
        Some(engine) => builder.engine(engine),
        None => builder,
    }
}
