//! Builds the binary. Static ones are linked with zig, which brings a C++ compiler for musl.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Platform;

/// What the binary leaves out of SQLite.
const SQLITE_FLAGS: &str = "-USQLITE_ENABLE_FTS3 -USQLITE_ENABLE_FTS3_PARENTHESIS -USQLITE_ENABLE_RTREE \
                            -USQLITE_ENABLE_DBSTAT_VTAB -USQLITE_ENABLE_STAT4 -USQLITE_SOUNDEX \
                            -DSQLITE_OMIT_SHARED_CACHE -DSQLITE_OMIT_DEPRECATED -DSQLITE_OMIT_TRACE \
                            -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_COMPILEOPTION_DIAGS \
                            -DSQLITE_OMIT_AUTHORIZATION -DSQLITE_OMIT_INTEGRITY_CHECK \
                            -DSQLITE_OMIT_GET_TABLE -DSQLITE_OMIT_COMPLETE -DSQLITE_OMIT_PROGRESS_CALLBACK";

const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.13.0"];
/// Maximum size of the binary for Linux, in bytes.
const MAX_SIZE: u64 = 25 << 20;

/// Builds the binary of the workspace in `root`.
pub(super) fn build(platform: &Platform, root: &Path, target: &Path) -> Result<PathBuf> {
    let is_static = platform.target.ends_with("-musl");
    run(Command::new("rustup").args(["target", "add", platform.target]))?;
    let mut command = if is_static {
        let tools = tools(&target.join("dist-tools"))?;
        let mut command = Command::new(tools.join("cargo-zigbuild"));
        command.arg("zigbuild").env("PATH", first_in_path(&tools)?);
        command.env("LIBSQLITE3_FLAGS", SQLITE_FLAGS);
        // No panic passes through C.
        let no_tables = "-fno-asynchronous-unwind-tables -fno-unwind-tables";
        command.env("CFLAGS_x86_64_unknown_linux_musl", no_tables);
        command
    } else {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg("build");
        if platform.is_windows() && !cfg!(windows) {
            with_mingw(&mut command, &target.join("windows"))?;
        }
        command
    };
    command.args(["--profile", "dist", "--locked", "--package", "ctx-cli", "--bin", "ctx"]);
    command.args(["--target", platform.target]).arg("--target-dir").arg(target);
    run(command.current_dir(root))?;
    let binary = target.join(platform.target).join("dist").join(platform.program());
    let size = binary.metadata().with_context(|| binary.display().to_string())?.len();
    if is_static && size > MAX_SIZE {
        bail!("{} has {size} bytes, more than {MAX_SIZE}", binary.display());
    }
    Ok(binary)
}

/// Lets cargo build for Windows elsewhere. MinGW has the header windows.h, and std::mutex only with POSIX
/// threads. The linker prefers a library in the folder to a DLL, which users do not have.
fn with_mingw(command: &mut Command, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("Windows.h"), "#include <windows.h>\n")?;
    let cxx = "x86_64-w64-mingw32-g++-posix";
    let found = Command::new(cxx).arg("-print-file-name=libstdc++.a").output();
    let library = String::from_utf8(found.with_context(|| format!("cannot run {cxx}"))?.stdout)?;
    fs::copy(library.trim(), folder.join("libstdc++.a")).context(library)?;
    command
        .env("CXX_x86_64_pc_windows_gnu", cxx)
        .env("CXXFLAGS_x86_64_pc_windows_gnu", format!("-I{}", folder.display()))
        .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", "x86_64-w64-mingw32-gcc-posix")
        .env(
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS",
            format!("-Lnative={}", folder.display()),
        );
    Ok(())
}

/// Installs the tools into a folder, if they are not there. Returns the folder of their programs.
fn tools(folder: &Path) -> Result<PathBuf> {
    let bin = folder.join("bin");
    if !bin.join("cargo-zigbuild").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        run(Command::new(bin.join("pip")).args(["install", "--quiet"]).args(TOOLS))?;
    }
    Ok(bin)
}

/// Returns `PATH` with a folder before all others.
fn first_in_path(folder: &Path) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(folders)?)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
