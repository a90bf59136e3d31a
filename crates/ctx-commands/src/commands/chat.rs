//! `ctx chat`.

use std::process::ExitCode;

use ctx_chat::Options;
use ctx_config::Config;
use ctx_core::{Error, ErrorKind, Result};
use ctx_session::Home;
use ctx_session::key::{AgentScope, FileId, Name, PeerId, SessionKey};
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;

use crate::args::{Chat, Global, Tool};
use crate::{selection, setup};

/// The agent of demonstrations. It keeps their sessions separate from real memory.
const DEMO_AGENT: &str = "demo";

pub(crate) fn run(global: &Global, args: Chat, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let options = Options {
        key: key(&args).map_err(misuse)?,
        window: args.window.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?,
        tools: args.tools.as_deref().map(tools).transpose().map_err(misuse)?,
        models: args.models,
        demo: args.demo,
        engine: args.engine,
        prompt: args.prompt,
        verbose: args.verbose,
        json: args.json,
    };
    selection::check(options.engine.as_deref())?;
    let config = match options.demo {
        true => demo_config(global, &home, out)?,
        false => setup::config(global)?,
    };
    let config = match args.profile {
        Some(profile) => config.with_profile(profile),
        None => config,
    };
    ctx_chat::run(&home, config, &options, out)
}

/// Returns the configuration of the demonstration. Only `--config` overrides it.
fn demo_config(global: &Global, home: &Home, out: &Out) -> anyhow::Result<Config> {
    let own = ctx_chat::demo_config(home)?;
    Ok(match (setup::config(global), &global.config) {
        (Ok(config), Some(_)) => own.overlaid(config.explicit().clone())?,
        (Err(error), Some(_)) => return Err(error),
        (Ok(_), None) => own,
        (Err(error), None) => {
            out.warn(format!(
                "invalid configuration ignored, as the demonstration has its own: {error}"
            ));
            own
        }
    })
}

/// Returns the key of a session: as given, or made from a name.
fn key(args: &Chat) -> Result<SessionKey> {
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

/// Returns the named tools.
fn tools(named: &[Tool]) -> Result<Vec<ctx_chat::Tool>> {
    if named.len() > 1 && named.contains(&Tool::None) {
        let error =
            Error::new(ErrorKind::InvalidInput, "--tools: `none` cannot be combined with tools");
        return Err(error.hint("name the tools, or `none` alone"));
    }
    let tools = named.iter().filter_map(|tool| match tool {
        Tool::Read => Some(ctx_chat::Tool::Read),
        Tool::Write => Some(ctx_chat::Tool::Write),
        Tool::Bash => Some(ctx_chat::Tool::Bash),
        Tool::None => None,
    });
    Ok(tools.collect())
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
    fn no_tools_stand_alone() {
        use ctx_chat::Tool::{Bash, Read};
        let named = |args: &[&str]| tools(&parsed(args).tools.unwrap());
        assert_eq!(named(&["-p", "x", "--tools", "read,bash"]).unwrap(), [Read, Bash]);
        assert_eq!(named(&["--tools", "none"]).unwrap(), []);
        assert!(named(&["--tools", "none,bash"]).is_err());
    }
}
