//! `ctx engine-host`: for internal use. The process transport runs it for a library that the user
//! does not trust to run inside ctx itself.

use std::path::Path;
use std::process::ExitCode;

use ctx_engine_registry::foreign::transport::host_library;

pub(crate) fn run(library: &Path) -> anyhow::Result<ExitCode> {
    host_library(library)?;
    Ok(ExitCode::SUCCESS)
}
