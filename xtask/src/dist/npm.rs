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

    // The library for hosts in JavaScript, and a launcher of the binary.
    let source = release.root.join("packages/node");
    let launcher = fs::read(release.root.join("install/ctx.cjs"))?;
    let versions = PLATFORMS.iter().map(|platform| (package(platform), json!(version)));
    let mut fields: Map<String, Value> =
        serde_json::from_slice(&fs::read(source.join("package.json"))?)?;
    fields.remove("scripts");
    fields.extend([
        ("description".to_owned(), json!(ABOUT)),
        ("version".to_owned(), json!(version)),
        ("bin".to_owned(), json!({ "ctx": "ctx.cjs", PACKAGE: "ctx.cjs" })),
        ("optionalDependencies".to_owned(), Value::Object(versions.collect())),
    ]);
    let mut files = vec![Entry::program("package/ctx.cjs", launcher)];
    for folder in ["src", "adapters", "integrations", "integrations/openclaw"] {
        files.extend(super::files(&source.join(folder), &format!("package/{folder}/"))?);
    }
    let plugin = "openclaw.plugin.json";
    files.push(Entry::file(format!("package/{plugin}"), fs::read(source.join(plugin))?));
    let main = pack(release, PACKAGE, Value::Object(fields), files)?;
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
