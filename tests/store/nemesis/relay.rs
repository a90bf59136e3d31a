//! A TCP relay, whose network can be cut.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The state of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Open,
    /// What is sent does not arrive until the network is open again.
    Silent,
    /// Connections are closed, and refused.
    Cut,
}

/// Forwards connections to `127.0.0.1:target`, a port that can change.
pub(crate) struct Relay {
    pub port: u16,
    network: Arc<watch::Sender<Network>>,
    accepting: AbortHandle,
}

impl Relay {
    pub(crate) async fn start(target: watch::Receiver<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let network = Arc::new(watch::channel(Network::Open).0);
        let state = network.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (network, port) = (state.subscribe(), *target.borrow());
                tokio::spawn(forward(client, port, network));
            }
        });
        Self { port, network, accepting: accepting.abort_handle() }
    }

    pub(crate) fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(client: TcpStream, port: u16, mut network: watch::Receiver<Network>) {
    if *network.borrow() == Network::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::select! {
        () = pump(from_client, to_server, network.clone()) => {}
        () = pump(from_server, to_client, network.clone()) => {}
        _ = network.wait_for(|state| *state == Network::Cut) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let Ok(length @ 1..) = from.read(&mut bytes).await else { return };
        if network.wait_for(|state| *state != Network::Silent).await.is_err()
            || to.write_all(&bytes[..length]).await.is_err()
        {
            return;
        }
    }
}
