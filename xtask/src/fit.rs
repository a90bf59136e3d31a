//! `cargo xtask fit`: fits the weights by which a statement replaces another one.
//!
//! A logistic regression over the labelled pairs of `crates/ctx-facts/tests/data/pairs.jsonl`, over
//! pairs of them that do not belong together, and over statements of recorded sessions, which are
//! taken not to replace each other. Pairs of the sets `test`, `held`, `blind` and `extra` are only judged. The built-in
//! weights are in `crates/ctx-facts/src/statement/weights.txt`.

#![expect(clippy::print_stdout, reason = "the output of the task")]

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ctx_facts::{CitedMessage, Comparison, FactLedger, Statement};
use ctx_session::Transcript;
use ctx_testkit::Random;
use serde::Deserialize;

use crate::transcripts;

/// Steps of the gradient descent, their size, and the penalty of large weights.
const STEPS: usize = 20_000;
const RATE: f64 = 0.5;
const PENALTY: f64 = 0.004;
/// The weight of a pair that replaces, and of a pair that has to be right.
const POSITIVE: f64 = 2.0;
const GIVEN: f64 = 20.0;
/// Subtracted from the fitted bias: a statement that is wrongly replaced is lost.
const CAUTION: f64 = 2.0;
/// The pairs drawn from each list of statements that do not replace each other.
const DRAWN: usize = 600;

#[derive(Clone, Deserialize)]
struct Pair {
    set: String,
    lang: String,
    old: String,
    new: String,
    replaces: bool,
}

struct Row {
    features: Vec<f64>,
    replaces: bool,
    weight: f64,
}

/// Prints how many pairs the built-in weights judge right, and newly fitted weights.
pub(crate) fn run(root: &Path, data: Option<&Path>) -> Result<()> {
    let file = root.join("crates/ctx-facts/tests/data/pairs.jsonl");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let pairs: Vec<Pair> =
        text.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("pairs.jsonl")?;
    for set in ["given", "train", "test", "held", "blind", "extra"] {
        println!("{}", judged(set, &pairs));
    }
    let is_known = |pair: &&Pair| matches!(&*pair.set, "given" | "train");
    let known: Vec<&Pair> = pairs.iter().filter(is_known).collect();
    let mut rows: Vec<Row> = known.iter().filter_map(|pair| labelled(pair)).collect();
    for lang in ["en", "zh"] {
        let all: Vec<&str> =
            known.iter().filter(|p| p.lang == lang).flat_map(|p| [&*p.old, &*p.new]).collect();
        rows.extend(unrelated(&all, 2 * DRAWN));
    }
    for path in data.map(transcripts).transpose()?.unwrap_or_default() {
        let said = statements(&path)?;
        rows.extend(unrelated(&said.iter().map(String::as_str).collect::<Vec<_>>(), DRAWN));
    }
    let names = Comparison::of(&Statement::default(), &Statement::default()).features();
    let mut weights = fitted(&rows, names.len());
    weights[0] -= CAUTION;
    println!("fitted to {} pairs:", rows.len());
    for ((name, _), weight) in names.iter().zip(&weights) {
        println!("{name} {weight:.2}");
    }
    Ok(())
}

/// Counts what the built-in weights make of a set.
fn judged(set: &str, pairs: &[Pair]) -> String {
    let count = |replaces: bool| {
        let of = pairs.iter().filter(|pair| pair.set == set && pair.replaces == replaces);
        let decided = |pair: &Pair| Statement::of(&pair.new).replaces(&Statement::of(&pair.old));
        of.fold((0, 0), |(found, all), pair| (found + usize::from(decided(pair)), all + 1))
    };
    let ((found, updates), (wrong, others)) = (count(true), count(false));
    format!("{set}: {found} of {updates} updates found, {wrong} of {others} others taken for one")
}

/// Returns the features of a pair; `None` if no weights decide about it.
fn row(new: &str, old: &str, replaces: bool, weight: f64) -> Option<Row> {
    let (new, old) = (Statement::of(new), Statement::of(old));
    let compared = Comparison::of(&new, &old);
    let features = || compared.features().iter().map(|(_, is)| f64::from(*is)).collect();
    compared.certain().is_none().then(|| Row { features: features(), replaces, weight })
}

fn labelled(pair: &Pair) -> Option<Row> {
    let given = if pair.set == "given" { GIVEN } else { 1.0 };
    let weight = if pair.replaces { POSITIVE } else { 1.0 };
    row(&pair.new, &pair.old, pair.replaces, given * weight)
}

/// Draws pairs of statements that do not belong together.
fn unrelated(all: &[&str], count: usize) -> Vec<Row> {
    let mut random = Random::seeded(7);
    let drawn = (0..count).filter(|_| all.len() > 4).filter_map(|_| {
        let at = 2 + random.below(all.len() - 2);
        let old = random.below(at - 1);
        row(all[at], all[old], false, 1.0)
    });
    drawn.collect()
}

/// Returns what a recorded session states, in its order.
fn statements(path: &Path) -> Result<Vec<String>> {
    let transcript = Transcript::open(path)?;
    let mut ledger = FactLedger::default();
    for entry in transcript.all_messages() {
        let Ok(message) = entry.message() else { continue };
        ledger.read(&CitedMessage { id: entry.id().clone(), message, pinned: false });
    }
    let facts = ledger.facts();
    let old = facts.superseded.into_iter().map(|old| old.fact);
    let mut said: Vec<_> = facts.required.into_iter().chain(old).collect();
    said.retain(|fact| fact.kind.is_passage());
    said.sort_by_key(|fact| fact.order);
    Ok(said.into_iter().map(|fact| fact.text).collect())
}

/// Fits the weights by gradient descent.
fn fitted(rows: &[Row], count: usize) -> Vec<f64> {
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    let mut weights = vec![0.0; count];
    for _ in 0..STEPS {
        let mut gradient = vec![0.0; count];
        for row in rows {
            let sum: f64 = row.features.iter().zip(&weights).map(|(is, weight)| is * weight).sum();
            let error = 1.0 / (1.0 + (-sum).exp()) - f64::from(u8::from(row.replaces));
            for (slope, is) in gradient.iter_mut().zip(&row.features) {
                *slope += error * row.weight * is;
            }
        }
        for (at, (weight, slope)) in weights.iter_mut().zip(gradient).enumerate() {
            let penalty = if at == 0 { 0.0 } else { PENALTY * *weight };
            *weight -= RATE * (8.0 * slope / total + penalty);
        }
    }
    weights
}
