//! Determines the owner and the beginning of a conversation.

use std::io::ErrorKind as IoKind;
use std::path::Path;

use axum::http::HeaderMap;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::wire::Protocol;
use ctx_disk::FileLock;
use ctx_disk::lru::unwritable;

use super::headers;
use super::replica::ReplicaStore;
use super::units::{RequestUnit, first_user_unit};

/// The headers with the client's session name.
const NAMES: [&str; 4] = ["session-id", "thread-id", "x-claude-code-session-id", "x-session-id"];

/// A secret that makes conversation ids unique to a home. Without it, an API key could be guessed
/// from an id.
#[derive(Clone)]
pub(super) struct Salt([u8; 32]);

impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt")
    }
}

impl Salt {
    /// Reads the salt of a folder, creating it if it is missing or damaged.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let path = folder.join("salt");
        let read = || match ctx_disk::read(&path) {
            Ok(bytes) => Ok(bytes.try_into().ok().map(Self)),
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            Err(error) => Err(unwritable("cannot store conversations", &path)(error)),
        };
        if let Some(salt) = read()? {
            return Ok(salt);
        }
        // Two servers that start at once must have one salt.
        let _lock = FileLock::with_default_timeout(&path)?;
        if let Some(salt) = read()? {
            return Ok(salt);
        }
        let mut salt = [0; 32];
        salt[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        salt[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        ctx_disk::write_atomic(&path, &salt)?;
        Ok(Self(salt))
    }

    /// Returns the salt of all replicas, which is this one if they have none yet.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) fn of_replicas(self, replicas: &ReplicaStore) -> Result<Self> {
        let shared = replicas.salt(&self.0)?;
        let salt = shared.try_into().map_err(|_| {
            Error::new(ErrorKind::Corrupt, "the proxy's secret in the shared store is damaged")
                .hint("delete the row `proxy-salt` of ctx.blob")
        });
        salt.map(Self)
    }

    /// Returns the keyed hash of some parts in hex.
    pub(super) fn hash(&self, parts: &[&[u8]], bytes: usize) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_hex().chars().take(bytes * 2).collect()
    }
}

/// Identifies the candidate conversations of a request: those of the client's session, or those
/// with the same beginning. All belong to one key or login, so users never share conversations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    /// 16 hex digits.
    pub(super) id: String,
    /// Distinguishes conversations of the group: eight hex digits from the first user message.
    pub(super) begins: String,
    /// 16 hex digits of the key or login.
    pub(super) key: String,
}

impl Fingerprint {
    /// Returns the id of the group: all ids of its conversations begin with it.
    pub(super) fn group_id(&self) -> String {
        format!("{}-{}", self.id, self.begins)
    }

    /// Returns the client's name of its session, from a header.
    pub(super) fn session(headers: &HeaderMap) -> Option<&[u8]> {
        let header = NAMES.iter().find_map(|name| headers.get(*name));
        header.map(|value| value.as_bytes()).filter(|value| !value.is_empty())
    }

    /// Returns the id of the group of conversations of the client's session, if it names one.
    pub(super) fn named(
        salt: &Salt,
        protocol: Protocol,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Option<String> {
        let named = Self::session(headers)?;
        Some(Self::group(salt, protocol, headers, query, Some(named), b""))
    }

    /// Returns the fingerprint of a request.
    pub(super) fn of(
        salt: &Salt,
        protocol: Protocol,
        headers: &HeaderMap,
        query: Option<&str>,
        cache_key: Option<&str>,
        units: &[RequestUnit<'_>],
    ) -> Self {
        let first =
            first_user_unit(units).map(|units| units.hash().to_string()).unwrap_or_default();
        let named = Self::session(headers).or(cache_key.map(str::as_bytes));
        let id = Self::group(salt, protocol, headers, query, named, first.as_bytes());
        let key = Self::key(salt, headers, query);
        Self { id, begins: salt.hash(&[first.as_bytes()], 4), key }
    }

    /// Returns the hash of a client's key or login.
    pub(super) fn key(salt: &Salt, headers: &HeaderMap, query: Option<&str>) -> String {
        salt.hash(&[b"key", &headers::secrets(headers, query, None)], 8)
    }

    /// Returns the id of a group: by the name of a session, or else by the first user message.
    fn group(
        salt: &Salt,
        protocol: Protocol,
        headers: &HeaderMap,
        query: Option<&str>,
        named: Option<&[u8]>,
        first: &[u8],
    ) -> String {
        let key = headers::secrets(headers, query, named);
        let (kind, name) = match named {
            Some(name) => (b"named".as_slice(), name),
            None => (b"begins".as_slice(), first),
        };
        salt.hash(&[protocol.name().as_bytes(), &key, kind, name], 8)
    }
}
