//! The configuration file.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The folder of the log.
    pub folder: PathBuf,
    /// When the log is forced to the disk.
    #[serde(default)]
    pub fsync: Fsync,
    /// What is refused.
    #[serde(default)]
    pub limits: Limits,
}

/// When the log is forced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fsync {
    /// Before each answer.
    Always,
    /// Every 10 ms; a crash of the machine may lose that much.
    #[default]
    Interval,
    /// When the system likes.
    Never,
}

/// What is refused.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The longest payload, in bytes.
    pub payload_bytes: usize,
    /// The most jobs that wait in one topic.
    pub jobs_per_topic: usize,
    /// The longest lease, in milliseconds.
    pub lease_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { payload_bytes: 1 << 20, jobs_per_topic: 1_000_000, lease_ms: 3_600_000 }
    }
}
