//! `ctx memory rebuild`.

use std::process::ExitCode;

use super::stats;
use crate::args::{Global, InMemory};
use crate::out::Out;

pub(super) fn run(global: &Global, args: &InMemory, out: &Out) -> anyhow::Result<ExitCode> {
    let of = super::open(global, &args.agent, out)?;
    let waiting = out.waiting("rebuilding the index");
    // Without an archive, no index is built.
    if of.folder.is_dir() {
        of.memory.rebuild()?;
    }
    waiting.finish_and_clear();
    if of.folder.is_dir() {
        super::embed(&of, out)?;
    }
    let report = stats::report(&of)?;
    super::warn(&of, out);
    out.report(args.json, &report, stats::print)
}
