//! The archive: the binary, licences, manual pages and completions. The installers, which download it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Artifact, Entry, Release, archive};

/// Shells, and the names that they find completions by.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "ctx.bash"),
    ("elvish", "ctx.elv"),
    ("fish", "ctx.fish"),
    ("powershell", "_ctx.ps1"),
    ("zsh", "_ctx"),
];

pub(super) fn write(release: &Release) -> Result<Vec<Artifact>> {
    let Release { version, platform, binary, .. } = release;
    let name = format!("ctx-{version}-{}", platform.target);
    let at = |path: &str| format!("{name}/{path}");
    let mut entries = vec![Entry::program(at(platform.program()), fs::read(binary)?)];
    entries.extend(release.licences(&at(""))?);
    entries.push(release.notices(&at("")));
    entries.push(Entry::file(at("README.md"), fs::read(release.root.join("README.md"))?));
    for (shell, file) in COMPLETIONS {
        let script = output(program(release)?.args(["completions", shell]))?;
        entries.push(Entry::file(at(&format!("completions/{file}")), script));
    }
    let manual = tempfile::tempdir()?;
    output(program(release)?.arg("man").arg(manual.path()))?;
    for page in fs::read_dir(manual.path())? {
        let page = page?;
        let path = format!("man/{}", page.file_name().to_string_lossy());
        entries.push(Entry::file(at(&path), fs::read(page.path())?));
    }
    Ok(vec![
        (format!("{name}.tar.gz"), archive::tar_gz(entries)?),
        installer(release, "install.sh")?,
        installer(release, "install.ps1")?,
    ])
}

/// Returns an installer of this version.
fn installer(release: &Release, name: &str) -> Result<Artifact> {
    let text = fs::read_to_string(release.root.join("install").join(name))?;
    let text = text.replace("@VERSION@", release.version).replace("@BASE_URL@", &release.base_url);
    Ok((name.to_owned(), text.into_bytes()))
}

/// Returns a command that runs the binary; wine runs that of Windows elsewhere.
fn program(release: &Release) -> Result<Command> {
    if cfg!(windows) || !release.platform.is_windows() {
        return Ok(Command::new(&release.binary));
    }
    let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
    compiler.args(["-shared", "-o"]).arg(release.binary.with_file_name("bcryptprimitives.dll"));
    compiler.arg(release.root.join("tests/install/bcryptprimitives.c"));
    output(compiler.arg("-ladvapi32"))?;
    let mut command = Command::new("wine");
    command.arg(&release.binary).env("WINEDEBUG", "-all");
    Ok(command)
}

/// Runs a command, and returns its standard output.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.output().with_context(|| {
        format!("cannot run {program}, which prints the manual: build on the system of the target")
    })?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(output.stdout)
}
