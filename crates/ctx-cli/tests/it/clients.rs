//! Real clients and SDKs with the binary, as described in `tests/clients/README.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::plugins::{cargo, root};

/// The exit code of `run.sh` if a requirement is not installed.
const NOT_INSTALLED: i32 = 77;
const CTX: &str = env!("CARGO_BIN_EXE_ctx");

#[test]
fn real_clients_continue_where_they_would_fail_without_ctx() {
    let ran = Command::new(root().join("tests/clients/run.sh"))
        .arg("--ci")
        .env("CTX_BIN", CTX)
        .env("CTX_PROVIDER", provider())
        .output()
        .expect("bash is there");
    let said = String::from_utf8_lossy(&ran.stdout);
    if ran.status.code() == Some(NOT_INSTALLED) {
        let how = "`tests/clients/run.sh --install --ci` installs the clients";
        return ctx_testkit::skipped(&format!("{how}\n{said}"));
    }
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}\n{said}{errors}", ran.status);
}

/// Returns the provider, built beside the binary when the whole workspace is built.
fn provider() -> PathBuf {
    let built = Path::new(CTX).with_file_name("examples").join("provider");
    if !built.exists() {
        let example =
            ["--package", "ctx-testkit", "--features", "provider", "--example", "provider"];
        let status = cargo().args(["build", "--quiet"]).args(example).status();
        assert!(status.expect("cargo runs").success(), "the provider is not built");
    }
    built
}
