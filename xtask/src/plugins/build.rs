//! Builds each plugin with the tool of its language.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{Message, TargetKind};

use super::{Language, Plugin};

/// A built engine: its file, and the data of its manifest.
#[derive(Debug)]
pub(super) struct Built {
    /// The id of the engine: the plugin's name, with `-process` for the process of a Rust plugin.
    pub(super) name: String,
    pub(super) about: String,
    pub(super) carrier: Carrier,
    /// The name of the file beside its manifest.
    pub(super) file_name: String,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Library,
    Process,
    /// A script for this interpreter, on any machine.
    Script(&'static str),
}

/// Builds all plugins; a Rust plugin becomes two files.
pub(super) fn build(plugins: &[Plugin], release: bool) -> Result<Vec<Built>> {
    let of = |language| plugins.iter().filter(move |plugin| plugin.language == language);
    // C first: a missing C compiler is reported within a second.
    let mut built = of(Language::C).map(c).collect::<Result<Vec<_>>>()?;
    built.extend(rust(&of(Language::Rust).copied().collect::<Vec<_>>(), release)?);
    for plugin in of(Language::Python) {
        let path = crate::root().join("plugins").join(plugin.name).join("engine.py");
        built.push(Built::read(plugin, Carrier::Script("python3"), &path)?);
    }
    Ok(built)
}

impl Built {
    fn read(plugin: &Plugin, carrier: Carrier, path: &PathBuf) -> Result<Self> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let is_second = plugin.language == Language::Rust && carrier == Carrier::Process;
        let name = format!("{}{}", plugin.name, if is_second { "-process" } else { "" });
        let how = if is_second { ", as a process" } else { "" };
        let file_name = match carrier {
            Carrier::Library => {
                format!("{DLL_PREFIX}{}{DLL_SUFFIX}", plugin.name.replace('-', "_"))
            }
            Carrier::Process => format!("{name}{}", std::env::consts::EXE_SUFFIX),
            Carrier::Script(_) => "engine.py".into(),
        };
        let about = format!("{}{how}", plugin.about);
        Ok(Self { name, about, carrier, file_name, bytes })
    }
}

fn rust(plugins: &[Plugin], release: bool) -> Result<Vec<Built>> {
    if plugins.is_empty() {
        return Ok(Vec::new());
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--message-format=json-render-diagnostics"]).current_dir(crate::root());
    cargo.args(release.then_some("--release"));
    for plugin in plugins {
        cargo.args(["--package", plugin.name]);
    }
    let output = cargo.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo cannot build the plugins");
    let mut built = Vec::new();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        let Message::CompilerArtifact(artifact) = message? else { continue };
        let target = artifact.target.name.replace('_', "-");
        let Some(plugin) = plugins.iter().find(|plugin| plugin.name == target) else { continue };
        if artifact.target.kind.contains(&TargetKind::CDyLib) {
            let is_library = |path: &&cargo_metadata::camino::Utf8PathBuf| {
                DLL_SUFFIX.ends_with(path.extension().unwrap_or("?"))
            };
            let path = artifact.filenames.iter().find(is_library).context("missing library")?;
            built.push(Built::read(plugin, Carrier::Library, &path.clone().into())?);
        } else if let Some(path) = artifact.executable {
            built.push(Built::read(plugin, Carrier::Process, &path.into())?);
        }
    }
    ensure!(built.len() == 2 * plugins.len(), "missing files of plugins in cargo's output");
    Ok(built)
}

fn c(plugin: &Plugin) -> Result<Built> {
    let root = crate::root();
    let room = tempfile::tempdir()?;
    let library = room.path().join("library");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(&compiler)
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"])
        .arg("-I")
        .arg(root.join("crates/ctx-engine-sdk/include"))
        .arg(root.join("plugins").join(plugin.name).join("engine.c"))
        .arg("-o")
        .arg(&library)
        .status();
    match status {
        Ok(status) if status.success() => Built::read(plugin, Carrier::Library, &library),
        Ok(_) => bail!("the C compiler cannot build {}", plugin.name),
        Err(e) => Err(e).context(format!(
            "cannot run the C compiler '{}', which builds {name}: install it, set CC to another \
             one, or use --skip {name}",
            compiler.display(),
            name = plugin.name,
        )),
    }
}
