//! The packages of npm: one with the binary of a platform, and one that depends on those of all
//! platforms, of which npm installs the one that fits. Neither has an install script.

use std::fs;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{ABOUT, Artifact, Entry, LICENCE, PACKAGE, PLATFORMS, Platform, Release, archive};

pub(super) fn write(release: &Release) -> Result<Vec<Artifact>> {
    let Release { version, platform, .. } = release;
    let (os, cpu) = platform.npm;
    let name = |package: &str| format!("{package}-{version}.tgz");
    let program = format!("bin/{}", platform.program());
    let binary = Entry::program(format!("package/{program}"), fs::read(&release.binary)?);
    let description = format!("The binary of {PACKAGE} for {os} {cpu}.");
    let fields = json!({ "description": description, "os": [os], "cpu": [cpu] });
    let files = vec![binary, release.notices("package/")];
    let of_platform = pack(release, &package(platform), fields, files)?;

    let launcher = fs::read(release.root.join("install/ctx.js"))?;
    let versions = PLATFORMS.iter().map(|platform| (package(platform), json!(version)));
    let fields = json!({
        "description": ABOUT,
        "bin": { "ctx": "ctx.js", PACKAGE: "ctx.js" },
        "engines": { "node": ">=16" },
        "optionalDependencies": versions.collect::<Map<_, _>>(),
    });
    let files = vec![Entry::program("package/ctx.js", launcher)];
    let main = pack(release, PACKAGE, fields, files)?;
    Ok(vec![(name(PACKAGE), main), (name(&format!("{PACKAGE}-{os}-{cpu}")), of_platform)])
}

fn package(platform: &Platform) -> String {
    format!("@{PACKAGE}/{}-{}", platform.npm.0, platform.npm.1)
}

/// Returns a package: its `package.json`, licences, README.md and files.
fn pack(release: &Release, name: &str, fields: Value, files: Vec<Entry>) -> Result<Vec<u8>> {
    let mut manifest = json!({ "name": name, "version": release.version, "license": LICENCE });
    if let (Some(manifest), Value::Object(fields)) = (manifest.as_object_mut(), fields) {
        manifest.extend(fields);
    }
    let manifest = serde_json::to_vec_pretty(&manifest)?;
    let mut entries = files;
    entries.push(Entry::file("package/package.json", manifest));
    entries.extend(release.licences("package/")?);
    entries.push(Entry::file("package/README.md", fs::read(release.root.join("README.md"))?));
    archive::tar_gz(entries)
}
