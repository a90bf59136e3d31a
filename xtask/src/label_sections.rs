//! `cargo xtask label-sections`: how many lines of ten summaries stand in the section that they
//! belong to, and how many say the same as another line.
//!
//! The labels in `xtask/labels/sections.jsonl` are manual.

#![expect(clippy::print_stdout, reason = "the output of the task")]

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use ctx_compaction::{CompactOptions, Config, History, compact};
use ctx_core::{CompactionTrigger, ContextView, Counter, Role, Timestamp, TokenLedger, Tokens};
use ctx_facts::without_citations;
use ctx_session::Transcript;
use ctx_testkit::VirtualTimer;

use crate::labels::{Label, compare};

/// The summaries: a session, how many hundredths of its messages, the tokens of the request after
/// the compaction, and the rounds.
const SUMMARIES: [(&str, usize, u32, usize); 10] = [
    ("claude-code/01_2026-01-05_a0bd162f.jsonl", 100, 8_000, 1),
    ("claude-code/03_2026-01-08_0442a060.jsonl", 40, 6_000, 1),
    ("claude-code/03_2026-01-08_0442a060.jsonl", 90, 12_000, 3),
    ("claude-code/07_2026-01-20_130d7b7e.jsonl", 80, 6_000, 1),
    ("claude-code/09_2026-01-21_de1ed521.jsonl", 50, 12_000, 1),
    ("claude-code/09_2026-01-21_de1ed521.jsonl", 95, 8_000, 2),
    ("claude-code/15_2026-02-01_1e0816ef.jsonl", 35, 8_000, 1),
    ("claude-code/15_2026-02-01_1e0816ef.jsonl", 85, 16_000, 3),
    ("pi/before-compaction.jsonl", 45, 8_000, 1),
    ("pi/before-compaction.jsonl", 95, 16_000, 2),
];

/// A line of fewer letters and digits is not compared with others.
const LEAST_COMPARED: usize = 12;

/// Prints the share of labelled lines that stand where they belong, how many lines have no label, and
/// how many repeat another one; with `print`, also these lines, in the form of the file.
pub(crate) fn run(root: &Path, data: &Path, print: bool) -> Result<()> {
    let (mut found, mut repeated) = (Vec::new(), 0);
    for (session, share, tokens, rounds) in SUMMARIES {
        let summary = summary(&data.join(session), share, Tokens(tokens), rounds)?;
        let lines = lines(&summary);
        let again = repetitions(&lines);
        repeated += again.len();
        if print {
            again.iter().for_each(|line| println!("repeated: {line}"));
        }
        let label = |(section, text)| Label::new(session, section, &without_citations(text));
        found.extend(lines.into_iter().map(label));
    }
    let found = compare(&root.join("xtask/labels/sections.jsonl"), &found, print)?;
    let (labelled, none) = (found.right + found.wrong, found.unlabelled);
    println!("{} of {labelled} labelled lines are right, {none} have no label", found.right);
    println!("{repeated} lines repeat another line of their summary");
    Ok(())
}

/// Returns the lines whose words, without label, case and punctuation, are all or a part of another
/// line.
fn repetitions<'a>(lines: &[(&str, &'a str)]) -> Vec<&'a str> {
    let words = |line: &str| {
        let line = without_citations(line);
        let label = line.find(": ").filter(|at| line[..*at].split(' ').count() <= 3);
        let line = label.map_or(&*line, |at| &line[at..]);
        line.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let all: Vec<String> = lines.iter().map(|(_, line)| words(line)).collect();
    let repeats = |at: usize| {
        let (own, mut others) = (&all[at], all.iter().enumerate());
        let is_more = |other: usize, text: &str| text.len() > own.len() || other < at;
        own.chars().count() >= LEAST_COMPARED
            && others.any(|(other, text)| text.contains(own) && is_more(other, text))
    };
    (0..lines.len()).filter(|at| repeats(*at)).map(|at| lines[at].1).collect()
}

/// Compacts the beginning of a session, and returns the last summary.
fn summary(path: &Path, share: usize, target: Tokens, rounds: usize) -> Result<String> {
    let entries = Transcript::open(path)?.all_messages();
    let end = entries.len() * share / 100;
    let mut view =
        ContextView::new(TokenLedger::new(Counter::default(), Tokens(200_000), Tokens(20_000)));
    let mut text = String::new();
    for round in 1..=rounds {
        for entry in &entries[end * (round - 1) / rounds..end * round / rounds] {
            if entry.message()?.role != Role::CompactionSummary {
                view.append(entry.clone())?;
            }
        }
        let options = CompactOptions::new(CompactionTrigger::Manual, Timestamp(0));
        let options = CompactOptions { force: true, token_budget: Some(target), ..options };
        let done = compact(History::of(&view)?, Arc::new(Config::default()), options);
        let compacted = VirtualTimer::default().run(done)?.result.context("nothing to compact")?;
        text.clone_from(&compacted.summary);
        view.compact(compacted, format!("summary-{round}"), "label-sections", "")?;
    }
    Ok(text)
}

/// Returns the lines of a summary with their headings, without the lists of files and the title of a
/// split turn.
fn lines(summary: &str) -> Vec<(&str, &str)> {
    let mut section = "";
    let mut out = Vec::new();
    for line in summary.lines().take_while(|line| !line.ends_with("-files>")) {
        match line.strip_prefix('#') {
            Some(heading) => section = heading.trim_start_matches(['#', ' ']),
            None if line.starts_with("**Turn Context") => {}
            None if line.contains(char::is_alphanumeric) => out.push((section, line)),
            None => {}
        }
    }
    out
}
