//! `ctx completions` and `ctx man`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;

pub(crate) fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    // `generate` panics if writing fails, and a reader may close the pipe early.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ctx", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn write_manual(folder: &Path) -> anyhow::Result<ExitCode> {
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
