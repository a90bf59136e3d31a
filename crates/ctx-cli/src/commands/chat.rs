//! `ctx chat`.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ctx_config::Config;
use ctx_core::{Error, ErrorKind, Tokens};
use ctx_runtime::{Builder, Runtime};
use ctx_session::Home;
use ctx_session::key::{AgentScope, FileId, Name, PeerId, SessionKey};

use crate::args::{Chat, Global, Tool};
use crate::chat::{
    self, Approver, Demo, Interrupt, Models, NoUser, Spinner, Talk, TerminalUser, Tools,
};
use crate::failure::misuse;
use crate::out::Out;
use crate::{selection, setup};

/// The system prompt. It is the same in every request, as a change would break the provider's
/// cache.
const SYSTEM_PROMPT: &str = "You talk with a person at a terminal. Answer briefly, in plain text.";

/// The addition if there are tools.
const ON_TOOLS: &str = " Your tools work in the folder that the person is in; paths are relative to it. \
    Look before you guess, and say what you did.";

/// The agent of demonstrations. It keeps their sessions separate from real memory.
const DEMO_AGENT: &str = "demo";

/// Time per word of the built-in model at a terminal.
const PACE: Duration = Duration::from_millis(4);

pub(crate) fn run(global: &Global, args: &Chat, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let key = key(args).map_err(misuse)?;
    let window = args.window.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?;
    selection::check(args.engine.as_deref())?;
    let profiled = |config: Config| match args.profile {
        Some(profile) => config.with_profile(profile),
        None => config,
    };
    let (config, models) = match args.demo {
        true => {
            let own = Demo::config(&home)?;
            let config = match (setup::config(global), &global.config) {
                (Ok(config), Some(_)) => own.overlaid(config.explicit().clone())?,
                (Err(error), Some(_)) => return Err(error),
                (Ok(_), None) => own,
                (Err(error), None) => {
                    out.warn(format!(
                        "invalid configuration ignored, as the demonstration has its own: {error}"
                    ));
                    own
                }
            };
            (profiled(config), demo(args, window))
        }
        false => {
            let config = profiled(setup::config(global)?);
            let agent = key.agent().map(|agent| agent.as_str());
            let models = chat::connect(args, &config.for_agent(agent), out)?;
            (config, models)
        }
    };
    let folder = std::env::current_dir().map_err(|error| {
        Error::new(ErrorKind::Io, "cannot determine the working folder")
            .source(error)
            .hint("change to a folder that exists and that you may read")
    })?;
    let (interrupt, spinner) = (Interrupt::new(), Spinner::default());
    let asks = args.prompt.is_none() && io::stdin().is_terminal();
    let approver: Box<dyn Approver> = match asks {
        true => Box::new(TerminalUser::new(interrupt.clone(), spinner.clone())),
        false => Box::new(NoUser),
    };
    let named = tools(args.tools.as_deref(), asks).map_err(misuse)?;
    let main = FileId::main();
    let results = home.tool_results_dir(key.agent().unwrap_or(&main));
    let tools = Tools::new(&named, &folder, approver)?.with_results(&results);
    let prompt = match tools.is_empty() {
        true => SYSTEM_PROMPT.to_owned(),
        false => format!("{SYSTEM_PROMPT}{ON_TOOLS}"),
    };
    let model = models.first().map(|model| model.card().name.clone()).unwrap_or_default();
    let builder = Runtime::builder(home.clone(), config).system_prompt(prompt);
    // With a user, maintenance runs in the background; a script waits for it.
    let runtime = with_args(builder.background(asks), models, args, window).build()?;
    let talk = Talk {
        runtime: &runtime,
        key: &key,
        tools: &tools,
        model: &model,
        spinner: &spinner,
        verbose: args.verbose,
        has_window: window.is_some(),
    };
    match args.prompt {
        Some(_) => chat::once(&talk, args, out),
        None => chat::interactive(&talk, &home, &interrupt, out),
    }
}

/// Returns the key of a session: as given, or made from a name.
fn key(args: &Chat) -> ctx_core::Result<SessionKey> {
    let name = args.session.as_str();
    if name.contains(':') || name == "global" {
        return name.parse();
    }
    let agent = if args.demo { FileId::new(DEMO_AGENT)? } else { FileId::main() };
    if Name::new(name)? == Name::main() {
        return Ok(SessionKey::main(agent));
    }
    let scope = AgentScope::Explicit(PeerId::new(name)?);
    Ok(SessionKey::Agent { agent, scope, thread: None })
}

fn demo(args: &Chat, window: Option<Tokens>) -> Models {
    let watched = args.prompt.is_none() && io::stdout().is_terminal();
    let pace = if watched { PACE } else { Duration::ZERO };
    vec![Arc::new(Demo::new(window, pace))]
}

/// Returns the tools that the model may use. Without a user to ask, writing and running must be
/// requested by name.
fn tools(named: Option<&[Tool]>, asks: bool) -> ctx_core::Result<Vec<Tool>> {
    Ok(match named {
        Some(tools) if tools.len() > 1 && tools.contains(&Tool::None) => {
            let error = Error::new(
                ErrorKind::InvalidInput,
                "--tools: `none` cannot be combined with tools",
            );
            return Err(error.hint("name the tools, or `none` alone"));
        }
        Some(tools) => tools.to_vec(),
        None if asks => vec![Tool::Read, Tool::Write, Tool::Bash],
        None => vec![Tool::Read],
    })
}

/// Applies the arguments of the command line.
fn with_args(mut builder: Builder, models: Models, args: &Chat, window: Option<Tokens>) -> Builder {
    for model in models {
        builder = builder.fallback(model);
    }
    if let Some(window) = window {
        builder = builder.window(window);
    }
    match &args.engine {
        Some(engine) => builder.engine(engine),
        None => builder,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(args: &[&str]) -> Chat {
        match Cli::try_parse_from(["ctx", "chat"].iter().chain(args)).unwrap().command {
            Some(Command::Chat(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_session_is_named_by_its_key_or_by_a_name() {
        for (args, expected) in [
            (&[][..], "agent:main:main"),
            (&["--session", "work"], "agent:main:explicit:work"),
            (&["-s", "agent:ops:main"], "agent:ops:main"),
            (&["-s", "global"], "global"),
            (&["--demo"], "agent:demo:main"),
        ] {
            assert_eq!(key(&parsed(args)).unwrap().to_string(), expected, "{args:?}");
        }
        for name in ["", "agent:", "agent:../etc:main"] {
            assert!(key(&parsed(&["-s", name])).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_script_must_name_tools_that_write_or_run() {
        use Tool::{Bash, Read, Write};
        assert_eq!(tools(None, true).unwrap(), [Read, Write, Bash]);
        assert_eq!(tools(None, false).unwrap(), [Read]);
        assert!(tools(Some(&[Tool::None, Bash]), true).is_err());
        let named = |args: &[&str]| tools(parsed(args).tools.as_deref(), false).unwrap();
        assert_eq!(named(&["-p", "x", "--tools", "read,bash"]), [Read, Bash]);
        assert_eq!(named(&["--tools", "none"]), [Tool::None]);
    }
}
