//! Compares two revisions on one machine.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::figures::Figure;
use super::page::digits;
use super::{Asked, Programs};

/// How often each revision is measured.
const ROUNDS: usize = 3;

/// A figure that grew by more than this part is slower: what the machine does by itself is below it.
const TOLERATED: f64 = 1.1;

/// Measures this tree and another revision in turn, and fails if a figure got worse.
pub(super) fn run(root: &Path, asked: &Asked, new: &Programs, revision: &str) -> Result<()> {
    let tree = root.join("target/against");
    let worktree = |args: &[&str]| {
        Command::new("git").arg("worktree").args(args).arg(&tree).current_dir(root).status()
    };
    if tree.exists() {
        worktree(&["remove", "--force"])?;
    }
    let added = Command::new("git")
        .args(["worktree", "add", "--detach", "--force"])
        .arg(&tree)
        .arg(revision)
        .current_dir(root)
        .status()?;
    ensure!(added.success(), "git cannot check out {revision}");
    if !tree.join("bench/limits").is_dir() {
        worktree(&["remove", "--force"])?;
        bail!("{revision} has no bench/limits: only later revisions can be compared");
    }
    let old = Programs::build(&tree, &root.join("target/against-target"), asked);
    worktree(&["remove", "--force"])?;
    let old = old?;
    let mut all: BTreeMap<String, (Figure, [Vec<f64>; 2])> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut sides = [(0, new), (1, &old)];
        if round % 2 == 1 {
            sides.reverse();
        }
        for (side, programs) in sides {
            programs.measure(root, asked, |figure| {
                let id = figure.id.clone();
                let entry =
                    all.entry(id).or_insert_with(|| (figure.clone(), [Vec::new(), Vec::new()]));
                entry.1[side].push(figure.ctx);
                Ok(())
            })?;
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "| figure | {revision} | this tree | ratio |\n|---|--:|--:|--:|")?;
    let mut worse = Vec::new();
    for (id, (figure, [new, old])) in &mut all {
        let (new, old) = (median(new), median(old));
        if let (Some(new), Some(old)) = (new, old) {
            let ratio = new / old;
            writeln!(
                out,
                "| {} | {} | {} {} | {ratio:.2} |",
                figure.what,
                digits(old),
                digits(new),
                figure.unit
            )?;
            if ratio > TOLERATED {
                worse.push(format!("{id} ({ratio:.2})"));
            }
        }
    }
    ensure!(worse.is_empty(), "worse than {revision}: {}", worse.join(", "));
    Ok(())
}

fn median(figures: &mut [f64]) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}
