//! `ctx engine-host`: for internal use. The process transport runs it for a library that the user
//! does not trust to run inside ctx itself.

use std::process::ExitCode;

use ctx_engine_registry::foreign::transport::host_library;

use crate::args::EngineHost;

pub(crate) fn run(args: &EngineHost) -> anyhow::Result<ExitCode> {
    host_library(&args.library)?;
    Ok(ExitCode::SUCCESS)
}
