//! Measures ctx beside its limits and its peers, and writes docs/benchmarks.md.

mod against;
mod chart;
mod figures;
mod page;

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::dist;
use figures::{Figure, Figures, Run};

/// Where the figures are kept from which the page is made.
const FIGURES: &str = "docs/benchmarks.json";

/// The groups that run `ctx` as a process; for the others it is not built.
const RUN_CTX: [&str; 3] = ["session", "eval", "proxy"];

/// What is measured, and how.
struct Asked {
    /// The groups; all of them if it is empty.
    groups: Vec<String>,
    is_quick: bool,
    /// Whether the programs are built first.
    builds: bool,
    /// The revision to compare with.
    against: Option<String>,
}

impl Asked {
    fn of(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut asked = Self { groups: Vec::new(), is_quick: false, builds: true, against: None };
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => asked.is_quick = true,
                "--no-build" => asked.builds = false,
                "--against" => {
                    asked.against = Some(args.next().context("--against needs a revision")?);
                }
                flag if flag.starts_with('-') => {
                    bail!(
                        "unknown flag {flag}: usage: cargo xtask bench [GROUP...] [--quick] [--no-build] [--against REV]"
                    )
                }
                _ => asked.groups.push(arg),
            }
        }
        Ok(asked)
    }

    fn runs_ctx(&self) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| RUN_CTX.contains(&group.as_str()))
    }
}

/// The programs of one revision.
struct Programs {
    ctx: PathBuf,
    limits: PathBuf,
}

impl Programs {
    /// Builds the program that measures and, if it is asked for, `ctx` as a release has it.
    fn build(root: &Path, target: &Path, asked: &Asked) -> Result<Self> {
        if asked.runs_ctx() {
            dist::static_binary(root, target)?;
        }
        let built = Command::new(env!("CARGO"))
            .args(["build", "--profile", "dist", "--locked", "-p", "ctx-limits"])
            .env("CARGO_TARGET_DIR", target)
            // With names, so that a profiler can be attached.
            .env("CARGO_PROFILE_DIST_STRIP", "none")
            .current_dir(root)
            .status()?;
        ensure!(built.success(), "cannot build the programs in {}", root.display());
        Ok(Self::in_folder(target))
    }

    /// Returns the programs as they were built before.
    fn in_folder(target: &Path) -> Self {
        let ctx = target.join("x86_64-unknown-linux-musl/dist/ctx");
        Self { ctx, limits: target.join("dist/ctx-limits") }
    }

    /// Measures the groups, and passes on each figure as soon as it is known.
    fn measure(
        &self,
        root: &Path,
        asked: &Asked,
        mut each: impl FnMut(Figure) -> Result<()>,
    ) -> Result<()> {
        let mut child = Command::new(&self.limits)
            .args(&asked.groups)
            .args(asked.is_quick.then_some("--quick"))
            .env("CTX_BIN", &self.ctx)
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| self.limits.display().to_string())?;
        let output = child.stdout.take().context("the output is piped")?;
        for line in BufReader::new(output).lines() {
            let line = line?;
            each(serde_json::from_str(&line).with_context(|| line.clone())?)?;
        }
        ensure!(child.wait()?.success(), "the measurement failed; its error is above");
        Ok(())
    }
}

pub(crate) fn run(root: &Path, args: impl Iterator<Item = String>) -> Result<()> {
    let asked = Asked::of(args)?;
    install_peers(root);
    let target = root.join("target");
    let programs = match asked.builds {
        true => Programs::build(root, &target, &asked)?,
        false => Programs::in_folder(&target),
    };
    if let Some(revision) = &asked.against {
        return against::run(root, &asked, &programs, revision);
    }
    let run = Run::now(root)?;
    let mut figures = Figures::read(&root.join(FIGURES))?;
    programs.measure(root, &asked, |figure| {
        say(&page::line(&figure));
        // A quick run only shows that everything works.
        if asked.is_quick {
            return Ok(());
        }
        // Large measurements take an hour: what is known is kept if a later one fails.
        figures.add(&run, figure);
        figures.write(&root.join(FIGURES))
    })?;
    if asked.is_quick { Ok(()) } else { page::write(root, &figures) }
}

/// Says how far the work is.
fn say(line: &str) {
    // A closed pipe is not an error.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Installs the peers that npm and pip have.
fn install_peers(root: &Path) {
    let folder = root.join("bench/peers");
    let runs = |command: &mut Command| {
        command.current_dir(&folder).status().is_ok_and(|status| status.success())
    };
    let npm = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
    if !folder.join("node_modules/.bin/node").exists() && !runs(Command::new("npm").args(npm)) {
        say("warning: npm cannot install pi: its figures are left out");
    }
    let venv = root.join("target/peers-venv");
    let pip = ["install", "--quiet", "--requirement", "requirements.txt"];
    let is_installed = venv.join("bin/litellm").exists()
        || runs(Command::new("python3").args(["-m", "venv"]).arg(&venv))
            && runs(Command::new(venv.join("bin/pip")).args(pip));
    if !is_installed {
        say(
            "warning: pip cannot install LangChain, LiteLLM and lean-ctx: their figures are left out",
        );
    }
}
