//! `ctx index`.

use std::process::ExitCode;

use ctx_terminal::format::{bytes, counted, escaped, thousands};
use ctx_terminal::out::{BOLD, DIM, Out};
use ctx_workspace::{IndexReport, Skipped};
use serde::Serialize;

use crate::args::{Global, Index};
use crate::workspace;

#[derive(Serialize)]
struct IndexOutput {
    #[serde(flatten)]
    update: IndexReport,
    /// Number of new vectors; null without a model.
    vectors: Option<usize>,
}

pub(crate) fn run(global: &Global, args: &Index, out: &Out) -> anyhow::Result<ExitCode> {
    let opened = workspace::open(global, args.folder.as_deref(), &args.of)?;
    let workspace = &opened.workspace;
    if args.remove {
        let was_there = workspace.forget()?;
        if args.json {
            let (folder, index) = (workspace.folder(), workspace.store());
            let report = serde_json::json!({
                "folder": folder, "index": index, "removed": was_there,
            });
            out.json(&report)?;
        } else {
            let what = if was_there { "removed" } else { "none" };
            out.line(format!("index: {what}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let update = workspace::update(workspace, out)?;
    let model = opened.model(out)?;
    let vectors = model.map(|model| workspace::embed(workspace, &model, out)).transpose()?;
    if args.json {
        out.json(&IndexOutput { update, vectors })?;
    } else {
        print(&update, out)?;
        if let Some(vectors) = vectors {
            out.line(format!("{} computed", counted(vectors, "vector")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &IndexReport, out: &Out) -> anyhow::Result<()> {
    out.line(format!("{BOLD}{}{BOLD:#}", escaped(&report.folder.to_string_lossy())))?;
    out.line(format!("{}, {}", counted(report.files, "file"), counted(report.chunks, "chunk")))?;
    let number = |n: usize| thousands(n as u64);
    out.line(format!(
        "{} new, {} changed, {} removed, {} unchanged; {} read",
        number(report.added),
        number(report.changed),
        number(report.removed),
        number(report.unchanged),
        bytes(report.bytes),
    ))?;
    let Skipped { hidden, binary, large, links, unreadable } = report.skipped;
    let skipped: Vec<String> = [
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
    if !skipped.is_empty() {
        out.line(format!("{DIM}skipped: {}{DIM:#}", skipped.join(", ")))?;
    }
    Ok(())
}
