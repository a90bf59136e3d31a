//! The plugins of this workspace, built once per run. The tests of ctx-cli include this file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns their folder, a value for `CTX_ENGINE_PATH`. Each plugin has a subfolder.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut command = cargo();
        command.args(["run", "--quiet", "--package", "xtask", "--", "plugins"]);
        if !has("cc") {
            command.args(["--skip", "c-minimal"]);
        }
        let output = command.stderr(Stdio::inherit()).output().expect("cargo runs");
        assert!(output.status.success(), "the plugins are not built");
        let path = String::from_utf8(output.stdout).expect("a path in UTF-8");
        PathBuf::from(path.trim_end())
    })
}

/// Returns a cargo command in the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Returns the root of the workspace.
pub(crate) fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .find(|folder| folder.join("Cargo.lock").exists())
        .expect("the workspace has a lock file")
}

/// Whether a program that a test needs is installed. In CI, panics if it is missing.
pub(crate) fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        ctx_testkit::skipped(&format!("{program} is missing"));
    }
    is_there
}
