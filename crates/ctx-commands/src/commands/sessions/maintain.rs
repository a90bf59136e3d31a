//! `ctx sessions maintain`.

use std::process::ExitCode;

use ctx_runtime::maintenance::{
    Action, KeptSession, MaintainedSession, MaintenanceReport, maintain,
};
use ctx_session::{Home, clock, recover_journals};
use ctx_terminal::format::{bytes, counted, escaped};
use ctx_terminal::out::{BOLD, Cell, Out, Table};

use crate::args::{Global, Maintain};
use crate::{selection, setup};

pub(super) fn run(global: &Global, args: &Maintain, out: &Out) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let config = setup::config(global)?;
    let agents = selection::agents(&home, args.agent.as_deref())?;
    if !args.dry_run && !agents.is_empty() {
        // First recover what a crashed host left in the journals.
        recover_journals(&home.journals_dir())?;
    }
    let mut reports = Vec::with_capacity(agents.len());
    for agent in &agents {
        let bar = out.progress("archiving sessions", 0);
        let mut progress = |done: usize, of: usize| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        };
        let report = maintain(&home, &config, agent, clock::now(), args.dry_run, &mut progress);
        bar.finish_and_clear();
        let report = report?;
        for warning in &report.warnings {
            out.warn(format!("agent {agent}: {warning}"));
        }
        reports.push(report);
    }
    if args.json {
        out.json(&reports)?;
        return Ok(ExitCode::SUCCESS);
    }
    if reports.is_empty() {
        out.note(format!("no sessions under {}", home.root.display()));
    }
    for report in &reports {
        print(report, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &MaintenanceReport, out: &Out) -> anyhow::Result<()> {
    let agent = escaped(&report.agent);
    if !report.is_nothing() {
        let rows = report.done.iter().map(|done| of_done(report, done));
        let kept = report.kept.iter().map(of_kept);
        let header = ["session", "what", "why", "disk"];
        let table = Table::new(&header, rows.chain(kept).collect(), 0);
        out.line(table.without(&["disk", "why"]).fitted())?;
    }
    let would = if report.dry_run { "would have" } else { "has" };
    let gone = report.done.iter().filter(|done| done.act == Action::Removed).count();
    out.line(format!(
        "agent {BOLD}{agent}{BOLD:#} {would} {} ({} before), which take {} ({} before); {} removed for good",
        counted(report.entries_after, "session"),
        report.entries_before,
        bytes(report.bytes_after),
        bytes(report.bytes_before),
        counted(gone, "archived transcript"),
    ))?;
    Ok(())
}

fn of_done(report: &MaintenanceReport, done: &MaintainedSession) -> Vec<Cell> {
    let would = if report.dry_run { "would be " } else { "" };
    let act = format!("{would}{}", done.act.words());
    let disk = if done.bytes > 0 { bytes(done.bytes) } else { "-".to_owned() };
    let name = named(done.session_key.as_deref(), done.file.as_deref());
    vec![name.into(), act.into(), done.why.words().to_owned().into(), disk.into()]
}

fn of_kept(kept: &KeptSession) -> Vec<Cell> {
    let name = named(kept.session_key.as_deref(), kept.file.as_deref());
    let stays = format!("kept: {}", escaped(&kept.because));
    vec![name.into(), stays.into(), kept.why.words().to_owned().into(), "-".to_owned().into()]
}

/// Returns the key of a session, else the name of a file.
fn named(key: Option<&str>, file: Option<&std::path::Path>) -> String {
    let file = || file?.file_name().map(|name| name.to_string_lossy().into_owned());
    escaped(&key.map(str::to_owned).or_else(file).unwrap_or_default())
}
