//! `ctx index`.

use std::process::ExitCode;

use ctx_memory::workspace::{IndexReport, Skipped};

use crate::args::{Global, Index};
use crate::out::{BOLD, DIM, Out};
use crate::words::{bytes, counted, harmless, thousands};
use crate::workspace::{self, Opened};

pub(crate) fn run(global: &Global, args: &Index, out: &Out) -> anyhow::Result<ExitCode> {
    let Opened { workspace, .. } = workspace::open(global, args.folder.as_deref(), &args.of)?;
    if args.remove {
        let was_there = workspace.store().is_dir();
        workspace.forget()?;
        if args.json {
            let (folder, index) = (workspace.folder(), workspace.store());
            let report = serde_json::json!({
                "folder": folder, "index": index, "removed": was_there,
            });
            out.json(&report)?;
        } else {
            let what = if was_there { "removed" } else { "there is none" };
            out.line(format!("index: {what}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = workspace::update(&workspace, out)?;
    if args.json {
        out.json(&report)?;
    } else {
        print(&report, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &IndexReport, out: &Out) -> anyhow::Result<()> {
    out.line(format!("{BOLD}{}{BOLD:#}", harmless(&report.folder.to_string_lossy())))?;
    out.line(format!("{}, {}", counted(report.files, "file"), counted(report.chunks, "chunk")))?;
    let number = |n: usize| thousands(n as u64);
    out.line(format!(
        "{} new, {} changed, {} gone, {} as before; {} read",
        number(report.added),
        number(report.changed),
        number(report.removed),
        number(report.unchanged),
        bytes(report.bytes),
    ))?;
    let Skipped { hidden, binary, large, links, unreadable } = report.skipped;
    let left_out: Vec<String> = [
        (hidden, "hidden"),
        (binary, "binary"),
        (large, "too large"),
        (links, "linked"),
        (unreadable, "unreadable"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{} {what}", number(n)))
    .collect();
    if !left_out.is_empty() {
        out.line(format!("{DIM}left out: {}{DIM:#}", left_out.join(", ")))?;
    }
    Ok(())
}
