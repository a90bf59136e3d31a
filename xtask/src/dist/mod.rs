//! Writes the files of a release. The same binary gives the same bytes.

mod archive;
mod build;
mod notices;
mod npm;
mod tarball;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

const ABOUT: &str = "Keeps long-running LLM agents inside their model's context window.";
const LICENCE: &str = "MIT OR Apache-2.0";
/// The name of the package in the registries of Python and npm.
const PACKAGE: &str = "ctxkeep";

/// A system that releases are built for.
#[derive(Debug)]
struct Platform {
    /// The target of rustc.
    target: &'static str,
    /// The platforms of a wheel that the binary runs on, as pip names them.
    wheel: &'static [&'static str],
    /// The values of `process.platform` and `process.arch` in Node.
    npm: (&'static str, &'static str),
}

const PLATFORMS: [Platform; 5] = [
    Platform {
        target: "x86_64-unknown-linux-musl",
        wheel: &["manylinux2014_x86_64", "musllinux_1_1_x86_64"],
        npm: ("linux", "x64"),
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        wheel: &["manylinux2014_aarch64", "musllinux_1_1_aarch64"],
        npm: ("linux", "arm64"),
    },
    Platform {
        target: "x86_64-apple-darwin",
        wheel: &["macosx_10_12_x86_64"],
        npm: ("darwin", "x64"),
    },
    Platform {
        target: "aarch64-apple-darwin",
        wheel: &["macosx_11_0_arm64"],
        npm: ("darwin", "arm64"),
    },
    Platform { target: "x86_64-pc-windows-gnu", wheel: &["win_amd64"], npm: ("win32", "x64") },
];

impl Platform {
    fn is_windows(&self) -> bool {
        self.npm.0 == "win32"
    }

    /// The name of the binary.
    fn program(&self) -> &'static str {
        if self.is_windows() { "ctx.exe" } else { "ctx" }
    }
}

/// What the files are made of.
#[derive(Debug)]
struct Release {
    version: &'static str,
    platform: &'static Platform,
    binary: PathBuf,
    /// The folder that the installers download from; empty if the user has to name it.
    base_url: String,
    root: PathBuf,
    /// The licences of the crates in the binary.
    notices: String,
}

impl Release {
    /// Returns the licences of ctx, with a prefix before their names.
    fn licences(&self, prefix: &str) -> Result<Vec<Entry>> {
        let read =
            |file| Ok(Entry::file(format!("{prefix}{file}"), fs::read(self.root.join(file))?));
        ["LICENSE-APACHE", "LICENSE-MIT"].into_iter().map(read).collect()
    }

    fn notices(&self, prefix: &str) -> Entry {
        Entry::file(format!("{prefix}THIRD-PARTY.txt"), self.notices.as_str())
    }
}

/// A file of an archive.
#[derive(Debug)]
struct Entry {
    path: String,
    bytes: Vec<u8>,
    is_executable: bool,
}

impl Entry {
    fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), is_executable: false }
    }

    fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { is_executable: true, ..Self::file(path, bytes) }
    }
}

/// Builds the static binary for Linux of the workspace in `root`.
pub(crate) fn static_binary(root: &Path, target: &Path) -> Result<PathBuf> {
    build::build(&PLATFORMS[0], root, target)
}

/// Returns the files of a folder, by name, with a prefix before their names.
fn files(folder: &Path, prefix: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let file = file?;
        if file.file_type()?.is_file() {
            let name = file.file_name().to_string_lossy().into_owned();
            entries.push(Entry::file(format!("{prefix}{name}"), fs::read(file.path())?));
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// A file of a release: its name, and its bytes.
type Artifact = (String, Vec<u8>);
type Write = fn(&Release) -> Result<Vec<Artifact>>;

const KINDS: [(&str, Write); 3] =
    [("--tar", tarball::write), ("--wheel", wheel::write), ("--npm", npm::write)];

const USAGE: &str = "usage: cargo xtask dist [--tar] [--wheel] [--npm] [--all] [--binary FILE] \
                     [--target TRIPLE] [--out DIR] [--base-url URL]";

/// Runs `cargo xtask dist`.
pub(crate) fn run(mut args: impl Iterator<Item = String>) -> Result<()> {
    let (mut kinds, mut platform) = (Vec::new(), &PLATFORMS[0]);
    let (mut binary, mut out, mut base_url) = (None, None, String::new());
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("missing value of {arg}: {USAGE}"));
        match arg.as_str() {
            "--all" => kinds.extend(KINDS),
            "--binary" => binary = Some(PathBuf::from(value()?)),
            "--out" => out = Some(PathBuf::from(value()?)),
            "--base-url" => base_url = value()?,
            "--target" => platform = known(&value()?)?,
            other => match KINDS.iter().find(|(flag, _)| *flag == other) {
                Some(kind) => kinds.push(*kind),
                None => bail!("unknown argument '{other}': {USAGE}"),
            },
        }
    }
    if kinds.is_empty() {
        kinds.extend(KINDS);
    }
    let target = crate::plugins::target()?;
    let binary = match binary {
        Some(file) => file.canonicalize().with_context(|| file.display().to_string())?,
        None => build::build(platform, &crate::root(), &target)?,
    };
    let version = env!("CARGO_PKG_VERSION");
    let notices = notices::notices(platform.target)?;
    let release = Release { version, platform, binary, base_url, root: crate::root(), notices };
    let out = out.unwrap_or_else(|| target.join("dist"));
    fs::create_dir_all(&out)?;
    for (_, write) in kinds {
        for (name, bytes) in write(&release)? {
            put(&out, &name, &bytes)?;
        }
    }
    Ok(())
}

fn known(target: &str) -> Result<&'static Platform> {
    PLATFORMS.iter().find(|platform| platform.target == target).with_context(|| {
        let known = PLATFORMS.each_ref().map(|platform| platform.target);
        format!("unknown target '{target}' (known: {})", known.join(", "))
    })
}

/// Writes a file and, as `sha256sum` does, its checksum beside it. Prints its path.
#[expect(clippy::print_stdout, reason = "the output of the task")]
fn put(out: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = out.join(name);
    fs::write(&path, bytes).with_context(|| path.display().to_string())?;
    fs::write(
        out.join(format!("{name}.sha256")),
        format!("{:x}  {name}\n", Sha256::digest(bytes)),
    )?;
    println!("{} ({:.1} MiB)", path.display(), bytes.len() as f64 / f64::from(1 << 20));
    Ok(())
}

#[cfg(test)]
mod tests;
