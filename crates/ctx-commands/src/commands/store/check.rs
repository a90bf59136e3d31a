//! `ctx store check`.

use std::process::ExitCode;

use ctx_model::TokioTimer;
use ctx_store::EntryPages;
use ctx_store::conformance::{CASES, check};
use ctx_store_postgres::PostgresStore;
use ctx_terminal::out::Out;
use serde::Serialize;

use crate::args::{CheckStore, Global};
use crate::setup;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport {
    /// The keys of damaged entries.
    damaged_entries: Vec<String>,
    /// Logs whose lines are not those that their ends say, as `agent/file`.
    damaged_logs: Vec<String>,
    /// The cases of the behaviour suite, if it ran.
    conformance: Option<Vec<CaseReport>>,
}

#[derive(Serialize)]
struct CaseReport {
    name: &'static str,
    /// Why it failed; null if it passed.
    violation: Option<String>,
}

impl CheckReport {
    fn is_good(&self) -> bool {
        let mut cases = self.conformance.iter().flatten();
        self.damaged_entries.is_empty()
            && self.damaged_logs.is_empty()
            && cases.all(|case| case.violation.is_none())
    }
}

pub(super) fn run(global: &Global, args: &CheckStore, out: &Out) -> anyhow::Result<ExitCode> {
    let section = super::section(global, &args.of)?;
    let progress = out.waiting("checking");
    let report = setup::block_on(async {
        let store = section.open().await?;
        let (damaged_entries, damaged_logs) =
            (damaged_entries(&store).await?, store.damaged_logs().await?);
        if !args.conformance {
            return Ok(CheckReport { damaged_entries, damaged_logs, conformance: None });
        }
        let (timer, unique) = (TokioTimer::default(), section.host().name);
        // A tenant of its own, which is dropped afterwards.
        let store = store.of_tenant(&format!("{}-check-{unique}", section.tenant))?;
        let mut cases = Vec::new();
        for (number, name) in CASES.into_iter().enumerate() {
            let violation = check(&store, &timer, &unique, number).await.err();
            cases.push(CaseReport { name, violation });
        }
        store.drop_tenant().await?;
        Ok(CheckReport { damaged_entries, damaged_logs, conformance: Some(cases) })
    })?;
    progress.finish_and_clear();
    out.report(args.of.json, &report, print)?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the keys of the sessions whose entries cannot be read.
async fn damaged_entries(store: &PostgresStore) -> ctx_core::Result<Vec<String>> {
    let mut damaged = Vec::new();
    let mut pages = EntryPages::of(store).await?;
    while let Some(page) = pages.next(store).await? {
        let bad = page.into_iter().filter(|(_, entry)| {
            serde_json::from_str::<ctx_session::SessionEntry>(&entry.json).is_err()
        });
        damaged.extend(bad.map(|(name, _)| name.key));
    }
    Ok(damaged)
}

fn print(report: &CheckReport, out: &Out) -> anyhow::Result<()> {
    for key in &report.damaged_entries {
        out.line(format!("damaged entry: {key}"))?;
    }
    for log in &report.damaged_logs {
        out.line(format!("damaged log: {log}"))?;
    }
    for case in report.conformance.iter().flatten() {
        match &case.violation {
            None => out.line(format!("ok       {}", case.name))?,
            Some(violation) => out.line(format!("VIOLATED {}: {violation}", case.name))?,
        }
    }
    if report.is_good() {
        out.line("the store can be used")?;
    }
    Ok(())
}
