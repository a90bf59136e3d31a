//! Measures ctx beside its limits and its peers, in the same run.
//!
//! `ctx-limits [GROUP...] [--quick]` prints each figure as one line of JSON; without a group it measures
//! all. Run it in the root of the workspace. `cargo xtask bench` builds it as what is shipped is built, and
//! makes docs/benchmarks.md of what it prints. `$CTX_BIN` names the `ctx` that is run as a process, and
//! `$CTX_DATA` the folder of recorded sessions; without it, those in `examples/` are repeated.

mod build;
mod engine;
mod eval;
mod figure;
mod memory;
mod process;
mod proxy;
mod requests;
mod scale;
mod session;

use std::io::{Write, stderr, stdout};

use anyhow::{Context, Result, bail};

use figure::Figure;

/// How thoroughly is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Fewer rounds and smaller inputs: to see that everything works.
    is_quick: bool,
}

impl Effort {
    /// Whether what takes many minutes is measured too: `CTX_LIMITS_LARGE=1`.
    pub(crate) fn is_large(self) -> bool {
        let is_set = || std::env::var_os("CTX_LIMITS_LARGE").is_some_and(|value| value == "1");
        !self.is_quick && is_set()
    }

    pub(crate) fn rounds(self, rounds: usize) -> usize {
        if self.is_quick { 1 } else { rounds }
    }
}

/// Measures a group of figures, and passes on each as soon as it is known.
type Group = fn(Effort, &mut dyn FnMut(Figure)) -> Result<()>;

const GROUPS: [(&str, Group); 8] = [
    ("session", session::measure),
    ("memory", memory::measure),
    ("requests", requests::measure),
    ("eval", eval::measure),
    ("scale", scale::measure),
    ("proxy", proxy::measure),
    ("engine", engine::measure),
    ("build", build::measure),
];

/// That of the binary that is shipped for Linux.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    if first.as_ref().is_some_and(|arg| arg == "--scan") {
        let file = args.next().context("--scan FILE")?;
        // The result is used, or the scan would not be made.
        std::process::exit(i32::from(session::scan(file.as_ref())? == 0));
    }
    if first.as_ref().is_some_and(|arg| arg == "--relay") {
        let upstream = args.next().context("--relay ADDRESS")?;
        return proxy::relay(&upstream.to_string_lossy());
    }
    if first.is_some_and(|arg| arg == "--memory-child") {
        let folder = args.next().context("--memory-child FOLDER WITH")?;
        return memory::child(folder.as_ref(), &args.next().unwrap_or_default().to_string_lossy());
    }
    let (flags, names): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let effort = Effort { is_quick: flags.iter().any(|flag| flag == "--quick") };
    if let Some(flag) = flags.iter().find(|flag| *flag != "--quick") {
        bail!("unknown flag {flag}: usage: ctx-limits [GROUP...] [--quick]");
    }
    let known = GROUPS.map(|(name, _)| name);
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("unknown group {name}: the groups are {}", known.join(", "));
    }
    for (name, measure) in GROUPS {
        if !names.is_empty() && !names.iter().any(|selected| selected == name) {
            continue;
        }
        let mut print = |figure: Figure| {
            let line = serde_json::to_string(&Figure { group: name, ..figure }).unwrap_or_default();
            // A reader that left is not an error of the measurement.
            let _ = writeln!(stdout(), "{line}");
        };
        let _ = writeln!(stderr(), "measuring {name}");
        measure(effort, &mut print).with_context(|| format!("cannot measure {name}"))?;
    }
    Ok(())
}
