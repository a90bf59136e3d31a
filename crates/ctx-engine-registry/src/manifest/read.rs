//! Converts TOML to a manifest and back.

use ctx_core::text::Slice;
use ctx_core::{Error, ErrorKind, Result};
use serde::Deserialize;

use super::{MANIFEST_VERSION, Manifest, check};

/// The only key common to all versions of the format.
#[derive(Deserialize)]
struct Versioned {
    manifest_version: u32,
}

pub(super) fn parse(text: &str) -> Result<Manifest> {
    // The version first: in a newer format, keys and values may have another meaning.
    let Versioned { manifest_version } = toml::from_str(text).map_err(|e| fault(text, &e))?;
    if manifest_version != MANIFEST_VERSION {
        return Err(Error::new(
            ErrorKind::Config,
            format!("unsupported manifest version {manifest_version}"),
        )
        .with("known", MANIFEST_VERSION)
        .hint("use a newer ctx, or a release of the engine for this version"));
    }
    let manifest: Manifest = toml::from_str(text).map_err(|e| fault(text, &e))?;
    check::values(&manifest)?;
    Ok(manifest)
}

pub(super) fn write(manifest: &Manifest) -> Result<String> {
    check::values(manifest)?;
    toml::to_string_pretty(manifest).map_err(|e| {
        Error::new(ErrorKind::Config, "the manifest cannot be written as TOML").source(e)
    })
}

fn fault(text: &str, error: &toml::de::Error) -> Error {
    // After its first line, the message repeats the text.
    let what = error.message().lines().next().unwrap_or_default().to_owned();
    let fault = Error::new(ErrorKind::Config, format!("invalid manifest: {what}"));
    let fault = match error.span() {
        Some(span) => {
            let before = text.slice(..span.start);
            fault.with("line", before.matches('\n').count() + 1)
        }
        None => fault,
    };
    fault.hint(
        "the keys are manifest_version, name, version, license, about, slot, contract, base, and \
         for each platform [platform.<os>-<arch>] with library or command, and sha256",
    )
}
