//! Converts TOML to a manifest and back.

use ctx_core::text::Slice;
use ctx_core::{Error, ErrorKind, Result};
use serde::Deserialize;

use super::{MANIFEST_VERSION, Manifest};

/// The only key common to all versions of the format.
#[derive(Deserialize)]
struct Versioned {
    manifest_version: u32,
}

impl Manifest {
    /// Parses a manifest, and makes the checks that need no other file.
    ///
    /// # Errors
    ///
    /// `Config`, with the line: a manifest that is not TOML, lacks a key or has an unknown one, has
    /// an invalid value, or is of another version.
    pub fn parse(text: &str) -> Result<Self> {
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
        let manifest: Self = toml::from_str(text).map_err(|e| fault(text, &e))?;
        manifest.check_values()?;
        Ok(manifest)
    }

    /// Returns the manifest as TOML.
    ///
    /// # Errors
    ///
    /// See [`Manifest::parse`]: a manifest that could not be read again is not written.
    pub fn to_toml(&self) -> Result<String> {
        self.check_values()?;
        toml::to_string_pretty(self).map_err(|e| {
            Error::new(ErrorKind::Config, "the manifest cannot be written as TOML").source(e)
        })
    }
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
