//! Which `ctx serve` runs for a home.
//!
//! A server holds the lock of `proxy/server.json` and writes its address there. The system frees the
//! lock when the process ends in any way, so a file that a killed server has left is not taken for
//! a running one.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use ctx_core::{Error, ErrorKind, Result};
use ctx_disk::FileLock;
use ctx_session::Home;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::Shutdown;

/// A running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningServer {
    /// Its URL, without a path: `http://127.0.0.1:8787`.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// The address that it listens on; none in earlier versions.
    #[serde(default)]
    pub listen: Option<SocketAddr>,
    /// The models' window that it was started with.
    #[serde(default)]
    pub window: Option<String>,
    /// Whether each request needs its token.
    #[serde(default)]
    pub needs_token: bool,
    /// Each API with the URL of its upstream; none in earlier versions.
    #[serde(default)]
    pub upstreams: BTreeMap<String, String>,
    /// What [`STOP_HEADER`] of a request to [`STOP_PATH`] has to be; none in earlier versions.
    #[serde(default)]
    pub stop_key: Option<String>,
}

/// A `POST` of this path stops the server after its running answers.
pub const STOP_PATH: &str = "/api/stop";

/// The header of the key, which only the user of the server can read.
pub const STOP_HEADER: &str = "x-ctx-stop";

/// Serves [`STOP_PATH`].
pub fn stop_route(key: String, shutdown: Shutdown) -> Router {
    let stop = move |headers: HeaderMap| async move {
        let given = headers.get(STOP_HEADER).and_then(|given| given.to_str().ok());
        if given != Some(&key) {
            return StatusCode::FORBIDDEN;
        }
        shutdown.stop();
        StatusCode::ACCEPTED
    };
    Router::new().route(STOP_PATH, post(stop))
}

impl RunningServer {
    /// Returns the server of this process at an address, with a new key.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self {
            url: url_for_clients(address),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            listen: Some(address),
            window: None,
            needs_token: false,
            upstreams: BTreeMap::new(),
            stop_key: Some(Uuid::new_v4().to_string()),
        }
    }

    /// Returns the port that it listens on.
    #[must_use]
    pub fn port(&self) -> Option<&str> {
        self.url.rsplit(':').next()
    }

    /// Whether it sends the requests of an API to that server: `http://HOST:PORT`, with or without
    /// the version at its end.
    #[must_use]
    pub fn sends_to(&self, family: &str, url: &str) -> bool {
        fn root(url: &str) -> &str {
            let url = url.trim_end_matches('/');
            url.strip_suffix("/v1").unwrap_or(url)
        }
        self.upstreams.get(family).is_some_and(|known| root(known) == root(url))
    }
}

/// The registration of a server. It ends when this is dropped.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
    _lock: FileLock,
}

impl Registration {
    /// Registers a server of this process. Waits up to `patience` until another one has ended.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another server of this home runs; [`ErrorKind::Io`] if the file
    /// cannot be written.
    pub fn new(home: &Home, server: &RunningServer, patience: Duration) -> Result<Self> {
        let path = path(home);
        ctx_disk::create_private_dir(ctx_disk::parent(&path))?;
        let lock = FileLock::with_timeout(&path, patience)?;
        // That of a killed server must not be taken for this one.
        ctx_disk::remove(&path, "cannot remove the address of an earlier server")?;
        let text = serde_json::to_vec(server)
            .map_err(|cause| Error::new(ErrorKind::Io, "cannot write the address").source(cause))?;
        ctx_disk::write_atomic(&path, &text)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Without the lock the file means nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the server that runs for a home; `None` if there is none.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`] if a server runs and its file is damaged.
pub fn running(home: &Home) -> Result<Option<RunningServer>> {
    let path = path(home);
    if !path.exists() || !is_locked(&path)? {
        return Ok(None);
    }
    let text = match ctx_disk::read(&path) {
        Ok(text) => text,
        // It has just ended.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(ctx_disk::io_error("cannot read the server's address", &path, e)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|cause| {
        Error::new(ErrorKind::Corrupt, "the file with the server's address is damaged")
            .with("path", path.display())
            .hint("end the running `ctx serve` and start it again")
            .source(cause)
    })
}

/// Waits until no server runs for a home.
///
/// # Errors
///
/// [`ErrorKind::Timeout`] if one still runs after `patience`.
pub fn wait_until_ended(home: &Home, patience: Duration) -> Result<()> {
    let path = path(home);
    match FileLock::with_timeout(&path, patience) {
        Err(error) if error.kind() == ErrorKind::Locked => {
            Err(Error::new(ErrorKind::Timeout, "the server has not ended yet")
                .hint("it still answers requests; a second signal ends it at once"))
        }
        ended => ended.map(drop),
    }
}

/// Returns the URL for clients on this machine, also of a server that listens on all addresses.
fn url_for_clients(address: SocketAddr) -> String {
    let mut address = address;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{address}")
}

/// Whether a server holds the lock. Several processes may look at once.
fn is_locked(path: &Path) -> Result<bool> {
    let sidecar = ctx_disk::sidecar_of(path);
    let file = match ctx_disk::open(&sidecar) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        file => file.map_err(|e| ctx_disk::io_error("cannot open the lock file", &sidecar, e))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(ctx_disk::io_error("cannot read the lock", &sidecar, e)),
    }
}

fn path(home: &Home) -> PathBuf {
    home.root.join("proxy").join("server.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(home: &Home) -> Result<Registration> {
        Registration::new(home, &RunningServer::at("0.0.0.0:1".parse().unwrap()), Duration::ZERO)
    }

    #[test]
    fn a_server_is_found_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(running(&home).unwrap(), None);
        let server = register(&home).unwrap();
        let found = running(&home).unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.pid), ("http://127.0.0.1:1", std::process::id()));
        let second = register(&home).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::Locked);
        assert_eq!(wait_until_ended(&home, Duration::ZERO).unwrap_err().kind(), ErrorKind::Timeout);
        drop(server);
        assert_eq!(running(&home).unwrap(), None);
        wait_until_ended(&home, Duration::ZERO).unwrap();
    }

    #[test]
    fn the_file_of_a_killed_server_is_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let server = register(&home).unwrap();
        let text = std::fs::read(path(&home)).unwrap();
        drop(server);
        std::fs::write(path(&home), text).unwrap();
        assert_eq!(running(&home).unwrap(), None);
        let _server = register(&home).unwrap();
        std::fs::write(path(&home), "{").unwrap();
        assert_eq!(running(&home).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
