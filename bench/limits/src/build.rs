//! Building: what a change of the innermost crate costs.

use std::fs::File;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::figure::{Figure, Goal, quantile};
use crate::{Effort, process};

/// Every other crate depends on it.
const CHANGED: &str = "crates/ctx-core/src/lib.rs";

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let root = process::root();
    let check = || {
        let mut cargo = Command::new("cargo");
        process::run(cargo.args(["check", "--workspace", "--locked"]).current_dir(&root))
    };
    // The first one checks whatever else has changed.
    check()?;
    let mut seconds = Vec::new();
    for _ in 0..effort.rounds(3) {
        // Only its time changes.
        let file = File::options().append(true).open(root.join(CHANGED)).context(CHANGED)?;
        file.set_modified(SystemTime::now())?;
        seconds.push(check()?.wall_ms / 1e3);
    }
    let what = "`cargo check --workspace` after a change of ctx-core: time";
    let figure = Figure::new("check", what, "s", quantile(&mut seconds, 0.5));
    print(figure.goal(Goal::AtMost(25.0)));
    Ok(())
}
