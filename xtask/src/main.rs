//! Chores of the workspace. `cargo run -p xtask -- sample` writes the sessions in `examples/`.

mod sample;

use std::path::Path;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("sample") => write_samples(),
        Some(other) => bail!("unknown chore '{other}' (known: sample)"),
        None => bail!("usage: cargo run -p xtask -- sample"),
    }
}

fn write_samples() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
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
