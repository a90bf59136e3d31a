//! `ctx engines`: lists, installs and removes engines. One file per subcommand.

mod add;
mod check;
mod list;
mod place;
mod remove;

use std::process::ExitCode;

use ctx_terminal::out::Out;

use crate::args::{Engines, EnginesCommand, Global};

pub(crate) fn run(global: &Global, args: &Engines, out: &Out) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => list::run(global, args, out),
        Some(EnginesCommand::Add(args)) => add::run(args, out),
        Some(EnginesCommand::Check(args)) => check::run(global, args, out),
        Some(EnginesCommand::Remove(args)) => remove::run(global, args, out),
    }
}
