use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::path::Path;

use super::*;

fn release(folder: &Path) -> Release {
    let binary = folder.join("ctx");
    fs::write(&binary, "binary").unwrap();
    let platform = &PLATFORMS[0];
    let (base_url, notices) = (String::new(), "notices".to_owned());
    Release { version: "1.2.3", platform, binary, base_url, root: crate::root(), notices }
}

#[test]
fn an_archive_does_not_depend_on_the_order_of_its_entries() {
    let entries = || vec![Entry::file("a", "1"), Entry::program("b/c", "2")];
    let reversed = entries().into_iter().rev().collect();
    let packed = archive::tar_gz(entries()).unwrap();
    assert_eq!(packed, archive::tar_gz(reversed).unwrap());
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
    let headers = tar.entries().unwrap().map(|entry| entry.unwrap().header().clone());
    let modes: Vec<_> = headers.map(|h| (h.mode().unwrap(), h.mtime().unwrap())).collect();
    assert_eq!(modes, [(0o644, 0), (0o755, 0)]);
}

#[test]
fn a_wheel_lists_each_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let [(name, bytes)] = &wheel::write(&release(folder.path())).unwrap()[..] else { panic!() };
    assert_eq!(name, "ctxkeep-1.2.3-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl");
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let files: BTreeSet<_> = zip.file_names().map(str::to_owned).collect();
    let mut record = String::new();
    zip.by_name("ctxkeep-1.2.3.dist-info/RECORD").unwrap().read_to_string(&mut record).unwrap();
    let listed = record.lines().map(|line| line.split(',').next().unwrap().to_owned());
    assert_eq!(files, listed.collect());
    let hash = "sha256=mjpF0BUxog6JrGrhCwsL6wSSrNchajaKoGLRpf7K-c0";
    let binary = record.lines().find(|line| line.contains("/scripts/ctx,")).unwrap();
    assert!(binary.ends_with(&format!("{hash},6")), "{binary}");
    let mut metadata = String::new();
    let path = "ctxkeep-1.2.3.dist-info/METADATA";
    zip.by_name(path).unwrap().read_to_string(&mut metadata).unwrap();
    assert!(
        metadata.contains("\nProvides-Extra: langchain\nRequires-Dist: langchain>="),
        "{metadata}"
    );
}

#[test]
fn the_packages_have_the_version_of_the_workspace() {
    let version = env!("CARGO_PKG_VERSION");
    let python = fs::read_to_string(crate::root().join("packages/python/pyproject.toml")).unwrap();
    let python: toml::Table = toml::from_str(&python).unwrap();
    assert_eq!(python["project"]["version"].as_str(), Some(version));
    let node = fs::read_to_string(crate::root().join("packages/node/package.json")).unwrap();
    let node: serde_json::Value = serde_json::from_str(&node).unwrap();
    assert_eq!(node["version"], version);
}

#[test]
fn the_package_of_npm_depends_on_one_of_each_platform() {
    let folder = tempfile::tempdir().unwrap();
    let written = npm::write(&release(folder.path())).unwrap();
    let names: Vec<_> = written.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ctxkeep-1.2.3.tgz", "ctxkeep-linux-x64-1.2.3.tgz"]);
    let manifest = |bytes: &[u8]| -> serde_json::Value {
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        let mut entries = tar.entries().unwrap().map(Result::unwrap);
        let file = entries.find(|e| e.path().unwrap().ends_with("package.json")).unwrap();
        serde_json::from_reader(file).unwrap()
    };
    let (main, part) = (manifest(&written[0].1), manifest(&written[1].1));
    assert_eq!(main["optionalDependencies"].as_object().unwrap().len(), PLATFORMS.len());
    assert_eq!(main["optionalDependencies"][part["name"].as_str().unwrap()], part["version"]);
    assert!(main["scripts"].is_null() && part["scripts"].is_null());
    assert_eq!((&part["os"][0], &part["cpu"][0]), (&"linux".into(), &"x64".into()));
}
