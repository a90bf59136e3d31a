//! `cargo xtask ablate`: what each rule that reads language adds to the bench of compactions.
//!
//! A rule is a word list, a pattern, or a function that returns `bool`, `Option` or `Vec`. In a copy of
//! the sources each rule gets a switch: with its name in `CTX_ABLATE`, the list is empty, the pattern
//! matches nothing, and the function returns `false`, `None` or nothing. `ctx eval compact` then runs once per rule.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output of the task")]

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::transcripts;

/// The sources with rules.
const SOURCES: &[&str] = &[
    "crates/ctx-text/src",
    "crates/ctx-facts/src",
    "crates/ctx-extract/src",
    "crates/ctx-compaction/src/answer",
    "crates/ctx-compaction/src/audit",
    "crates/ctx-compaction/src/repair",
    "crates/ctx-compaction/src/source_index",
];
/// The sources that load word lists and patterns: the file, the name of what is loaded, the code that
/// loads it, and an empty list or a pattern that matches nothing.
const LOADERS: [[&str; 4]; 2] = [
    [
        "crates/ctx-text/src/word_list.rs",
        "self.name",
        "LISTS.get(self.name).cloned().unwrap_or_default()",
        "Vec::new()",
    ],
    [
        "crates/ctx-text/src/pattern.rs",
        "name",
        "ALL.get(name).and_then(toml::Value::as_str)",
        r#"Some(r"[^\s\S]")"#,
    ],
];
const VARIABLE: &str = "CTX_ABLATE";
/// The bench that a rule must show in: the arms of every session, cut at two places.
const BENCH: &str =
    "eval compact --profile openclaw --preset truncation --cuts 2 --budgets 10,5 --rounds 5 --json";
/// The time that one run of it may take.
const LONGEST: Duration = Duration::from_secs(600);
/// The measures that are printed: a column, and the place of its figure in a cell.
const MEASURES: &[(&str, &str)] = &[
    ("tokens", "/tokens"),
    ("strict", "/strict/present/kept"),
    ("loose", "/loose/present/kept"),
    ("planted", "/planted/statements/kept"),
    ("stale", "/planted/staleBesideNew"),
    ("files", "/files/kept"),
    ("todos", "/todos/kept"),
];

/// The measures of a run, summed over all cells of the reference, and these cells without times.
struct Figures {
    sums: Vec<f64>,
    cells: Value,
}

/// Runs the bench without each rule whose name contains one of `names`, or without each one.
pub(crate) fn run(root: &Path, data: &Path, names: &[String]) -> Result<()> {
    let copy = root.join("target/ablate");
    let mut rules = copied(root, &copy)?;
    rules.retain(|rule| names.is_empty() || names.iter().any(|name| rule.contains(name)));
    let build = ["build", "--release", "--locked", "-p", "ctx-cli", "--target-dir", "target"];
    let done = Command::new(env!("CARGO")).args(build).current_dir(&copy).status()?;
    ensure!(done.success(), "the sources with switches do not compile");
    let program = copy.join("target/release/ctx");
    let sessions = transcripts(data)?;
    let base = bench(&program, &sessions, "")?;
    eprintln!("{} rules", rules.len());
    println!("{:40}{}", "rule", row(MEASURES.iter().map(|(column, _)| *column)));
    println!("{:40}{}", "(nothing left out)", row(&base.sums));
    let waiting = Mutex::new(VecDeque::from(rules));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let next = || waiting.lock().ok()?.pop_front();
                while let Some(rule) = next() {
                    println!("{}", judged(&rule, &base, bench(&program, &sessions, &rule)));
                }
            });
        }
    });
    Ok(())
}

fn row(values: impl IntoIterator<Item = impl Display>) -> String {
    values.into_iter().map(|value| format!("{value:>9}")).collect()
}

/// Returns the line of a rule: what the reference keeps more or less without it.
fn judged(rule: &str, base: &Figures, without: Result<Figures>) -> String {
    match without {
        Err(e) => format!("{rule:40} failed: {e:#}"),
        Ok(without) if without.cells == base.cells => format!("{rule:40} changes nothing"),
        Ok(without) => {
            let pairs = without.sums.iter().zip(&base.sums);
            format!(
                "{rule:40}{}",
                row(pairs.map(|(without, with)| format!("{:+}", without - with)))
            )
        }
    }
}

/// Runs the bench without a rule.
fn bench(program: &Path, sessions: &[PathBuf], rule: &str) -> Result<Figures> {
    let mut command = Command::new(program);
    command.args(BENCH.split(' ')).args(sessions).arg("--quiet").env(VARIABLE, rule);
    let report: Value = serde_json::from_slice(&output(&mut command)?)?;
    let mut cells = report["arms"][0]["cells"].clone();
    let mut sums = vec![0.0; MEASURES.len()];
    for cell in cells.as_array_mut().context("a report without cells")? {
        for (sum, (_, place)) in sums.iter_mut().zip(MEASURES) {
            *sum += cell.pointer(place).and_then(Value::as_f64).unwrap_or_default();
        }
        cell["millis"].take();
    }
    Ok(Figures { sums, cells })
}

/// Runs a program and returns its standard output. Without some rules the program does not end: it is
/// killed after [`LONGEST`].
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut stdout = child.stdout.take().context("no standard output")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // If the receiver is gone, the program was killed.
        let _ = sender.send(stdout.read_to_end(&mut bytes).map(|_| bytes));
    });
    let bytes = receiver.recv_timeout(LONGEST);
    if bytes.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let bytes = bytes.with_context(|| format!("did not end within {LONGEST:?}"))??;
    ensure!(status.success(), "{status}");
    Ok(bytes)
}

/// Copies the sources, with a switch in each rule, and returns the names of the rules.
fn copied(root: &Path, copy: &Path) -> Result<Vec<String>> {
    let files = Command::new("git").args(["ls-files"]).current_dir(root).output()?;
    let mut rules = Vec::new();
    for file in String::from_utf8(files.stdout)?.lines().filter(|file| root.join(file).is_file()) {
        let bytes = fs::read(root.join(file))?;
        let bytes = if let Some(loader) = LOADERS.iter().find(|loader| loader[0] == file) {
            let [_, name, load, nothing] = loader;
            let off = format!("std::env::var({VARIABLE:?}).is_ok_and(|off| off == {name})");
            let switched = format!("if {off} {{ {nothing} }} else {{ {load} }}");
            String::from_utf8(bytes)?.replace(load, &switched).into_bytes()
        } else if file.ends_with(".rs") && SOURCES.iter().any(|folder| file.starts_with(folder)) {
            let (source, found) = switched(&String::from_utf8(bytes)?, &stem(file));
            rules.extend(found);
            source.into_bytes()
        } else {
            if file.contains("/words/") {
                rules.extend(lists(str::from_utf8(&bytes)?)?);
            }
            bytes
        };
        let to = copy.join(file);
        if fs::read(&to).is_ok_and(|old| old == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().unwrap_or(copy))?;
        fs::write(to, bytes)?;
    }
    rules.sort();
    rules.dedup();
    Ok(rules)
}

/// Returns the names of the lists in a file of word lists.
fn lists(file: &str) -> Result<Vec<String>> {
    let lists = file.parse::<toml::Table>()?.into_iter().flat_map(|(name, value)| match value {
        toml::Value::Table(lists) => lists.keys().map(|list| format!("{name}.{list}")).collect(),
        _ => vec![name],
    });
    Ok(lists.collect())
}

/// Returns `compaction/repair/add` for `crates/ctx-compaction/src/repair/add.rs`.
fn stem(file: &str) -> String {
    let path = file.trim_start_matches("crates/ctx-").trim_end_matches(".rs");
    path.replace("/src/", "/")
}

/// Returns a source whose functions have switches, and their names.
fn switched(source: &str, file: &str) -> (String, Vec<String>) {
    let (mut out, mut rules, mut function) = (String::new(), Vec::new(), None);
    let mut is_test = false;
    for line in source.lines() {
        out.push_str(line);
        out.push('\n');
        is_test |= line.starts_with("#[cfg(test)]");
        if let Some((before, after)) = line.split_once("fn ") {
            let is_plain = before.trim().is_empty() || before.trim().starts_with("pub");
            let name = after.split(['(', '<']).next().unwrap_or_default();
            function = (is_plain && !before.contains("const")).then(|| name.to_owned());
        }
        let Some(returned) = line.strip_suffix(" {").and_then(|line| line.split_once(") -> "))
        else {
            continue;
        };
        let nothing = match returned.1 {
            "bool" => "false",
            other if other.starts_with("Option<") && !other.contains("impl") => "None",
            other if other.starts_with("Vec<") => "Vec::new()",
            _ => continue,
        };
        let Some(name) = function.take().filter(|_| !is_test) else { continue };
        let rule = format!("{file}::{name}");
        out.push_str(&format!(
            "{{ static OFF: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| \
             std::env::var({VARIABLE:?}).is_ok_and(|off| off == {rule:?})); \
             if *OFF {{ return {nothing}; }} }}\n"
        ));
        rules.push(rule);
    }
    (out, rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_lists_get_switches() {
        let source = "fn is_a(b: &str) -> bool {\n    true\n}\nfn long(\n    a: u8,\n) -> Vec<u8> {\n\
                      }\nfn no() -> u8 {\n}\n#[cfg(test)]\nfn t() -> bool {\n}\n";
        let (switched, rules) = switched(source, "text/acts");
        assert_eq!(rules, ["text/acts::is_a", "text/acts::long"]);
        assert!(switched.contains("if *OFF { return Vec::new(); }"), "{switched}");
        assert_eq!(lists("stop = [\"a\"]\n[slots]\npast = []\n").unwrap(), ["slots.past", "stop"]);
        for [file, _, load, _] in LOADERS {
            let source = fs::read_to_string(crate::root().join(file)).unwrap();
            assert_eq!(source.matches(load).count(), 1, "{file}");
        }
    }
}
