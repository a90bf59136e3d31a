//! Tasks of the workspace.
//!
//! - `cargo xtask plugins [--release] [--only NAME] [--skip NAME]` builds the engines in
//!   `plugins/`, puts each with its manifest into `target/plugins/NAME/`, and prints
//!   `target/plugins`.
//! - `cargo xtask dist [--tar] [--wheel] [--npm] [--binary FILE] [--target TRIPLE] [--out DIR]
//!   [--base-url URL]` writes the files of a release into `target/dist`: archive, wheel, packages of npm,
//!   installers, each with its checksum. The default is all of them, of a static binary that it builds.
//! - `cargo xtask bench [GROUP...] [--quick] [--no-build] [--against REV]` measures ctx beside its limits and its
//!   peers, and writes docs/benchmarks.md; with a revision, it compares this tree with it.
//! - `cargo xtask home [--sessions N] [--bytes N] [DIR]` writes a home folder with sessions of
//!   agents; the default is 500 sessions, 1 GB, in `target/home`.
//! - `cargo xtask fit [DATA]` says how many of the labelled pairs of statements the built-in weights
//!   judge right, and fits new ones.
//! - `cargo xtask ablate DATA [RULE...]` runs the bench of compactions without each rule that reads
//!   language, and says what it keeps more or less.
//! - `cargo xtask label-facts DATA [--print]` says how many facts of memory are junk, by the labels in
//!   `xtask/labels`.
//! - `cargo xtask label-sections DATA [--print]` says how many lines of ten summaries stand in the
//!   section that they belong to, by the labels in `xtask/labels`.
//! - `cargo xtask docs [DATA]` updates the program outputs in README and docs. `DATA` is a folder
//!   of recorded sessions.

mod ablate;
mod bench;
mod dist;
mod docs;
#[cfg(test)]
mod examples;
mod fit;
mod home;
mod label_facts;
mod label_sections;
mod labels;
mod plugins;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const TASKS: &str = "usage: cargo xtask plugins | dist | home | bench [GROUP...] | fit [DATA] | ablate DATA | \
                     label-facts DATA [--print] | label-sections DATA [--print] | docs [DATA]";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let task = args.next().with_context(|| TASKS)?;
    let given = match task.as_str() {
        "plugins" => return plugins::run(args),
        "bench" => return bench::run(&root(), args),
        "dist" => return dist::run(args),
        "home" => return home::run(args),
        _ => args.next(),
    };
    let folder = given.as_deref().map(Path::new);
    let data = || folder.context("the folder of recorded sessions is missing");
    match task.as_str() {
        "fit" => fit::run(&root(), folder),
        "ablate" => ablate::run(&root(), data()?, &args.collect::<Vec<_>>()),
        "label-facts" => label_facts::run(&root(), data()?, args.any(|arg| arg == "--print")),
        "label-sections" => label_sections::run(&root(), data()?, args.any(|arg| arg == "--print")),
        "docs" => docs::write(&root(), folder),
        other => bail!("unknown task '{other}': {TASKS}"),
    }
}

/// Returns the root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the transcripts in the folders of a folder, in order.
fn transcripts(data: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for folder in ["claude-code", "pi"] {
        for entry in fs::read_dir(data.join(folder)).with_context(|| data.display().to_string())? {
            let path = entry?.path();
            out.extend(Some(path).filter(|p| p.extension().is_some_and(|end| end == "jsonl")));
        }
    }
    out.sort();
    Ok(out)
}
