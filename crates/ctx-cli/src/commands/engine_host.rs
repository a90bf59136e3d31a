//! `ctx engine-host`: not for people. The carrier of processes runs it for a library that the user
//! does not trust with the process of ctx itself.

use std::process::ExitCode;

use ctx_engine_registry::carrier::host_library;

use crate::args::EngineHost;

pub(crate) fn run(args: &EngineHost) -> anyhow::Result<ExitCode> {
    host_library(&args.library)?;
    Ok(ExitCode::SUCCESS)
}
