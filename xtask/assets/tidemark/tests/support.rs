//! A server and workers for the tests.

use std::cell::Cell;
use std::path::PathBuf;

use tidemark::config::{Config, Fsync, Limits};
use tidemark::frame::Frame;

/// A server on a free port, with a folder of its own.
pub struct Server {
    pub address: std::net::SocketAddr,
    _folder: tempfile::TempDir,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts one and waits until it listens.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (address, task) = tidemark::server::spawn_for_test(Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            folder: PathBuf::from(folder.path()),
            fsync: Fsync::Never,
            limits: Limits::default(),
        })
        .await;
        Self { address, _folder: folder, task }
    }

    /// Pushes one job.
    pub async fn push(&self, topic: &str, payload: &[u8]) -> u64 {
        worker(self).push(topic, payload).await.unwrap()
    }

    /// Pushes `count` jobs with their number as payload.
    pub async fn push_many(&self, topic: &str, count: u32) -> Vec<u64> {
        let one = worker(self);
        let mut ids = Vec::new();
        for number in 0..count {
            ids.push(one.push(topic, &number.to_le_bytes()).await.unwrap());
        }
        ids
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a worker is given.
pub struct Delivered {
    pub id: u64,
    pub deliveries: u32,
    pub payload: Vec<u8>,
}

/// A client.
pub struct Worker {
    stream: std::sync::Mutex<std::net::TcpStream>,
    request: Cell<u32>,
}

/// Connects.
pub fn worker(server: &Server) -> Worker {
    let stream = std::net::TcpStream::connect(server.address).unwrap();
    Worker { stream: std::sync::Mutex::new(stream), request: Cell::new(1) }
}
