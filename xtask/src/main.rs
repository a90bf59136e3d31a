//! Chores of the workspace.
//!
//! - `cargo xtask sample` writes the sessions in `examples/`.
//! - `cargo xtask plugins [--release] [--only NAME] [--skip NAME]` builds the engines in `plugins/`,
//!   lays each with its manifest into `target/plugins/NAME/`, and prints that folder.
//! - `cargo xtask home [--sessions N] [--bytes N] [DIR]` writes a home folder with sessions of agents; the
//!   default is 500 sessions, 1 GB, in `target/home`.
//! - `cargo xtask docs [DATA]` prints the outputs in README and docs anew.

mod docs;
mod home;
mod plugins;
mod sample;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("sample") => write_samples(),
        Some("plugins") => plugins::run(args),
        Some("home") => home::run(args),
        Some("docs") => docs::write(&root(), args.next().as_deref().map(Path::new)),
        Some(other) => bail!("unknown chore '{other}' (known: sample, plugins, home, docs)"),
        None => bail!("usage: cargo xtask sample | plugins | home | docs [DATA]"),
    }
}

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn write_samples() -> Result<()> {
    for (path, text) in sample::files()? {
        let target = root().join(path);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {path}'s folder"))?;
        }
        std::fs::write(&target, text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}
