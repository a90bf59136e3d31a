//! Checks that need only the manifest.

use ctx_core::text::head_chars;
use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::protocol::PROTOCOL;

use super::{Manifest, PlatformFile, this_platform};
use crate::EngineName;

/// The platform of files that run everywhere.
const ANY: &str = "any";

const MAX_ARGS: usize = 64;

/// Maximum length of the description line.
const MAX_ABOUT_CHARS: usize = 200;

impl Manifest {
    pub(super) fn check_values(&self) -> Result<()> {
        one_line("version", &self.version, 64)?;
        if self.version.trim().is_empty() {
            return Err(wrong("version", &self.version, "the engine's version, such as 0.1.0"));
        }
        one_line("license", &self.license, 128)?;
        one_line("about", &self.about, MAX_ABOUT_CHARS)?;
        if self.contract.is_empty() {
            return Err(wrong("contract", "[]", "the versions of the protocol, such as [\"1.0\"]"));
        }
        if let Some(version) = self.contract.iter().find(|version| numbers(version).is_none()) {
            return Err(wrong("contract", version, "versions such as \"1.0\""));
        }
        if let Some(base) = &self.base
            && (EngineName::new(base).is_err() || base == self.name.as_str())
        {
            return Err(wrong("base", base, "the id of another engine, such as \"legacy\""));
        }
        if self.platform.is_empty() {
            return Err(wrong("platform", "{}", "a table such as [platform.linux-x86_64]"));
        }
        self.platform.iter().try_for_each(|(platform, file)| platform_file(platform, file))
    }

    /// Rejects an engine that supports no version of the protocol that this host supports.
    pub(crate) fn check_contract(&self) -> Result<()> {
        let major = |version: &str| numbers(version).map(|(major, _)| major);
        let ours = major(PROTOCOL);
        let theirs: Vec<_> = self.contract.iter().map(|version| major(version)).collect();
        if theirs.contains(&ours) {
            return Ok(());
        }
        let hint = if theirs.iter().any(|version| *version > ours) {
            "use a newer ctx, or a release of the engine for this version"
        } else {
            "use a newer release of the engine"
        };
        let spoken = self.contract.join(", ");
        Err(Error::new(
            ErrorKind::Contract,
            format!(
                "the engine supports version {spoken} of the protocol, ctx supports {PROTOCOL}"
            ),
        )
        .hint(hint))
    }

    /// Returns the file for this machine.
    ///
    /// # Errors
    ///
    /// `NotFound`, with the available platforms.
    pub fn file(&self) -> Result<&PlatformFile> {
        let platform = this_platform();
        self.platform.get(&platform).or_else(|| self.platform.get(ANY)).ok_or_else(|| {
            let there: Vec<_> = self.platform.keys().map(String::as_str).collect();
            Error::new(ErrorKind::NotFound, format!("the engine has no file for {platform}"))
                .with("available", there.join(", "))
                .hint("use a release of the engine for this platform, or build it here")
        })
    }
}

fn platform_file(platform: &str, file: &PlatformFile) -> Result<()> {
    let key = |key: &str| format!("platform.{platform}.{key}");
    if platform != ANY && !is_platform(platform) {
        let expected = "<os>-<arch> such as linux-x86_64, or any";
        return Err(wrong("platform", platform, expected));
    }
    match (&file.library, &file.command) {
        (Some(name), None) => {
            file_name(&key("library"), name)?;
            if file.interpreter.is_some() || !file.args.is_empty() {
                return Err(wrong(&key("library"), name, "a library without interpreter and args"));
            }
        }
        (None, Some(name)) => file_name(&key("command"), name)?,
        _ => return Err(wrong(&key("library"), "", "either a library or a command")),
    }
    if let Some(name) = &file.interpreter {
        file_name(&key("interpreter"), name)?;
    }
    if file.args.len() > MAX_ARGS || file.args.iter().any(|arg| arg.contains('\0')) {
        return Err(wrong(
            &key("args"),
            &format!("{} arguments", file.args.len()),
            "at most 64 texts without NUL",
        ));
    }
    if file.sha256.len() != 64 || !file.sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(wrong(&key("sha256"), &file.sha256, "64 hexadecimal digits"));
    }
    Ok(())
}

/// Checks for a plain name, which can refer only to a file next to the manifest.
fn file_name(key: &str, name: &str) -> Result<()> {
    let plain = !name.is_empty()
        && name != "."
        && name != ".."
        && name.len() <= 255
        // A colon is a drive or a stream on Windows; a name that begins with a dash could be an
        // option.
        && !name.contains(['/', '\\', ':', '\0'])
        && !name.contains(char::is_control)
        && !name.starts_with('-');
    if plain {
        return Ok(());
    }
    Err(wrong(key, name, "the plain name of a file next to the manifest, without a path"))
}

fn is_platform(name: &str) -> bool {
    let part = |part: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        !part.is_empty() && part.chars().all(allowed)
    };
    name.split_once('-').is_some_and(|(os, arch)| part(os) && part(arch))
}

fn one_line(key: &str, text: &str, most: usize) -> Result<()> {
    if text.chars().count() <= most && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(wrong(key, text, &format!("one line of at most {most} characters")))
}

fn wrong(key: &str, value: &str, expected: &str) -> Error {
    let value = head_chars(value, 80);
    Error::new(
        ErrorKind::Config,
        format!("invalid manifest: '{key}' must be {expected}, not {value:?}"),
    )
    .hint("correct the manifest, or report it to the engine's author")
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
