//! The inspector in a browser: `tests/inspector/`, if Node, Chromium and its packages are installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The path of Debian's Chromium, used unless `$CTX_CHROMIUM` is set.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Returns the folder of the packages, or what is missing.
fn packages() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let node = Command::new("node").arg("--version").stdout(Stdio::null()).status();
    if !node.is_ok_and(|status| status.success()) {
        return Err("node is missing".to_owned());
    }
    let chromium = std::env::var("CTX_CHROMIUM").unwrap_or_else(|_| CHROMIUM.to_owned());
    if !Path::new(&chromium).exists() {
        return Err(format!("{chromium} is missing; $CTX_CHROMIUM names another"));
    }
    // Beside the tested programs, or in the workspace's own target folder.
    let built = Path::new(env!("CARGO_BIN_EXE_ctx")).parent().and_then(Path::parent);
    let places = [built.map(|built| built.join("inspector")), Some(root.join("target/inspector"))];
    let holds = |place: &PathBuf| place.join("node_modules/playwright-core").is_dir();
    places.into_iter().flatten().find(holds).ok_or_else(|| {
        "the packages of tests/inspector are missing: docs/inspector.md says how to install them"
            .to_owned()
    })
}

#[test]
fn every_view_works_in_a_browser() {
    let packages = match packages() {
        Ok(packages) => packages,
        Err(missing) => return ctx_testkit::skipped(&missing),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let done = Command::new("node")
        .arg(root.join("tests/inspector/inspector.mjs"))
        .arg(env!("CARGO_BIN_EXE_ctx"))
        .arg(root.join("examples"))
        .arg(&packages)
        .arg(packages.join("shots"))
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}\n{complained}");
}
