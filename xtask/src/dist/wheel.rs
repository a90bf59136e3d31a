//! The wheel: <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>.

use std::fmt::Write as _;
use std::fs;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::{ABOUT, Artifact, Entry, LICENCE, PACKAGE, Release, archive};

/// `ctxkeep` is the name that `uvx` and `pipx run` look for. It runs the binary beside it.
const SH: &str = "#!/bin/sh\nexec \"$(dirname -- \"$0\")/ctx\" \"$@\"\n";
const CMD: &str = "@\"%~dp0ctx.exe\" %*\r\n";

pub(super) fn write(release: &Release) -> Result<Vec<Artifact>> {
    let Release { version, platform, root, .. } = release;
    let scripts = format!("{PACKAGE}-{version}.data/scripts");
    let (launcher, text) =
        if platform.is_windows() { ("ctxkeep.cmd", CMD) } else { ("ctxkeep", SH) };
    let info = format!("{PACKAGE}-{version}.dist-info");
    let mut entries = vec![
        Entry::program(format!("{scripts}/{}", platform.program()), fs::read(&release.binary)?),
        Entry::program(format!("{scripts}/{launcher}"), text),
        Entry::file(
            format!("{info}/METADATA"),
            metadata(version, &fs::read_to_string(root.join("README.md"))?),
        ),
        Entry::file(format!("{info}/WHEEL"), wheel(platform.wheel)),
    ];
    let licences = format!("{info}/licenses/");
    entries.extend(release.licences(&licences)?);
    entries.push(release.notices(&licences));
    entries.push(record(&entries, &format!("{info}/RECORD")));
    let name = format!("{PACKAGE}-{version}-py3-none-{}.whl", platform.wheel.join("."));
    Ok(vec![(name, archive::zip(&entries)?)])
}

fn metadata(version: &str, readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {version}\nSummary: {ABOUT}\n\
         License-Expression: {LICENCE}\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         License-File: THIRD-PARTY.txt\nRequires-Python: >=3.7\n\
         Description-Content-Type: text/markdown\n\n{readme}"
    )
}

fn wheel(platforms: &[&str]) -> String {
    let tags = platforms.iter().map(|platform| format!("Tag: py3-none-{platform}\n"));
    let head = "Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\n";
    std::iter::once(head.to_owned()).chain(tags).collect()
}

/// Returns the list of the files with their hashes and sizes; its own are left out.
fn record(entries: &[Entry], path: &str) -> Entry {
    let mut lines = String::new();
    for Entry { path, bytes, .. } in entries {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        let _ = writeln!(lines, "{path},sha256={hash},{}", bytes.len());
    }
    let _ = writeln!(lines, "{path},,");
    Entry::file(path, lines)
}
