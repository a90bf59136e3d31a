//! Engines built as a third party would build them: outside the workspace, with the packaged crate.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ctx_engine_registry::Trust;
use ctx_testkit::conformance::{Level, Options, Plugin, check};

use crate::memory;
use crate::plugins::{cargo, root};

/// Returns the target folder. All builds share it, and runs keep it, so that dependencies are
/// compiled once.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("strangers")
}

/// Returns an empty folder for a package. Its path is the same in every run, because cargo keeps
/// the files built from each path.
fn folder_for(name: &str) -> PathBuf {
    let folder = target().join("packages").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the package of the last run can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn run(command: &mut Command, what: &str) {
    let _guard = memory::filled();
    let status = command.env("CARGO_TARGET_DIR", target()).status();
    assert!(status.expect("the command runs").success(), "{what}");
}

/// A package built outside the workspace.
pub(crate) struct Built {
    pub(crate) library: PathBuf,
    pub(crate) program: PathBuf,
}

/// Builds the package `name` from files: paths with texts.
pub(crate) fn build(name: &str, files: &[(PathBuf, String)]) -> Built {
    let folder = folder_for(name);
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    // Its dependencies were fetched for this workspace, in the versions of the lock file.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("a lock file");
    let mut cargo = cargo();
    cargo.args(["build", "--quiet", "--offline"]).current_dir(&folder);
    run(&mut cargo, &format!("{name} is not built"));
    let debug = target().join("debug");
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    Built {
        library: debug.join(format!("{prefix}{}{suffix}", name.replace('-', "_"))),
        program: debug.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)),
    }
}

/// Packages ctx-engine-sdk as for the registry, and returns the unpacked folder.
fn packaged_sdk() -> PathBuf {
    let mut package = cargo();
    package.args(["package", "--package", "ctx-engine-sdk", "--quiet"]);
    package.args(["--allow-dirty", "--no-verify", "--offline"]);
    run(&mut package, "the crate is not packaged");
    let name = concat!("ctx-engine-sdk-", env!("CARGO_PKG_VERSION"));
    let packed = target().join("package").join(format!("{name}.crate"));
    let folder = folder_for("sdk");
    // `-m` sets new times, because cargo treats files with old times as unchanged.
    run(Command::new("tar").arg("-xzmf").arg(packed).arg("-C").arg(&folder), "tar fails");
    folder.join(name)
}

/// Returns the manifest of a plugin without workspace inheritance and dev-dependencies.
fn standalone(manifest: &str, sdk: &Path) -> String {
    let values = HashMap::from([
        ("version", r#""0.1.0""#.to_owned()),
        ("edition", r#""2024""#.to_owned()),
        ("ctx-engine-sdk", format!("{{ path = {:?} }}", sdk.display().to_string())),
    ]);
    let (manifest, _) = manifest.split_once("[dev-dependencies]").expect("dev-dependencies");
    let lines = manifest.lines().filter_map(|line| match line.strip_suffix(".workspace = true") {
        Some(key) => Some(format!("{key} = {}", values.get(key)?)),
        None => Some(line.to_owned()),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_sliding_window_builds_with_the_packaged_crate() {
    let sdk = packaged_sdk();
    let plugin = root().join("plugins/sliding-window");
    let read = |path: &str| fs::read_to_string(plugin.join(path)).expect("a file of the plugin");
    let manifest = standalone(&read("Cargo.toml"), &sdk);
    assert!(!manifest.contains("workspace"), "{manifest}");
    let files = ["src/lib.rs", "src/main.rs"].map(|path| (path.into(), read(path)));
    let built = build("sliding-window", &[&[("Cargo.toml".into(), manifest)], &files[..]].concat());
    for (file, trust) in [(&built.library, Trust::InProcess), (&built.program, Trust::Process)] {
        let plugin = Plugin::read(file, None).expect("an engine").with_trust(trust);
        assert_eq!(plugin.id(), "sliding-window");
        let _guard = memory::measured();
        let report = check(move |start| plugin.start(start), &Options::new(Level::Core));
        assert!(report.is_passed(), "{}\n{report}", file.display());
    }
}
