//! Builds the engines in `plugins/`, and puts each with its manifest into a folder of its own, as
//! `CTX_ENGINE_PATH` requires.

mod build;
mod lay;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;

/// An engine in `plugins/`.
#[derive(Clone, Copy, Debug)]
struct Plugin {
    name: &'static str,
    about: &'static str,
    language: Language,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    /// A package of the workspace: a library, and a process from the same source.
    Rust,
    /// `engine.c`: a library.
    C,
    /// `engine.py`: a process.
    Python,
}

const PLUGINS: [Plugin; 5] = [
    Plugin {
        name: "c-minimal",
        about: "keeps the newest messages; plain C",
        language: Language::C,
    },
    Plugin { name: "chaos", about: "misbehaves on command", language: Language::Rust },
    Plugin {
        name: "lossless",
        about: "folds old messages into a tree of summaries",
        language: Language::Rust,
    },
    Plugin {
        name: "python-echo",
        about: "keeps the newest messages; a process in Python",
        language: Language::Python,
    },
    Plugin { name: "sliding-window", about: "keeps the newest messages", language: Language::Rust },
];

/// The arguments: which plugins to build, and how.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    release: bool,
    only: Option<String>,
    skip: Option<String>,
}

impl Wanted {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut wanted = Self::default();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--release" => wanted.release = true,
                "--only" => wanted.only = Some(args.next().context("missing NAME of --only")?),
                "--skip" => wanted.skip = Some(args.next().context("missing NAME of --skip")?),
                other => {
                    bail!("unknown argument '{other}' (known: --release, --only NAME, --skip NAME)")
                }
            }
        }
        Ok(wanted)
    }

    fn plugins(&self) -> Result<Vec<Plugin>> {
        let names = PLUGINS.map(|plugin| plugin.name);
        for name in self.only.iter().chain(&self.skip) {
            if !names.contains(&name.as_str()) {
                bail!("unknown plugin '{name}' (known: {})", names.join(", "));
            }
        }
        let is_wanted = |plugin: &Plugin| {
            self.only.as_deref().is_none_or(|only| only == plugin.name)
                && self.skip.as_deref() != Some(plugin.name)
        };
        Ok(PLUGINS.into_iter().filter(is_wanted).collect())
    }
}

/// Runs `cargo xtask plugins`.
pub(crate) fn run(args: impl Iterator<Item = String>) -> Result<()> {
    let wanted = Wanted::read(args)?;
    let plugins = wanted.plugins()?;
    let folder = target()?.join("plugins");
    for file in build::build(&plugins, wanted.release)? {
        lay::lay(&folder, &file)?;
    }
    let names: Vec<&str> = plugins.iter().map(|plugin| plugin.name).collect();
    print_folder(&folder, &names.join(", "));
    Ok(())
}

/// Returns cargo's target folder.
pub(crate) fn target() -> Result<PathBuf> {
    let manifest = crate::root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
    Ok(metadata.target_directory.into_std_path_buf())
}

/// Prints the folder. Stdout gets nothing else: `export CTX_ENGINE_PATH=$(cargo xtask plugins)`.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the output of the task")]
fn print_folder(folder: &Path, names: &str) {
    eprintln!("built {names}; set CTX_ENGINE_PATH to this folder for ctx to find them:");
    println!("{}", folder.display());
}

#[cfg(test)]
mod tests;
