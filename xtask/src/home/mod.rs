//! Writes a home folder with invented sessions of Claude Code, Codex and pi, the same in every run.

mod clock;
mod random;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use ctx_testkit::Random;

use clock::Clock;
use random::{hex8, letters, uuid};

/// The end of the newest session, and the interval between sessions, in milliseconds.
const NEWEST: u64 = 1_790_000_000_000;
const APART: u64 = 7_200_000;

/// The lines of a session with placeholders: its header, and one turn.
const CLAUDE_CODE: &str = include_str!("claude-code.jsonl");
const CODEX: &str = include_str!("codex.jsonl");
const PI: &str = include_str!("pi.jsonl");

/// The sizes of sessions, in eighths of the average.
const SIZES: [u64; 8] = [1, 1, 2, 4, 6, 8, 14, 28];

pub(crate) fn run(mut args: impl Iterator<Item = String>) -> Result<()> {
    let mut folder = PathBuf::from("target/home");
    let (mut sessions, mut bytes) = (500_u64, 1_000_000_000_u64);
    while let Some(arg) = args.next() {
        let mut number = || {
            let text = args.next().unwrap_or_default();
            text.parse().with_context(|| format!("invalid number \"{text}\" for {arg}"))
        };
        match arg.as_str() {
            "--sessions" => sessions = number()?,
            "--bytes" => bytes = number()?,
            option if option.starts_with('-') => {
                bail!("usage: cargo xtask home [--sessions N] [--bytes N] [DIR]")
            }
            _ => folder = PathBuf::from(arg),
        }
    }
    let folder = std::path::absolute(folder)?;
    let mut random = Random::seeded(0x0007_e570_f403);
    for n in 0..sessions {
        let size = bytes / sessions * SIZES[n as usize % SIZES.len()] / 8;
        session(&folder, n, size, &mut random).context("cannot write a session")?;
    }
    Ok(())
}

fn session(home: &Path, n: u64, size: u64, random: &mut Random) -> Result<()> {
    let project = home.join(format!("work/project-{}", n % 20));
    fs::create_dir_all(&project)?;
    let (id, cwd) = (uuid(random), project.to_string_lossy().into_owned());
    let ended = NEWEST.saturating_sub(n * APART);
    let mut clock = Clock(i64::try_from(ended - APART)?);
    let began = clock.iso();
    let dashed = cwd.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let file = format!("{}-{id}.jsonl", began.replace([':', '.'], "-"));
    let (template, path) = match n % 10 {
        0..6 => (CLAUDE_CODE, format!(".claude/projects/{dashed}/{id}.jsonl")),
        6..8 => {
            (CODEX, format!(".codex/sessions/{}/rollout-{file}", began[..10].replace('-', "/")))
        }
        _ => (PI, format!(".pi/agent/sessions/-{dashed}--/{file}")),
    };
    let path = home.join(path);
    fs::create_dir_all(path.parent().unwrap_or(home))?;
    let mut out = BufWriter::new(File::create(path)?);
    let (mut written, mut prompt, mut parent) = (0, 18_000, "null".to_owned());
    let mut lines = template.lines();
    let header = lines.next().unwrap_or_default();
    writeln!(out, "{}", filled(header, &[("ID", &id), ("CWD", &cwd), ("TIME", &began)]))?;
    while written < size {
        let (ask, result, answer) = (text(random, 20), text(random, 800), text(random, 80));
        let cached = if prompt > 160_000 { 30_000 } else { prompt };
        let new = (ask.len() + result.len() + answer.len()) as u64 / 4;
        prompt = cached + new;
        let [cached, new, sum] = [cached, new, prompt].map(|tokens| tokens.to_string());
        let call = letters(random, 20);
        for line in lines.clone() {
            clock.pass(random.within(500..=1_999) as u64);
            let (uuid, time) = (uuid(random), clock.iso());
            let of_session = [("ID", &id), ("CWD", &cwd), ("TIME", &time), ("UUID", &uuid)];
            let of_turn =
                [("PARENT", &parent), ("CALL", &call), ("ASK", &ask), ("ANSWER", &answer)];
            let figures =
                [("CACHED", &cached), ("NEW", &new), ("PROMPT", &sum), ("RESULT", &result)];
            let line = filled(line, &[of_session, of_turn, figures].concat());
            writeln!(out, "{line}")?;
            written += line.len() as u64;
            parent = format!("\"{uuid}\"");
        }
    }
    out.into_inner()?.set_modified(UNIX_EPOCH + Duration::from_millis(ended))?;
    Ok(())
}

/// Returns a line with its placeholders filled.
fn filled(line: &str, values: &[(&str, &String)]) -> String {
    values
        .iter()
        .fold(line.to_owned(), |line, (name, value)| line.replace(&format!("@{name}@"), value))
}

/// Returns about `count` words and numbers.
fn text(random: &mut Random, count: u64) -> String {
    let words: Vec<&str> = include_str!("words.txt").split_whitespace().collect();
    let word = |n: u64| {
        if n.is_multiple_of(7) { hex8(random) } else { random.pick(&words).to_owned() }
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}
