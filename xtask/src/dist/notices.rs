//! The notices of the crates that the binary is made of, with the texts of their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

const HEAD: &str = "\
ctx is made of the crates below, and has the standard library of Rust (MIT OR Apache-2.0). The static
binary for Linux has musl (MIT), that for Windows has libgcc (GPL-3.0-or-later WITH GCC-exception-3.1) and
MinGW-w64 (ZPL-2.1, MIT). The texts of licences follow the list, those of equal wording once.
";

/// Returns the text of `THIRD-PARTY.txt` for a target of rustc.
pub(super) fn notices(target: &str) -> Result<String> {
    let metadata = MetadataCommand::new()
        .manifest_path(crate::root().join("Cargo.toml"))
        .other_options(["--locked", "--filter-platform", target].map(str::to_owned))
        .exec()?;
    let (mut out, mut texts) = (format!("{HEAD}\n"), BTreeMap::<_, Vec<_>>::new());
    for package in packages(&metadata)? {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("licence below");
        writeln!(out, "{name}: {licence}; {}", package.authors.join(", "))?;
        for text in licences(package)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, names) in texts {
        write!(out, "\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", "))?;
    }
    Ok(out)
}

/// Returns the crates from elsewhere that `ctx-cli` needs, in order. Those that only its build needs are
/// among them: some put data into the binary.
fn packages(metadata: &Metadata) -> Result<Vec<&Package>> {
    let nodes = &metadata.resolve.as_ref().context("cargo metadata resolves nothing")?.nodes;
    let nodes: BTreeMap<_, _> = nodes.iter().map(|node| (&node.id, node)).collect();
    let cli = metadata.packages.iter().find(|package| package.name == "ctx-cli");
    let mut open = vec![&cli.context("ctx-cli is not in the workspace")?.id];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let deps = nodes[id].deps.iter();
            let needed = deps.filter(|dep| {
                dep.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
            });
            open.extend(needed.map(|dep| &dep.pkg));
        }
    }
    let packages = seen.into_iter().map(|id| &metadata[id]);
    let mut packages: Vec<_> = packages.filter(|package| package.source.is_some()).collect();
    packages.sort_by_key(|package| (&package.name, &package.version));
    Ok(packages)
}

/// Returns the texts of licences and notices in the folder of a crate.
fn licences(package: &Package) -> Result<BTreeSet<String>> {
    let folder = package.manifest_path.parent().context("a manifest without a folder")?;
    let mut texts = BTreeSet::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_notice = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|n| name.starts_with(n));
        if is_notice && path.is_file() {
            let text = String::from_utf8_lossy(&fs::read(&path)?).replace("\r\n", "\n");
            texts.insert(text.trim_end().to_owned());
        }
    }
    Ok(texts)
}
