//! The `ctx` binary: arguments in, one call, words out.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod files;
mod models;
mod named;
mod out;
mod receipt;
mod selection;
mod setup;
mod words;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use out::Out;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let out = Out::new(&cli.global);
    match run(cli, &out) {
        Ok(code) => code,
        Err(error) if out::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out.error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli, out: &Out) -> anyhow::Result<ExitCode> {
    let global = cli.global;
    match cli.command {
        Command::Replay(args) => commands::replay::run(&global, &args, out),
        Command::Eval(args) => commands::eval::run(&global, &args, out),
        Command::Status(args) => commands::status::run(&global, &args, out),
        Command::Assemble(args) => commands::assemble::run(&global, &args, out),
        Command::Compact(args) => commands::compact::run(&global, &args, out),
        Command::Compactions(args) => commands::compactions::run(&args, out),
        Command::Diff(args) => commands::diff::run(&global, &args, out),
        Command::Expand(args) => commands::expand::run(&args, out),
        Command::Sessions(args) => commands::sessions::run(&args, out),
        Command::Convert(args) => commands::convert::run(&args, out),
        Command::Check(args) => commands::check::run(args, out),
        Command::Engines(args) => commands::engines::run(&global, &args, out),
        Command::Config(args) => commands::config::run(&global, args, out),
        Command::Completions(args) => commands::completions::run(&args),
    }
}
