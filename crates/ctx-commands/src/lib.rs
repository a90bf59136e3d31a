//! The commands of the `ctx` binary: parses arguments, runs one command, prints the result.

#![forbid(unsafe_code)]

mod args;
mod ask;
mod commands;
mod engine_health;
mod entry_ids;
mod files;
mod log;
mod models;
#[cfg(feature = "otlp")]
mod otlp;
mod receipt;
mod selection;
mod session_args;
mod setup;
mod stores;
mod workspace;

use std::io::Write;
use std::process::ExitCode;

use clap::FromArgMatches;
use ctx_engine_registry::foreign::transport::{end_processes, host_library, hosts_libraries};
use ctx_terminal::out::Out;
use ctx_terminal::{failure, shutdown};

use args::{Cli, Command};

/// Runs the command that the arguments of the process name, and returns its exit code.
pub fn main() -> ExitCode {
    failure::survive_size_limits();
    shutdown::clean_up(end_processes);
    hosts_libraries();
    let mut command = args::command();
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed.and_then(|found| Cli::from_arg_matches(&found));
    let (out, ended) = match parsed.map_err(|error| error.format(&mut command)) {
        Ok(cli) => {
            let out = Out::new(cli.global.quiet);
            cli.global.color.write_global();
            let ended = run(cli, &out);
            (out, ended)
        }
        Err(message) => (Out::default(), print_clap(&message)),
    };
    match ended.map_err(failure::reportable) {
        Ok(code) => code,
        Err(None) => ExitCode::SUCCESS,
        Err(Some(error)) => {
            out.error(&error);
            failure::code(&error)
        }
    }
}

/// Prints clap's message: help, the version, or an argument error.
fn print_clap(message: &clap::Error) -> anyhow::Result<ExitCode> {
    message.print()?;
    std::io::stdout().flush()?;
    Ok(ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(1)))
}

fn run(cli: Cli, out: &Out) -> anyhow::Result<ExitCode> {
    let global = cli.global;
    let Some(command) = cli.command else { return commands::greeting::run(out) };
    // The parent process logs for the hosts of engines and commands.
    #[cfg_attr(not(feature = "otlp"), expect(unused_mut))]
    let mut layers = match command {
        Command::EngineHost { .. } | Command::CommandHost(_) => log::Layers::new(),
        _ => log::layers(&global, out)?,
    };
    #[cfg(feature = "otlp")]
    let _sent_at_the_end = otlp::begin(&command, out, &mut layers);
    log::begin(layers)?;
    match session_args::resolved(command, out)? {
        Command::Chat(args) => commands::chat::run(&global, args, out),
        Command::Replay(args) => commands::replay::run(&global, &args, out),
        Command::Eval(args) => commands::eval::run(&global, &args, out),
        Command::Inspect(args) => commands::inspect::run(&global, &args, out),
        Command::Status(args) => commands::status::run(&global, &args, out),
        Command::Assemble(args) => commands::assemble::run(&global, &args, out),
        Command::Compact(args) => commands::compact::run(&global, &args, out),
        Command::Compactions(args) => commands::compactions::run(&args, out),
        Command::Diff(args) => commands::diff::run(&global, &args, out),
        Command::Expand(args) => commands::expand::run(&args, out),
        Command::Why(args) => commands::why::run(&global, args, out),
        Command::Sessions(args) => commands::sessions::run(&global, &args, out),
        Command::Convert(args) => commands::convert::run(&args, out),
        Command::Check(args) => commands::check::run(args, out),
        Command::Memory(args) => commands::memory::run(&global, &args, out),
        Command::Recall(args) => commands::recall::run(&global, &args, out),
        Command::Index(args) => commands::index::run(&global, &args, out),
        Command::Context(args) => commands::context::run(&global, &args, out),
        Command::Engines(args) => commands::engines::run(&global, &args, out),
        Command::Serve(args) => commands::serve::run(&global, &args, out),
        Command::Run(args) => commands::run::run(&global, &args, out),
        Command::Setup(args) => commands::setup::run(&global, &args, out),
        Command::Doctor(args) => commands::doctor::run(&global, &args, out),
        Command::Hook => commands::hook::run(&global, out),
        Command::Statusline => commands::statusline::run(out),
        Command::Store(args) => commands::store::run(&global, &args, out),
        Command::Stats(args) => commands::stats::run(&global, &args, out),
        Command::Rpc => commands::rpc::run(&global),
        Command::Mcp(args) => commands::mcp::run(&global, &args, out),
        Command::Config(args) => commands::config::run(&global, args, out),
        Command::Completions { shell } => commands::completions::run(shell),
        Command::Man { folder } => commands::completions::write_manual(&folder),
        Command::EngineHost { library } => {
            host_library(&library)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::CommandHost(args) => ctx_chat::host_command(&args.command),
    }
}
