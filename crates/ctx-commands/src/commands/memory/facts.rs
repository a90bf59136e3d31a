//! `ctx memory facts`.

use std::process::ExitCode;
use std::sync::PoisonError;

use ctx_memory::facts::{Fact, FactQuery, FactStore};
use ctx_terminal::format::{escaped, minute};
use ctx_terminal::out::{Cell, DIM, Out, table};
use serde::Serialize;

use crate::args::{Facts, Global};

/// Default number of answers to a question.
const ANSWERS: usize = 10;

#[derive(Serialize)]
struct FactsReport {
    agent: String,
    facts: Vec<FactRow>,
}

#[derive(Serialize)]
struct FactRow {
    #[serde(flatten)]
    fact: Fact,
    /// Its score; absent without a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
}

pub(super) fn run(global: &Global, args: &Facts, out: &Out) -> anyhow::Result<ExitCode> {
    let of = super::open(global, &args.of.agent, out)?;
    let session = args.session.as_deref().map(|named| super::session(&of, named)).transpose()?;
    let facts = of.facts.as_ref().map_or_else(Vec::new, |facts| {
        let facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
        listed(&facts, args, session.as_deref())
    });
    let report = FactsReport { agent: of.agent.to_string(), facts };
    out.report(args.of.json, &report, print)
}

fn listed(store: &FactStore, args: &Facts, session: Option<&str>) -> Vec<FactRow> {
    if let Some(text) = args.query.as_deref().filter(|_| !args.all) {
        let limit = args.limit.unwrap_or(ANSWERS);
        let hits = store.search(&FactQuery { session, limit, ..FactQuery::new(text) });
        let known =
            hits.into_iter().map(|h| FactRow { fact: h.fact.clone(), score: Some(h.score) });
        return known.collect();
    }
    let words = args.query.as_deref().map(str::to_lowercase);
    let fits = |fact: &&Fact| {
        let text = || format!("{} {}", fact.content, fact.context).to_lowercase();
        (args.all || fact.is_current())
            && session.is_none_or(|session| fact.session_id == session)
            && words.as_ref().is_none_or(|words| {
                let text = text();
                words.split_whitespace().all(|word| text.contains(word))
            })
    };
    let mut facts: Vec<Fact> = store.facts().filter(fits).cloned().collect();
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.timestamp));
    facts.truncate(args.limit.unwrap_or(usize::MAX));
    facts.into_iter().map(|fact| FactRow { fact, score: None }).collect()
}

fn print(report: &FactsReport, out: &Out) -> anyhow::Result<()> {
    if report.facts.is_empty() {
        out.note("no matching facts; `ctx memory facts --all` also lists outdated ones");
        return Ok(());
    }
    let rows = report.facts.iter().map(|FactRow { fact, .. }| {
        let text = escaped(&fact.content);
        let content = match fact.valid_to {
            Some(end) => Cell::styled(format!("{text} (until {})", minute(end)), DIM),
            None => Cell::from(text),
        };
        vec![Cell::from(minute(fact.valid_from)), fact.kind.name().into(), content]
    });
    out.line(table(&["since", "kind", "fact"], rows.collect(), 0))?;
    Ok(())
}
