//! Chores of the workspace: `cargo xtask sample` writes the sessions in `examples/`, `cargo xtask docs
//! [DATA]` prints the outputs in README and docs anew.

mod docs;
mod sample;

use std::path::Path;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sample"] => write_samples(&root),
        ["docs"] => docs::write(&root, None),
        ["docs", data] => docs::write(&root, Some(Path::new(data))),
        [] => bail!("usage: cargo xtask sample | docs [DATA]"),
        _ => bail!("unknown chore '{}' (known: sample, docs)", args.join(" ")),
    }
}

fn write_samples(root: &Path) -> Result<()> {
    for (path, text) in sample::files() {
        let target = root.join(path);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {path}'s folder"))?;
        }
        std::fs::write(&target, text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}
