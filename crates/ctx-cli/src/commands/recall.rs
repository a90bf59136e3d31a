//! `ctx recall`.

use std::collections::HashSet;
use std::process::ExitCode;

use ctx_core::{Counter, EntryId, MemoryStore, RecallRequest, Role, Timestamp, Tokens};
use ctx_memory::{SessionMemory, build, is_query};
use serde::Serialize;

use crate::args::{Global, RecallArgs};
use crate::commands::memory::{OfAgent, now};
use crate::failure::misuse;
use crate::out::Out;
use crate::setup;
use crate::words::{counted, harmless_lines};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    agent: String,
    session: Option<String>,
    query: String,
    /// The most tokens the block may have.
    budget: Tokens,
    /// What it has.
    tokens: Tokens,
    /// Passages that score less do not come back.
    min_score: f32,
    /// The block as it would be injected; null where nothing fits.
    block: Option<String>,
    /// The first of these are in the block.
    facts: Vec<Fact>,
    facts_used: usize,
    passages: Vec<Passage>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Fact {
    kind: String,
    text: String,
    score: f32,
    entries: Vec<EntryId>,
}

#[derive(Serialize)]
struct Passage {
    entry: Option<EntryId>,
    role: Role,
    timestamp: Timestamp,
    score: f32,
    /// Whether it is there only because it is next to one that fits.
    adjacent: bool,
    /// Whether the block had room for it.
    used: bool,
    text: String,
}

pub(crate) fn run(global: &Global, args: &RecallArgs, out: &Out) -> anyhow::Result<ExitCode> {
    let budget = args.budget.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?;
    let of = OfAgent::open(global, &args.of.agent, out)?;
    let budget = budget.unwrap_or(Tokens(of.config.hard_cap_tokens));
    of.index(out)?;
    let session = args.session.as_deref().map(|named| of.session(named)).transpose()?;
    let name = session.clone().unwrap_or_default();
    let across = args.all_sessions || of.config.cross_session;
    let mut memory = SessionMemory::new(of.memory.clone(), name.clone(), of.maker(&name))
        .with_cross_session(across);
    if let Some(facts) = of.facts.clone() {
        memory = memory.with_facts(facts);
    }
    let request = RecallRequest {
        query: args.query.clone(),
        now: now(),
        visible: HashSet::new(),
        min_score: of.config.auto_recall_min_score,
        passages: of.config.recall.passages as usize,
        facts: of.config.recall.facts as usize,
    };
    let asks = is_query(&args.query);
    let found = match asks {
        true => setup::block_on(memory.recall(request))?,
        false => ctx_core::Recollection::default(),
    };
    let counter = Counter::for_profile(of.profile);
    let block = build(&found.facts, &found.passages, budget, &counter);
    let used: HashSet<usize> =
        block.iter().flat_map(|block| block.passages.iter().copied()).collect();
    let facts = found.facts.into_iter().map(|fact| {
        let ctx_core::RecalledFact { kind, text, score, entries } = fact;
        Fact { kind, text, score, entries }
    });
    let passages = found.passages.into_iter().enumerate().map(|(at, passage)| {
        let ctx_core::Passage { text, score, role, timestamp, entry, adjacent } = passage;
        Passage { entry, role, timestamp, score, adjacent, used: used.contains(&at), text }
    });
    let report = Report {
        agent: of.agent.to_string(),
        session,
        query: args.query.clone(),
        budget,
        tokens: block.as_ref().map_or(Tokens::ZERO, |block| block.tokens),
        min_score: of.config.auto_recall_min_score,
        facts_used: block.as_ref().map_or(0, |block| block.facts),
        block: block.map(|block| block.text),
        facts: facts.collect(),
        passages: passages.collect(),
        warnings: found.warnings,
    };
    report.warnings.iter().for_each(|warning| out.warn(warning));
    if args.of.json {
        out.json(&report)?;
    } else if let Some(block) = &report.block {
        out.line(harmless_lines(block))?;
        out.note(format!(
            "{} of {} tokens: {} and {}",
            report.tokens,
            report.budget,
            counted(report.facts_used, "fact"),
            counted(used.len(), "passage"),
        ));
    } else {
        out.note(why_nothing(&report, asks));
    }
    Ok(ExitCode::SUCCESS)
}

fn why_nothing(report: &Report, asks: bool) -> String {
    if !asks {
        return "a query of less than three letters, or two characters of Chinese, recalls nothing"
            .to_owned();
    }
    let (facts, passages) = (report.facts.len(), report.passages.len());
    if facts + passages == 0 {
        return "nothing that was said fits well enough; `ctx memory search` shows what is nearest"
            .to_owned();
    }
    let found = match (facts, passages) {
        (_, 0) => counted(facts, "fact"),
        (0, _) => counted(passages, "passage"),
        _ => format!("{} and {}", counted(facts, "fact"), counted(passages, "passage")),
    };
    let budget = report.budget;
    format!("nothing of what was found ({found}) fits into {budget} tokens; raise `--budget`")
}
