//! Updates the program outputs in the documentation.
//!
//! A block is between `<!-- output: NAME -->` and `<!-- end of output -->`. Some blocks need the
//! folder of transcripts that are not part of the repository; without it, they are not changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

const SAMPLE: &str = "examples/fix-flaky-test.jsonl";

/// Maximum length of an output line.
const LINE_CHARS: usize = 96;

/// Maximum number of shown lines of each section of a summary.
const SECTION_LINES: usize = 4;

/// Maximum number of shown lines of a diff.
const DIFF_LINES: usize = 15;

/// The program, its working folder and its home.
struct Program<'a> {
    root: &'a Path,
    binary: PathBuf,
    home: PathBuf,
}

/// Updates the blocks of README and docs with the output of a release build. `data` is the folder
/// of recorded sessions.
pub(crate) fn write(root: &Path, data: Option<&Path>) -> Result<()> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "-p", "ctx-cli"])
        .current_dir(root)
        .status()?;
    if !built.success() {
        bail!("cannot build the program");
    }
    let home = root.join("target/docs-home");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    let program = Program { root, binary: root.join("target/release/ctx"), home };
    let mut blocks = BTreeMap::new();
    blocks.insert("replay", text(&program.run(&["replay", SAMPLE, "--window", "32000"])?));
    let small = ["compact", SAMPLE, "--window", "16000", "--target", "4000", "--dry-run"];
    blocks.insert("lost", text(receipt(&program.run(&small)?)?));
    let compacted = program.run(&["compact", SAMPLE, "--window", "32000"])?;
    blocks.insert("summary", text(&beginnings(&compacted)?));
    blocks.insert("receipt", text(receipt(&compacted)?));
    let diff = program.run(&["diff", SAMPLE])?;
    let shown: Vec<&str> = diff.lines().take(DIFF_LINES).map(str::trim_end).collect();
    blocks.insert("diff", text(&format!("{}\n...", shown.join("\n"))));
    program.run(&["memory", "ingest", SAMPLE])?;
    let asks = "can the u32 generation overflow?";
    let recalled = program.run(&["recall", asks, "--session", SAMPLE, "--budget", "120"])?;
    blocks.insert("recall", text(&recalled));
    // `crates`, because this file contains the question.
    let asks = "when is a session locked?";
    let found = program.run(&["context", asks, "--workspace", "crates", "--budget", "200"])?;
    blocks.insert("context", text(&found));
    if let Some(data) = data {
        let report = program.eval(data, "64000")?;
        blocks.insert("eval", candidates(&report));
        blocks.insert("recorded", recorded(&report));
        blocks.insert("eval-200k", candidates(&program.eval(data, "200000")?));
    }
    for path in ["README.md", "docs/compaction.md", "docs/memory.md"] {
        let path = root.join(path);
        let name = format!("{}", path.display());
        let old = std::fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let new = with_blocks(&old, &blocks).with_context(|| name.clone())?;
        std::fs::write(&path, new).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

impl Program<'_> {
    fn run(&self, args: &[&str]) -> Result<String> {
        let output = Command::new(&self.binary)
            .args(args)
            .current_dir(self.root)
            .env("CTX_HOME", &self.home)
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .output()?;
        if !output.status.success() {
            bail!("ctx {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs `ctx eval` over recorded sessions in a window.
    fn eval(&self, data: &Path, window: &str) -> Result<Value> {
        let mut files = vec![data.join("pi/before-compaction.jsonl")];
        let mut others = Vec::new();
        for file in std::fs::read_dir(data.join("claude-code"))? {
            others.push(file?.path());
        }
        others.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
        others.sort();
        files.extend(others);
        let mut args = vec!["eval", "--window", window, "--json"];
        args.extend(files.iter().filter_map(|path| path.to_str()));
        Ok(serde_json::from_str(&self.run(&args)?)?)
    }
}

fn with_blocks(page: &str, blocks: &BTreeMap<&str, String>) -> Result<String> {
    const END: &str = "<!-- end of output -->";
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!-- output: ") {
        let (name, after) = after.split_once(" -->").context("missing name of a block")?;
        let (old, after) =
            after.split_once(END).with_context(|| format!("missing end of the block {name}"))?;
        let new = match blocks.get(name) {
            Some(new) => format!("\n{}\n", new.trim_end()),
            None => old.to_owned(),
        };
        write!(out, "{before}<!-- output: {name} -->{new}{END}")?;
        rest = after;
    }
    Ok(out + rest)
}

fn text(output: &str) -> String {
    format!("```text\n{}\n```", output.trim_end())
}

/// Returns the first lines of each section of the summary.
fn beginnings(compacted: &str) -> Result<String> {
    let (_, summary) =
        compacted.split_once("**Compressed Summary:**").context("missing summary")?;
    let (mut out, mut shown) = (String::new(), 0);
    for line in summary.trim_start().lines() {
        if line.starts_with("<read-files>") || line.starts_with("---") {
            break;
        }
        if line.starts_with('#') || line.trim().is_empty() {
            shown = 0;
        } else {
            shown += 1;
        }
        match shown {
            0..=SECTION_LINES => writeln!(out, "{}", cut(line))?,
            n if n == SECTION_LINES + 1 => writeln!(out, "- ...")?,
            _ => {}
        }
    }
    Ok(out.trim_end().to_owned())
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS - 1) {
        Some((end, _)) if line.chars().count() > LINE_CHARS => format!("{}…", &line[..end]),
        _ => line.to_owned(),
    }
}

/// Returns the output after the summary, which starts with the sizes.
fn receipt(compacted: &str) -> Result<&str> {
    let sizes = compacted.rfind(", the summary ").context("missing sizes after the summary")?;
    let start = compacted[..sizes].rfind('\n').map_or(0, |end| end + 1);
    Ok(compacted[start..].trim())
}

/// Returns a table with one row per candidate: its replay, and its single compaction.
fn candidates(report: &Value) -> String {
    let mut out = String::from(
        "| candidate | cost | needed next | a point | tokens sent | from the cache | calls | coverage | ungrounded | wedges | once: left | kept |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let once = report["once"].as_array().cloned().unwrap_or_default();
    for row in report["rows"].as_array().into_iter().flatten() {
        let found = once.iter().find(|once| once["name"] == row["name"]);
        let cell = |key: &str| found.map_or("-".to_owned(), |once| count(&once[key]));
        let kept = found.map_or("-".to_owned(), |once| share(&once["coverage"]));
        let needed = &row["neededNext"]["strict"]["share"];
        let cost = row["costUsd"].as_f64();
        let point = cost.zip(needed.as_f64()).map(|(usd, share)| usd / (100.0 * share));
        let usd = |usd: Option<f64>| usd.map_or("-".to_owned(), |usd| format!("${usd:.2}"));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {kept} |",
            plain(&row["name"]),
            usd(cost),
            share(needed),
            usd(point),
            count(&row["sentTokens"]),
            share(&row["prefixReuse"]),
            count(&row["calls"]),
            share(&row["coverage"]),
            count(&row["ungrounded"]),
            count(&row["wedges"]),
            cell("tokensAfter"),
        );
    }
    out
}

/// Returns a table with one row per recorded summary, beside ctx's own.
fn recorded(report: &Value) -> String {
    let mut out = String::from(
        "| recorded summary | messages | facts | tokens | kept | ungrounded | ctx: tokens | kept | ungrounded |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let sessions = report["sessions"].as_array().into_iter().flatten();
    for found in sessions.flat_map(|session| session["recorded"].as_array().into_iter().flatten()) {
        let figures = |by: &str| {
            let figures = &found[by];
            let ungrounded = figures["ungrounded"].as_array().map_or(0, Vec::len);
            let (tokens, kept) = (count(&figures["tokens"]), share(&figures["inSummary"]));
            format!("{tokens} | {kept} | {ungrounded}")
        };
        let id: String = plain(&found["entryId"]).chars().take(8).collect();
        let _ = writeln!(
            out,
            "| {id} | {} | {} | {} | {} |",
            count(&found["messages"]),
            count(&found["facts"]),
            figures("recorded"),
            figures("ctx"),
        );
    }
    out
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn count(value: &Value) -> String {
    let Some(number) = value.as_u64() else { return "-".to_owned() };
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn share(value: &Value) -> String {
    value.as_f64().map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_written_anew() {
        let page = "a\n<!-- output: x -->\nold\n<!-- end of output -->\nb\n\
                    <!-- output: y -->\nkept\n<!-- end of output -->\nc\n";
        let new = with_blocks(page, &BTreeMap::from([("x", "new".to_owned())])).unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert!(with_blocks("<!-- output: x -->", &BTreeMap::new()).is_err());
    }

    #[test]
    fn numbers_are_set_in_threes() {
        for (number, set) in [(7, "7"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(&Value::from(number)), set);
        }
    }
}
