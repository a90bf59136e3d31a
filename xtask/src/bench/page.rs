//! The page of the figures.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::chart;
use super::figures::{Beside, Figure, Figures, Goal, Group};

/// The text of the page. `{{group NAME}}` is the table of a group.
const TEXT: &str = "bench/limits/page.md";
const PAGE: &str = "docs/benchmarks.md";
const CHART: &str = "docs/scale.svg";

pub(super) fn write(root: &Path, figures: &Figures) -> Result<()> {
    let text = root.join(TEXT);
    let text = std::fs::read_to_string(&text).with_context(|| text.display().to_string())?;
    let mut page = String::new();
    for line in text.lines() {
        let name = line.strip_prefix("{{group ").and_then(|rest| rest.strip_suffix("}}"));
        match name.map(|name| figures.group(name)) {
            None => page.push_str(line),
            Some(None) => page.push_str("Not measured yet."),
            Some(Some(group)) => table(&mut page, group)?,
        }
        page.push('\n');
    }
    std::fs::write(root.join(PAGE), page)?;
    chart::write(&root.join(CHART), figures)?;
    super::say(&format!("{PAGE} is written"));
    Ok(())
}

fn table(page: &mut String, group: &Group) -> Result<()> {
    let run = &group.run;
    writeln!(
        page,
        "{}; {}; {}, load {:.1} at the start; commit {}. `cargo xtask bench {}`",
        run.date, run.machine, run.rustc, run.load, run.commit, group.name
    )?;
    writeln!(page)?;
    writeln!(page, "| what | ctx | peer | ctx/peer | limit | ctx/limit | goal | |")?;
    writeln!(page, "|---|--:|--:|--:|--:|--:|---|---|")?;
    for figure in &group.figures {
        let (peer, peers) = side(figure, figure.peer.as_ref());
        let (limit, limits) = side(figure, figure.limit.as_ref());
        let goals: Vec<_> = figure.goals.iter().map(|goal| wording(*goal, &figure.unit)).collect();
        writeln!(
            page,
            "| {} | {} | {peer} | {peers} | {limit} | {limits} | {} | {} |",
            figure.what,
            with_unit(figure.ctx, &figure.unit),
            goals.join(", "),
            verdict(figure),
        )?;
    }
    let mut names: Vec<String> = Vec::new();
    for (kind, of) in [
        ("peer", (|figure: &Figure| figure.peer.clone()) as fn(&Figure) -> Option<Beside>),
        ("limit", |figure| figure.limit.clone()),
    ] {
        let mut seen: Vec<(String, Vec<&str>)> = Vec::new();
        for figure in &group.figures {
            let Some(beside) = of(figure) else { continue };
            match seen.iter_mut().find(|(name, _)| *name == beside.name) {
                Some((_, figures)) => figures.push(&figure.what),
                None => seen.push((beside.name, vec![&figure.what])),
            }
        }
        // The usual one needs no list of figures.
        seen.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.len()));
        for (at, (name, figures)) in seen.iter().enumerate() {
            names.push(match at {
                0 if seen.len() == 1 => format!("- The {kind}: {name}."),
                0 => format!("- The {kind}, if no other is named here: {name}."),
                _ => format!("- The {kind} of *{}*: {name}.", figures.join("*, *")),
            });
        }
    }
    write!(page, "\n{}", names.join("\n"))?;
    Ok(())
}

/// Returns a figure that ctx is compared with, and the ratio.
fn side(figure: &Figure, beside: Option<&Beside>) -> (String, String) {
    match beside {
        None => ("".to_owned(), "".to_owned()),
        Some(beside) => (with_unit(beside.value, &figure.unit), ratio(figure.ctx, beside.value)),
    }
}

fn wording(goal: Goal, unit: &str) -> String {
    match goal {
        Goal::AtMost(most) => with_unit(most, unit),
        Goal::OfPeer(part) => format!("{} of the peer", ratio(part, 1.0)),
        Goal::OfLimit(times) => format!("{times} × the limit"),
    }
}

/// Says whether the figure reaches its goals, or how far it is from the one that it misses most.
fn verdict(figure: &Figure) -> String {
    let times = figure.goals.iter().filter_map(|goal| figure.times(*goal));
    match times.max_by(f64::total_cmp) {
        None => String::new(),
        Some(times) if times <= 1.0 => "reached".to_owned(),
        Some(times) => format!("missed: {} ×", digits(times)),
    }
}

/// Returns the figure as one line of a terminal.
pub(super) fn line(figure: &Figure) -> String {
    let mut line = format!("{}: {}", figure.what, with_unit(figure.ctx, &figure.unit));
    for beside in [&figure.peer, &figure.limit].into_iter().flatten() {
        let value = with_unit(beside.value, &figure.unit);
        line += &format!("; {} {value} ({})", beside.name, ratio(figure.ctx, beside.value));
    }
    match verdict(figure).as_str() {
        "" => line,
        verdict => format!("{line}; {verdict}"),
    }
}

/// Returns three digits of a number.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.01 => format!("{value:.4}"),
        size if size < 1.0 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", digits(value))
}

/// Returns `1/3.1` or `2.4`.
fn ratio(ours: f64, other: f64) -> String {
    match other / ours {
        part if !part.is_finite() => "-".to_owned(),
        part if part > 1.0 => format!("1/{}", digits(part)),
        part => digits(1.0 / part),
    }
}
