//! `ctx memory rebuild`.

use std::process::ExitCode;

use ctx_terminal::out::Out;

use super::stats;
use crate::args::{Global, InMemory};

pub(super) fn run(global: &Global, args: &InMemory, out: &Out) -> anyhow::Result<ExitCode> {
    let of = super::open(global, &args.agent, out)?;
    // Without an archive, no index is built.
    if of.folder.is_dir() {
        out.while_waiting("rebuilding the index", || of.memory.rebuild())?;
        super::embed(&of, out)?;
    }
    let report = stats::report(&of)?;
    super::warn(&of, out);
    out.report(args.json, &report, stats::print)
}
