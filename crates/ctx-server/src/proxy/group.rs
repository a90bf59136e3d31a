//! Whose conversation it is.

use std::fs;
use std::io::{ErrorKind as IoKind, Write};
use std::path::Path;

use axum::http::HeaderMap;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::wire::Protocol;

use super::headers;
use super::told::{Told, first_of_user};

/// The headers in which clients name their sessions.
const NAMES: [&str; 4] = ["session-id", "thread-id", "x-claude-code-session-id", "x-session-id"];

/// What makes the ids of one home differ from those of another: without it a key could be guessed
/// from them.
#[derive(Clone)]
pub(super) struct Salt([u8; 32]);

impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt")
    }
}

impl Salt {
    /// The one of a folder, which is made where it is missing.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let path = folder.join("salt");
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, "conversations cannot be kept")
                .with("path", path.display())
                .hint("set CTX_HOME to a folder that can be written to")
                .source(error)
        };
        match ctx_disk::read(&path) {
            Ok(bytes) if bytes.len() == 32 => {
                let mut salt = [0; 32];
                salt.copy_from_slice(&bytes);
                return Ok(Self(salt));
            }
            Ok(_) => fs::remove_file(&path).map_err(failed)?,
            Err(error) if error.kind() == IoKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let mut salt = [0; 32];
        salt[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        salt[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        match ctx_disk::private().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(&salt).map_err(failed)?,
            // Another process was faster.
            Err(error) if error.kind() == IoKind::AlreadyExists => return Self::of(folder),
            Err(error) => return Err(failed(error)),
        }
        Ok(Self(salt))
    }

    fn hash(&self, parts: &[&[u8]], bytes: usize) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let hash = hasher.finalize();
        hash.as_bytes()[..bytes].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The conversations that may be meant: those of one client's session, or those that begin alike;
/// of one key, or of one user's login, so that two users never share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    /// Sixteen hex digits.
    pub(super) id: String,
    /// What tells its conversations apart: eight hex digits of how they begin.
    pub(super) begins: String,
}

impl Group {
    /// The group of a request.
    pub(super) fn of(
        salt: &Salt,
        protocol: Protocol,
        headers: &HeaderMap,
        query: Option<&str>,
        cache_key: Option<&str>,
        told: &[Told<'_>],
    ) -> Self {
        let first = first_of_user(told).map(|told| told.hash().to_string()).unwrap_or_default();
        let header = NAMES.iter().find_map(|name| headers.get(*name));
        let header = header.map(|value| value.as_bytes()).filter(|value| !value.is_empty());
        let named = header.or(cache_key.map(str::as_bytes));
        let key = headers::secrets(headers, query, named);
        let name = match named {
            Some(name) => [b"named".as_slice(), name],
            None => [b"begins".as_slice(), first.as_bytes()],
        };
        let id = salt.hash(&[protocol.name().as_bytes(), &key, name[0], name[1]], 8);
        Self { id, begins: salt.hash(&[first.as_bytes()], 4) }
    }
}
