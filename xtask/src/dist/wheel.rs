//! The wheel: <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{ABOUT, Artifact, Entry, LICENCE, PACKAGE, Release, archive};

/// `ctxkeep` is the name that `uvx` and `pipx run` look for. It runs the binary beside it.
const SH: &str = "#!/bin/sh\nexec \"$(dirname -- \"$0\")/ctx\" \"$@\"\n";
const CMD: &str = "@\"%~dp0ctx.exe\" %*\r\n";

/// What the wheel takes of `pyproject.toml`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Project {
    requires_python: String,
    optional_dependencies: BTreeMap<String, Vec<String>>,
    entry_points: BTreeMap<String, BTreeMap<String, String>>,
}

impl Project {
    fn read(root: &Path) -> Result<Self> {
        let path = root.join("packages/python/pyproject.toml");
        let mut file: toml::Table = toml::from_str(&fs::read_to_string(path)?)?;
        let project = file.remove("project").context("no [project]")?;
        Ok(project.try_into()?)
    }

    fn entry_points(&self) -> String {
        let mut text = String::new();
        for (group, entries) in &self.entry_points {
            let _ = writeln!(text, "[{group}]");
            for (name, place) in entries {
                let _ = writeln!(text, "{name} = {place}");
            }
        }
        text
    }

    /// Returns the optional dependencies: `pip install ctxkeep[langchain]`.
    fn extras(&self) -> String {
        let mut text = String::new();
        for (name, packages) in &self.optional_dependencies {
            let _ = writeln!(text, "Provides-Extra: {name}");
            for package in packages {
                let _ = writeln!(text, "Requires-Dist: {package}; extra == \"{name}\"");
            }
        }
        text
    }
}

pub(super) fn write(release: &Release) -> Result<Vec<Artifact>> {
    let Release { version, platform, root, .. } = release;
    let project = Project::read(root)?;
    let scripts = format!("{PACKAGE}-{version}.data/scripts");
    let (launcher, text) =
        if platform.is_windows() { ("ctxkeep.cmd", CMD) } else { ("ctxkeep", SH) };
    let info = format!("{PACKAGE}-{version}.dist-info");
    let mut entries = vec![
        Entry::program(format!("{scripts}/{}", platform.program()), fs::read(&release.binary)?),
        Entry::program(format!("{scripts}/{launcher}"), text),
        Entry::file(
            format!("{info}/METADATA"),
            metadata(
                version,
                &project,
                &fs::read_to_string(root.join("packages/python/README.md"))?,
            ),
        ),
        Entry::file(format!("{info}/WHEEL"), wheel(platform.wheel)),
        Entry::file(format!("{info}/entry_points.txt"), project.entry_points()),
    ];
    // The library for hosts in Python.
    entries
        .extend(super::files(&root.join("packages/python").join(PACKAGE), &format!("{PACKAGE}/"))?);
    let licences = format!("{info}/licenses/");
    entries.extend(release.licences(&licences)?);
    entries.push(release.notices(&licences));
    entries.push(record(&entries, &format!("{info}/RECORD")));
    let name = format!("{PACKAGE}-{version}-py3-none-{}.whl", platform.wheel.join("."));
    Ok(vec![(name, archive::zip(&entries)?)])
}

fn metadata(version: &str, project: &Project, readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {version}\nSummary: {ABOUT}\n\
         License-Expression: {LICENCE}\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         License-File: THIRD-PARTY.txt\nRequires-Python: {}\n{}\
         Description-Content-Type: text/markdown\n\n{readme}",
        project.requires_python,
        project.extras()
    )
}

fn wheel(platforms: &[&str]) -> String {
    let tags = platforms.iter().map(|platform| format!("Tag: py3-none-{platform}\n"));
    let head = "Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\n";
    std::iter::once(head.to_owned()).chain(tags).collect()
}

/// Returns the list of the files with their hashes and sizes; its own are left out.
fn record(entries: &[Entry], path: &str) -> Entry {
    let mut lines = String::new();
    for Entry { path, bytes, .. } in entries {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        let _ = writeln!(lines, "{path},sha256={hash},{}", bytes.len());
    }
    let _ = writeln!(lines, "{path},,");
    Entry::file(path, lines)
}
