//! `ctx rpc`.

use std::io::{self, BufReader};
use std::process::ExitCode;

use ctx_server::rpc::{Host, serve};
use ctx_session::Home;

use crate::args::Global;
use crate::setup;

pub(crate) fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let host = Host { config: setup::config(global)?, home: Home::from_env()? };
    serve(host, BufReader::new(io::stdin()), io::stdout())?;
    Ok(ExitCode::SUCCESS)
}
