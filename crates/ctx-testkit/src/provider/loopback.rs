//! A server on loopback, with its own thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// A server that listens on loopback until it is dropped.
#[derive(Debug)]
pub(super) struct Loopback {
    pub(super) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Loopback {
    /// Runs `serve` for each connection, on a thread of that name. When this returns, it is
    /// listening at the port, or at any free one if that is 0.
    pub(super) fn start<S, F>(name: &str, port: u16, serve: S) -> io::Result<Self>
    where
        S: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, mut stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = &mut stopped => return,
                        accepted = listener.accept() => {
                            // A connection that closes before it is accepted must not stop the
                            // server.
                            let Ok((stream, _)) = accepted else { continue };
                            // Without this, small writes are delayed and merged.
                            let _ = stream.set_nodelay(true);
                            tokio::spawn(serve(stream));
                        }
                    }
                }
            });
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns its URL, without a path and without a trailing slash.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
